package policy

type fcfs struct{ plain }

func newFCFS(*builder, *Spec) Scheduler { return fcfs{} }

func (fcfs) Order(*Local) float64 { return 0 }
func (f fcfs) Clone() Scheduler   { return f }
