package reference

import "math/rand/v2"

// SessionStep makes a request a step of a session. The steps of a session follow each
// other in the stream.
type SessionStep struct {
	// Session is "" for a request by itself.
	Session string
	// After are the places in the stream of the steps that must have completed; the
	// step happens DelayUS after the last of them, for its client, or after the
	// session's arrival.
	After   []int
	DelayUS int64
	// Tool makes it the call of a tool, which takes ToolUS and never meets the
	// cluster.
	Tool   bool
	ToolUS int64
	// TimeoutUS after its arrival it is aborted; Never is not at all.
	TimeoutUS int64
}

// release lets every step whose time is known by now wait for it: those that come
// after nothing, when the session arrives, and those whose last parent has
// completed.
func (s *simulation) release() {
	for again := true; again; {
		again = false
		for _, q := range s.requests {
			if q.stage == isBlocked && !q.final() && s.free(q) {
				again = true
			}
		}
	}
}

// free reports whether a step need not wait for others any more, and sets its
// time.
func (s *simulation) free(q *request) bool {
	at := q.ArrivalUS
	for _, k := range q.After {
		parent := s.requests[k]
		if parent.outcome.State != Completed {
			return false
		}
		at = max(at, parent.outcome.CompletedUS)
	}
	at += q.DelayUS
	if s.config.HorizonUS != Never && at+q.ToolUS > s.config.HorizonUS {
		q.outcome.State = NotOffered
		return true
	}
	q.ArrivalUS, q.outcome.ArrivalUS = at, at
	if q.Tool {
		q.outcome.State, q.outcome.CompletedUS = Completed, at+q.ToolUS
		return true
	}
	if q.TimeoutUS != Never {
		q.DeadlineUS = at + q.TimeoutUS
	}
	q.stage, q.until = isPending, at
	return true
}

// RandomSessions is Random with some of the requests made steps of sessions:
// chains, trees and joins of them, with tools among them, whose prompts go on
// from those of their parents.
func RandomSessions(seed uint64) (Config, []Request) {
	c, all := Random(seed)
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 0x73657373))}
	for from := 0; from < len(all); {
		n := min(pick(d, 1, 2, 3, 5, 9), len(all)-from)
		if n > 1 || d.percent(30) {
			d.session(&c, all, from, n)
		}
		from += n
	}
	return c, all
}

// session makes a session of n requests.
func (d *dice) session(c *Config, all []Request, from, n int) {
	tick := max(1, int(c.stepTime(typical(1, 1, 0))))
	for i := from; i < from+n; i++ {
		r := &all[i]
		r.SessionStep = SessionStep{Session: all[from].ID, TimeoutUS: Never, DelayUS: int64(pick(d, 0, 0, 0, 1, tick, d.between(0, 9*tick)))}
		if r.DeadlineUS != Never {
			r.TimeoutUS, r.DeadlineUS = max(1, r.DeadlineUS-r.ArrivalUS), Never
		}
		r.ArrivalUS, r.Priority = all[from].ArrivalUS, all[from].Priority
		for k := from; k < i; k++ {
			if k == i-1 && d.percent(70) || d.percent(15) {
				r.After = append(r.After, k)
			}
		}
		if i > from && d.percent(20) { // a session of tools alone is no work
			r.Tool, r.ToolUS, r.TimeoutUS = true, int64(d.between(0, 5*tick)), Never
			continue
		}
		if p := d.IntN(i - from + 1); p > 0 && d.percent(60) {
			if before := all[i-p]; !before.Tool && before.Input+before.Output < r.Input+d.input+d.output {
				r.Prompt = append(append([]Segment(nil), before.Prompt...), Segment{before.Session + "/" + before.ID + ".out", before.Output})
				r.Input = 0
				for _, segment := range r.Prompt {
					r.Input += segment.Tokens
				}
				r.Input += d.between(0, 3)
			}
		}
	}
}
