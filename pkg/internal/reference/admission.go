package reference

import (
	"math/rand/v2"

	"blis/pkg/portable"
)

// Admission has the parameters of llm-d's probabilistic-admitter.
type Admission struct {
	Queue, KV, Power, K float64
	// Seed starts its random numbers.
	Seed uint64
}

// rejects reports whether the admitter rejects a request: one that is sheddable, with a probability that grows with
// the load of the replicas.
func (a *Admission) rejects(q *request, s *simulation, now int64) bool {
	if s.config.SnapshotUS == 0 {
		s.router.readReports(s.replicas, now)
	}
	load := 0.0
	for i := range s.replicas {
		load += max(float64(s.router.queued[i])/a.Queue, s.router.usage[i]/a.KV)
	}
	chance := a.K * portable.Pow(load/float64(len(s.replicas)), a.Power)
	stream := numberStream(a.Seed).forRequest(s.rank(q))
	return q.Sheddable && stream.unit() < chance
}

// RandomAdmissions draws a case like Random or RandomSessions with the admitter, in which many requests are sheddable.
func RandomAdmissions(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x61646d69))}
	c, requests := Random(seed)
	if d.percent(30) {
		c, requests = RandomSessions(seed)
	}
	c.Admission = &Admission{Queue: float64(d.between(1, 6)), KV: pick(d, 0.3, 0.8, 2), Power: pick(d, 1, 2, 5.0),
		K: pick(d, 0.2, 1, 300)}
	sheddable := map[string]bool{} // sessions
	for i := range requests {
		r := &requests[i]
		r.Sheddable = d.percent(60)
		if r.Session == "" {
			continue
		}
		if _, drawn := sheddable[r.Session]; !drawn {
			sheddable[r.Session] = r.Sheddable
		}
		r.Sheddable = sheddable[r.Session]
	}
	return c, requests
}
