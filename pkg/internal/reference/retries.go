package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Retry makes the client of a request send it again after an attempt that ended in one of the states On: the nth time
// after BackoffUS[n-1].
type Retry struct {
	On        []string
	BackoffUS []int64
}

// attempt is what a request has that may be one of several.
type attempt struct {
	first  *request // the first attempt, nil in itself
	number int      // 0 is the first
	next   *request // the one after this
	judged bool     // it is known whether there is one
	ended  int64    // when it became final, once judged
}

// rank is where the request is among all. All attempts with a number are behind those with a lower one.
func (s *simulation) rank(q *request) int {
	if q.first == nil {
		return slices.Index(s.requests, q)
	}
	return slices.Index(s.requests, q.first) + q.number<<44
}

// last is the last attempt at the request.
func (q *request) last() *request {
	for q.next != nil {
		q = q.next
	}
	return q
}

// retry lets the clients of requests that have just ended send them again.
func (s *simulation) retry(now int64) {
	for _, q := range slices.Clone(s.requests) {
		if !q.final() || q.judged {
			continue
		}
		q.judged, q.ended = true, now
		o := &q.outcome
		if !slices.Contains(q.On, o.State) || strings.HasPrefix(o.Reason, "too_long") || q.number == len(q.BackoffUS) {
			continue
		}
		at := now + q.BackoffUS[q.number]
		if s.config.HorizonUS != Never && at > s.config.HorizonUS {
			continue
		}
		q.next = s.again(q, at)
		o.Retried = true
		before := func(p, q *request) int { return s.rank(p) - s.rank(q) }
		i, _ := slices.BinarySearchFunc(s.requests, q.next, before)
		s.requests = slices.Insert(s.requests, i, q.next)
	}
}

// again is the next attempt at a request.
func (s *simulation) again(q *request, at int64) *request {
	first := q
	if q.first != nil {
		first = q.first
	}
	r := q.Request
	r.ArrivalUS, r.ID = at, fmt.Sprintf("%s/retry%d", first.ID, q.number+1)
	if q.DeadlineUS != Never {
		r.DeadlineUS = at + q.DeadlineUS - q.ArrivalUS
	}
	next := newRequest(r, q.sequence)
	next.stage = stagePending
	next.attempt = attempt{first: first, number: q.number + 1}
	next.outcome.RetryOf, next.outcome.RetryUS = first.ID, at-first.ArrivalUS
	return next
}

// RandomRetries adds retries to cases of other kinds.
func RandomRetries(seed uint64) (Config, []Request) {
	kinds := []func(uint64) (Config, []Request){Random, RandomSessions, RandomFlow, RandomScaling, RandomAdmissions}
	c, requests := kinds[seed%uint64(len(kinds))](seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x72657472))}
	step := int(c.stepTime(batchOf(min(c.MaxNumBatchedTokens, 20), 2, 20)))
	share, tight := d.between(20, 100), pick(d, 0, 20, 60)
	for i := range requests {
		r := &requests[i]
		if r.Tool {
			continue
		}
		if d.percent(tight) {
			us := int64(d.between(1, 6*step))
			if r.Session != "" {
				r.TimeoutUS = us
			} else {
				r.DeadlineUS = r.ArrivalUS + us
			}
		}
		if !d.percent(share) {
			continue
		}
		r.On = pick(d, []string{Rejected, TimedOut, failed}, []string{TimedOut}, []string{Rejected},
			[]string{failed, TimedOut})
		for range d.between(1, 4) {
			r.BackoffUS = append(r.BackoffUS, int64(pick(d, 0, 0, 1, step, d.between(0, 9*step))))
		}
	}
	return c, requests
}
