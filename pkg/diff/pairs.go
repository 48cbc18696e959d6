package diff

import (
	"cmp"
	"fmt"
	"slices"

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
	var counts [len(states)][len(states)]int64 // by the states on both sides
	var changed []int32                        // indices of requests whose E2E differs
	for _, n := range order {
		a, b := c.sides[0].at(n), c.sides[1].at(n)
		counts[a.state][b.state]++
		switch {
		case a.state == 0:
			p.OnlyB++
		case b.state == 0:
			p.OnlyA++
		default:
			p.Both++
			p.compare(a, b)
			if a.e2e != missing && b.e2e != missing && a.e2e != b.e2e {
				changed = append(changed, n)
			}
		}
	}
	for i, row := range counts {
		for k, count := range row {
			if i != k && count > 0 {
				p.States = append(p.States, StateChange{states[i], states[k], count})
			}
		}
	}
	diff := func(n int32) int64 { return c.sides[1].at(n).e2e - c.sides[0].at(n).e2e }
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
	x.flags, y.flags = x.flags&^selected, y.flags&^selected
	if x != y {
		p.Changed++
	}
	if a.e2e != missing && b.e2e != missing {
		switch {
		case a.e2e < b.e2e:
			p.Slower++
		case a.e2e > b.e2e:
			p.Faster++
		}
	}
	if a.has(hasTargets) && b.has(hasTargets) {
		switch {
		case a.has(metTargets) && !b.has(metTargets):
			p.SLOLost++
		case b.has(metTargets) && !a.has(metTargets):
			p.SLOGained++
		}
	}
}

func (c *comparison) change(n int32) Change {
	a, b := c.sides[0].at(n), c.sides[1].at(n)
	return Change{c.names[n], float64(b.e2e-a.e2e) / 1000, c.times(a), c.times(b)}
}

func (c *comparison) times(q *request) Times {
	ms := func(us int64) *float64 {
		if us == missing {
			return nil
		}
		v := float64(us) / 1000
		return &v
	}
	at := c.replicaIDs.all[q.replica]
	return Times{ms(q.ttft), ms(q.e2e), ms(q.queue), replicaName(at.deployment, at.index)}
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
	if c.pairsOnly && (c.sides[0].at(n).state == 0 || c.sides[1].at(n).state == 0) {
		return false
	}
	return c.options.selects == nil || c.sides[0].at(n).has(selected) || c.sides[1].at(n).has(selected)
}

// byArrival returns the selected requests that one of the sides has, by arrival on the
// first side that has them.
func (c *comparison) byArrival(sides ...*side) []int32 {
	var order []int32
	arrival := func(n int32) int64 {
		for _, s := range sides {
			if q := s.at(n); q.state != 0 {
				return q.arrival
			}
		}
		return missing
	}
	for n := range int32(len(c.names)) {
		if arrival(n) != missing && c.isSelected(n) {
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(arrival(x), arrival(y)) })
	return order
}
