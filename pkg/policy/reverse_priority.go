package policy

type reversePriority struct{ reads }

func newReversePriority(*builder, *Spec) Scheduler { return reversePriority{reads(NeedPriority)} }

func (reversePriority) Order(l *Local) float64 { return l.Request.Priority }
func (r reversePriority) Clone() Scheduler     { return r }
