package policy

type priorityFCFS struct{ reads }

func newPriorityFCFS(*builder, *Spec) Scheduler { return priorityFCFS{reads(NeedPriority)} }

func (priorityFCFS) Order(l *Local) float64 { return -l.Request.Priority }
func (p priorityFCFS) Clone() Scheduler     { return p }
