package policy

type lowestPriority struct{ plain }

func newLowestPriority(*builder, *Spec) Preemptor { return lowestPriority{} }

func (lowestPriority) Victim(l *Local) float64 { return -l.Request.Priority }
func (p lowestPriority) Clone() Preemptor      { return p }
