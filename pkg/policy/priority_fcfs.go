package policy

type priorityFCFS struct{ plain }

func newPriorityFCFS(*builder, *Spec) Scheduler { return priorityFCFS{} }

func (priorityFCFS) Order(l *Local) float64 { return -l.Request.Priority }
func (p priorityFCFS) Clone() Scheduler     { return p }
