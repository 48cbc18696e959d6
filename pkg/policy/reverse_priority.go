package policy

type reversePriority struct{ plain }

func newReversePriority(*builder, *Spec) Scheduler { return reversePriority{} }

func (reversePriority) Order(l *Local) float64 { return l.Request.Priority }
func (r reversePriority) Clone() Scheduler     { return r }
