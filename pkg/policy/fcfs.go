package policy

type fcfs struct{ plain }

func newFCFS(*builder, *Spec) Scheduler { return fcfs{} }

func (fcfs) Order(*Local) float64 { return 0 }
func (f fcfs) Clone() Scheduler   { return f }

// IsFCFS reports whether all places in the queue are equal to s.
func IsFCFS(s Scheduler) bool {
	_, ok := s.(fcfs)
	return ok
}
