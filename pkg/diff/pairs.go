package diff

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/stream"
)

// Requests says what became of single requests on both sides.
type Requests struct {
	// Both sides have so many, the others are on one only: steps of sessions that
	// went on in one run only.
	Both  int64 `json:"both"`
	OnlyA int64 `json:"only_a"`
	OnlyB int64 `json:"only_b"`
	// Changed have any other time, state, replica or count of tokens.
	Changed int64 `json:"changed"`
	// Slower and Faster are by E2E, of those that completed on both sides.
	Slower int64 `json:"slower"`
	Faster int64 `json:"faster"`
	// States are those that ended otherwise, by state; absent is not there.
	States []StateChange `json:"states"`
	// Missed met the targets of their class in a and not in b, Met the other way round.
	Missed int64 `json:"slo_missed"`
	Met    int64 `json:"slo_met"`
	// Regressions are those whose E2E grew most, the worst first, Gains those where
	// it shrank most.
	Regressions []Change `json:"regressions"`
	Gains       []Change `json:"gains"`
}

// StateChange counts requests that ended in state A on one side, in B on the other.
type StateChange struct {
	A     string `json:"a"`
	B     string `json:"b"`
	Count int64  `json:"count"`
}

// Change is what became of one request that completed on both sides. E2EMS is by
// how many ms its E2E is longer in b.
type Change struct {
	Request string  `json:"request"`
	E2EMS   float64 `json:"e2e_ms"`
	A       Times   `json:"a"`
	B       Times   `json:"b"`
}

// Times are those of one request, in ms, and where it was served. What was not
// measured is absent.
type Times struct {
	TTFTMS  *float64 `json:"ttft_ms,omitempty"`
	E2EMS   *float64 `json:"e2e_ms,omitempty"`
	QueueMS *float64 `json:"queue_ms,omitempty"`
	Replica string   `json:"replica,omitempty"`
}

// mostChanges is how many regressions and gains are shown.
const mostChanges = 5

// compareRequests compares the requests that are asked for, one by one.
func (c *comparison) compareRequests(order []int32) *Requests {
	p := &Requests{States: []StateChange{}}
	var ends [len(states)][len(states)]int64 // by the states on both sides
	var longer []int32                       // the numbers of those with another E2E
	for _, n := range order {
		a, b := c.sides[0].at(n), c.sides[1].at(n)
		ends[a.state][b.state]++
		switch {
		case a.state == 0:
			p.OnlyB++
		case b.state == 0:
			p.OnlyA++
		default:
			p.Both++
			p.compare(a, b)
			if a.e2e != absent && b.e2e != absent && a.e2e != b.e2e {
				longer = append(longer, n)
			}
		}
	}
	for i, row := range ends {
		for k, count := range row {
			if i != k && count > 0 {
				p.States = append(p.States, StateChange{states[i], states[k], count})
			}
		}
	}
	by := func(n int32) int64 { return c.sides[1].at(n).e2e - c.sides[0].at(n).e2e }
	slices.SortStableFunc(longer, func(x, y int32) int { return cmp.Compare(by(y), by(x)) })
	p.Regressions, p.Gains = []Change{}, []Change{}
	for i := 0; i < len(longer) && i < mostChanges && by(longer[i]) > 0; i++ {
		p.Regressions = append(p.Regressions, c.change(longer[i]))
	}
	slices.Reverse(longer)
	for i := 0; i < len(longer) && i < mostChanges && by(longer[i]) < 0; i++ {
		p.Gains = append(p.Gains, c.change(longer[i]))
	}
	return p
}

// compare counts how a request that is on both sides changed.
func (p *Requests) compare(a, b *request) {
	x, y := *a, *b
	x.has, y.has = x.has&^asked, y.has&^asked
	if x != y {
		p.Changed++
	}
	if a.e2e != absent && b.e2e != absent {
		switch {
		case a.e2e < b.e2e:
			p.Slower++
		case a.e2e > b.e2e:
			p.Faster++
		}
	}
	if a.is(judged) && b.is(judged) {
		switch {
		case a.is(met) && !b.is(met):
			p.Missed++
		case b.is(met) && !a.is(met):
			p.Met++
		}
	}
}

func (c *comparison) change(n int32) Change {
	a, b := c.sides[0].at(n), c.sides[1].at(n)
	return Change{c.names[n], float64(b.e2e-a.e2e) / 1000, c.times(a), c.times(b)}
}

func (c *comparison) times(q *request) Times {
	ms := func(us int64) *float64 {
		if us == absent {
			return nil
		}
		v := float64(us) / 1000
		return &v
	}
	at := c.places.all[q.place]
	return Times{ms(q.ttft), ms(q.e2e), ms(q.queue), placeOf(at.deployment, at.replica)}
}

// placeOf names a replica, or the deployment alone where there is none.
func placeOf(deployment string, replica stream.Index) string {
	if replica.IsZero() {
		return deployment
	}
	return fmt.Sprintf("%s/%d", deployment, replica)
}

// wanted reports whether a request is asked for: it is if it is on one side.
func (c *comparison) wanted(n int32) bool {
	if c.pairsOnly && (c.sides[0].at(n).state == 0 || c.sides[1].at(n).state == 0) {
		return false
	}
	return c.options.keeps == nil || c.sides[0].at(n).is(asked) || c.sides[1].at(n).is(asked)
}

// inOrder are the requests that are asked for and that one of the sides has, by
// arrival on the first of them that does.
func (c *comparison) inOrder(sides ...*side) []int32 {
	var order []int32
	arrival := func(n int32) int64 {
		for _, s := range sides {
			if q := s.at(n); q.state != 0 {
				return q.arrival
			}
		}
		return absent
	}
	for n := range int32(len(c.names)) {
		if arrival(n) != absent && c.wanted(n) {
			order = append(order, n)
		}
	}
	slices.SortStableFunc(order, func(x, y int32) int { return cmp.Compare(arrival(x), arrival(y)) })
	return order
}
