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
	var changed []int32                                      // indices of requests whose E2E differs
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
			if a.E2E != resample.Missing && b.E2E != resample.Missing && a.E2E != b.E2E {
				changed = append(changed, n)
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
	diff := func(n int32) int64 { return c.sides[1].at(n).E2E - c.sides[0].at(n).E2E }
	slices.SortStableFunc(changed, func(x, y int32) int { return cmp.Compare(diff(y), diff(x)) })
	p.Regressions, p.Gains = []Change{}, []Change{}
	for i := 0; i < len(changed) && i < maxChanges && diff(changed[i]) > 0; i++ {
		p.Regressions = append(p.Regressions, c.change(changed[i]))
	}
	slices.Reverse(changed)
	for i := 0; i < len(changed) && i < maxChanges && diff(changed[i]) < 0; i++ {
		p.Gains = append(p.Gains, c.change(changed[i]))
	}
	return p
}

// compare counts the changes of a request that both sides have.
func (p *Requests) compare(a, b *request) {
	x, y := *a, *b
	x.selected, y.selected = false, false
	if x != y {
		p.Changed++
	}
	if a.E2E != resample.Missing && b.E2E != resample.Missing {
		switch {
		case a.E2E < b.E2E:
			p.Slower++
		case a.E2E > b.E2E:
			p.Faster++
		}
	}
	if a.Has(resample.HasTargets) && b.Has(resample.HasTargets) {
		switch {
		case a.Has(resample.MetTargets) && !b.Has(resample.MetTargets):
			p.SLOLost++
		case b.Has(resample.MetTargets) && !a.Has(resample.MetTargets):
			p.SLOGained++
		}
	}
}

func (c *comparison) change(n int32) Change {
	a, b := c.sides[0].at(n), c.sides[1].at(n)
	return Change{c.names[n], float64(b.E2E-a.E2E) / 1000, c.times(a), c.times(b)}
}

func (c *comparison) times(q *request) Times {
	ms := func(us int64) *float64 {
		if us == resample.Missing {
			return nil
		}
		v := float64(us) / 1000
		return &v
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
	return c.options.selects == nil || c.sides[0].at(n).selected || c.sides[1].at(n).selected
}

// byArrival returns the selected requests that one of the sides has, by arrival on the
// first side that has them.
func (c *comparison) byArrival(sides ...*side) []int32 {
	var order []int32
	arrival := func(n int32) int64 {
		for _, s := range sides {
			if q := s.at(n); q.State != 0 {
				return q.Arrival
			}
		}
		return resample.Missing
	}
	for n := range int32(len(c.names)) {
		if arrival(n) != resample.Missing && c.isSelected(n) {
			order = append(order, n)
		}
	}
	slices.SortFunc(order, func(x, y int32) int {
		return resample.CompareArrivals(arrival(x), arrival(y), c.names[x], c.names[y])
	})
	return order
}
