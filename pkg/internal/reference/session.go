package reference

import "math/rand/v2"

// SessionStep makes a request a step of a session. The steps of a session are consecutive in the
// stream.
type SessionStep struct {
	// Session is "" for a single request.
	Session string
	// After are the stream positions of the steps that must complete first. The step is issued
	// DelayUS after the client has the last of them, or after the arrival of the session.
	After   []int
	DelayUS int64
	// Tool makes it a tool call, which takes ToolUS and never reaches the cluster.
	Tool   bool
	ToolUS int64
	// TimeoutUS after its arrival the request is aborted, unless it is Never.
	TimeoutUS int64
}

// releaseSteps sets the time of every step whose time is now known: steps without parents when the
// session arrives, the others when their last parent has completed.
func (s *simulation) releaseSteps() {
	for again := true; again; {
		again = false
		for _, q := range s.requests {
			if q.stage == stageBlocked && !q.final() && s.tryRelease(q) {
				again = true
			}
		}
	}
}

// tryRelease reports whether a step no longer waits for others, and sets its time.
func (s *simulation) tryRelease(q *request) bool {
	at := q.ArrivalUS
	for _, k := range q.After {
		parent := s.requests[k].last()
		if parent.outcome.State != Completed {
			return false
		}
		at = max(at, parent.outcome.CompletedUS)
	}
	at += q.DelayUS
	if s.config.HorizonUS != Never && at+q.ToolUS > s.config.HorizonUS {
		if q.cut = len(q.After) == 0; q.cut { // the run goes on until the session arrives
			q.stage, q.until = stagePending, q.ArrivalUS
		} else {
			q.outcome.State = NotOffered
		}
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
	q.stage, q.until = stagePending, at
	return true
}

// RandomSessions is Random with some requests turned into steps of sessions: chains, trees and
// joins, with tool calls among them, whose prompts continue those of their parents.
func RandomSessions(seed uint64) (Config, []Request) {
	c, all := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x73657373))}
	for from := 0; from < len(all); {
		n := min(pick(d, 1, 2, 3, 5, 9), len(all)-from)
		if n > 1 || d.percent(30) {
			d.session(&c, all, from, n)
		}
		from += n
	}
	return c, all
}

// session turns n requests into a session.
func (d *generator) session(c *Config, all []Request, from, n int) {
	tick := max(1, int(c.stepTime(batchOf(1, 1, 0))))
	for i := from; i < from+n; i++ {
		r := &all[i]
		r.SessionStep = SessionStep{Session: all[from].ID, TimeoutUS: Never,
			DelayUS: int64(pick(d, 0, 0, 0, 1, tick, d.between(0, 9*tick)))}
		if r.DeadlineUS != Never {
			r.TimeoutUS, r.DeadlineUS = max(1, r.DeadlineUS-r.ArrivalUS), Never
		}
		r.ArrivalUS, r.Priority = all[from].ArrivalUS, all[from].Priority
		for k := from; k < i; k++ {
			if k == i-1 && d.percent(70) || d.percent(15) {
				r.After = append(r.After, k)
			}
		}
		if i > from && d.percent(20) { // a session needs at least one model call
			r.Tool, r.ToolUS, r.TimeoutUS = true, int64(d.between(0, 5*tick)), Never
			continue
		}
		if p := d.IntN(i - from + 1); p > 0 && d.percent(60) {
			if before := all[i-p]; !before.Tool && before.Input+before.Output < r.Input+d.input+d.output {
				r.Prompt = append(
					append([]Segment(nil), before.Prompt...),
					Segment{ID: before.Session + "/" + before.ID + ".out", Tokens: before.Output},
				)
				r.Input = 0
				for _, segment := range r.Prompt {
					r.Input += segment.Tokens
				}
				r.Input += d.between(0, 3)
			}
		}
	}
}
