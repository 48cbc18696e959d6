package policy

type lowestPriority struct{ reads }

func newLowestPriority(*builder, *Spec) Preemptor { return lowestPriority{reads(NeedPriority)} }

func (lowestPriority) Victim(l *Local) float64 { return -l.Request.Priority }
func (p lowestPriority) Clone() Preemptor      { return p }
