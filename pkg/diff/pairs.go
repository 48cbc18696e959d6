package diff

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/resample"
	"blis/pkg/stream"
)

// Requests compares single requests between the two sides.
type Requests struct {
	// Both is the number of requests on both sides. OnlyA and OnlyB are on one side:
	// session steps that only one run reached.
	Both  int64 `json:"both"`
	OnlyA int64 `json:"only_a"`
	OnlyB int64 `json:"only_b"`
	// Changed requests have a different time, state, replica or token count.
	Changed int64 `json:"changed"`
	// Slower and Faster compare E2E of requests that completed on both sides.
	Slower int64 `json:"slower"`
	Faster int64 `json:"faster"`
	// States counts requests whose final states differ; absent means not present.
	States []StateChange `json:"states"`
	// SLOLost requests met the targets of their class in a and not in b, SLOGained in b
	// and not in a.
	SLOLost   int64 `json:"slo_lost"`
	SLOGained int64 `json:"slo_gained"`
	// Regressions have the largest increases of E2E, the largest first; Gains the largest
	// decreases.
	Regressions []Change `json:"regressions"`
	Gains       []Change `json:"gains"`
}

// StateChange counts requests that ended in state A on one side and in B on the other.
type StateChange struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Count int64  `json:"count"`
}

// Change is one request that completed on both sides. E2EDiffMS is its E2E in b minus
// that in a.
type Change struct {
	Request   string  `json:"request"`
	E2EDiffMS float64 `json:"e2e_diff_ms"`
	A         Times   `json:"a"`
	B         Times   `json:"b"`
}

// Times are the times of one request, in ms, and its replica. A time that was not
// measured is absent.
type Times struct {
	TTFTMS  *float64 `json:"ttft_ms,omitempty"`
	E2EMS   *float64 `json:"e2e_ms,omitempty"`
	QueueMS *float64 `json:"queue_ms,omitempty"`
	Replica string   `json:"replica,omitempty"`
}

// maxChanges is the number of regressions and gains in the result.
const maxChanges = 5

// compareRequests compares the selected requests one by one.
func (c *comparison) compareRequests(order []int32) *Requests {
	p := &Requests{States: []StateChange{}}
	var counts [resample.NumStates][resample.NumStates]int64 // by the states on both sides
	diff := func(n int32) int64 { return c.sides[1].at(n).E2E - c.sides[0].at(n).E2E }
	var regressions, gains []int32 // indices of requests
	for _, n := range order {
		a, b := c.sides[0].at(n), c.sides[1].at(n)
		counts[a.State][b.State]++
		switch {
		case a.State == 0:
			p.OnlyB++
		case b.State == 0:
			p.OnlyA++
		default:
			p.Both++
			p.compare(a, b)
			if a.E2E == resample.Missing || b.E2E == resample.Missing {
				continue
			}
			if b.E2E > a.E2E {
				p.Slower++
				regressions = keepFirst(regressions, n, func(k int32) bool { return diff(n) > diff(k) })
			} else if b.E2E < a.E2E {
				p.Faster++
				gains = keepFirst(gains, n, func(k int32) bool { return diff(n) <= diff(k) })
			}
		}
	}
	for i, row := range counts {
		for k, count := range row {
			if i != k && count > 0 {
				p.States = append(p.States, StateChange{resample.State(i).String(), resample.State(k).String(), count})
			}
		}
	}
	p.Regressions, p.Gains = c.changes(regressions), c.changes(gains)
	return p
}

// keepFirst inserts a request before the first in the list that it precedes, and keeps the first
// maxChanges.
func keepFirst(list []int32, n int32, precedes func(k int32) bool) []int32 {
	at := slices.IndexFunc(list, precedes)
	if at < 0 {
		at = len(list)
	}
	list = slices.Insert(list, at, n)
	return list[:min(len(list), maxChanges)]
}

// compare counts the changes of a request that both sides have.
func (p *Requests) compare(a, b *request) {
	if *a != *b {
		p.Changed++
	}
	switch {
	case !a.HasTargets() || !b.HasTargets() || a.MetTargets() == b.MetTargets():
	case a.MetTargets():
		p.SLOLost++
	default:
		p.SLOGained++
	}
}

func (c *comparison) changes(indices []int32) []Change {
	list := []Change{}
	for _, n := range indices {
		a, b := c.sides[0].at(n), c.sides[1].at(n)
		list = append(list, Change{c.ids.name(n), float64(b.E2E-a.E2E) / 1000, c.times(a), c.times(b)})
	}
	return list
}

func (c *comparison) times(q *request) Times {
	ms := func(us int64) *float64 {
		if us == resample.Missing {
			return nil
		}
		return new(float64(us) / 1000)
	}
	at := c.replicaIDs.all[q.replica]
	return Times{ms(q.TTFT), ms(q.E2E), ms(q.Queue), replicaName(at.deployment, at.index)}
}

// replicaName names a replica, or the deployment if there is none.
func replicaName(deployment string, replica stream.Index) string {
	if replica.IsZero() {
		return deployment
	}
	return fmt.Sprintf("%s/%d", deployment, replica)
}

// isSelected reports whether a request is selected on either side.
func (c *comparison) isSelected(n int32) bool {
	if c.pairsOnly && (c.sides[0].at(n).State == 0 || c.sides[1].at(n).State == 0) {
		return false
	}
	return c.options.selects == nil || c.sides[0].selects(n) || c.sides[1].selects(n)
}

// byArrival returns the selected requests that one of the sides has, by arrival on the
// first side that has them.
func (c *comparison) byArrival(sides ...*side) []int32 {
	order := make([]int32, 0, c.ids.len())
	arrival := func(n int32) int64 {
		for _, s := range sides {
			if q := s.at(n); q.State != 0 {
				return q.Arrival
			}
		}
		return resample.Missing
	}
	for n := range c.ids.len() {
		if arrival(n) != resample.Missing && c.isSelected(n) {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(x, y int32) int {
		if by := cmp.Compare(arrival(x), arrival(y)); by != 0 {
			return by // without looking up the names
		}
		return resample.CompareArrivals(0, 0, c.ids.name(x), c.ids.name(y))
	})
	return order
}
