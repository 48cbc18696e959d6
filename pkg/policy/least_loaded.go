package policy

type leastLoaded struct{}

func newLeastLoaded(s Spec) (Router, error) { return leastLoaded{}, s.Check() }

func (leastLoaded) Route(v *View) Choice {
	best := 0
	for i := range v.Replicas {
		if v.Replicas[i].Inflight < v.Replicas[best].Inflight {
			best = i
		}
	}
	return Choice{Candidate: best, Score: float64(v.Replicas[best].Inflight)}
}

func (leastLoaded) Prefix() bool { return false }
