package trace

import (
	"math"
	"slices"
	"strconv"

	"blis/pkg/stream"
)

// wekaSteps turns the calls of a session into steps that wait for each other as
// the trace's times say.
//
// A call begins after the one before it in its list, think_time after its end. A
// sub-agent that has a duration began that long before its t, after the call
// that had just ended then; it runs beside the others and beside its parent, and
// the parent's next call, which begins after t, waits for all calls that have
// ended by then and that no call has waited for. A sub-agent without a duration
// was launched at t and nobody waits for it. A call that begins before the one
// before it has ended runs beside that one, after the same call as it.
type wekaSteps struct {
	session *wekaSession
	steps   []stream.SessionStep
}

// wekaEnd is a step and when it ended in the trace, in seconds.
type wekaEnd struct {
	step stream.Index
	at   float64
}

// wekaSlack is by how much a call may seem to begin before the one that it
// follows has ended: starts are whole seconds.
const wekaSlack = 1

// record makes a the session; false if it has no calls.
func (s *wekaSession) record(a *stream.Arrival) bool {
	a.IsSession = true
	a.Session = stream.Session{ID: s.id, UntilUS: stream.Never, Steps: a.Session.Steps[:0]}
	s.tree.splitRuns()
	w := &wekaSteps{session: s, steps: a.Session.Steps}
	w.chain(s.calls, 0, wekaEnd{step: stream.Nowhere}, "")
	a.Session.Steps = w.steps
	return len(w.steps) > 0
}

// wekaAgent is the agent whose calls are being added.
type wekaAgent struct {
	// own are its calls so far, after the call of its parent that it follows.
	own []wekaEnd
	// open are its calls and those of its sub-agents that no later one of its calls
	// waited for.
	open []wekaEnd
}

// chain adds the calls of one agent, whose clock is at 0 at origin and whose
// first call comes after parent. It returns the calls that no later one waited
// for.
func (w *wekaSteps) chain(calls []wekaCall, origin float64, parent wekaEnd, prefix string) []wekaEnd {
	agent := &wekaAgent{own: []wekaEnd{parent}}
	agents := 0
	var before *wekaCall // the element before, if it is a call that has become a step
	for i := range calls {
		c := &calls[i]
		start := origin + *c.T
		switch {
		case c.Type == "subagent":
			agents++
			if c.DurationMS != nil {
				start -= *c.DurationMS / 1000
			}
			ends := w.chain(c.Requests, start, agent.latest(start), prefix+"a"+strconv.Itoa(agents)+".")
			if c.DurationMS != nil {
				agent.open = append(agent.open, ends...)
			}
			before = nil
		case *c.Out == 0:
			before = nil
		default:
			after, delay := agent.dependencies(start)
			if before != nil && before.APITime != nil && c.ThinkTime != nil && len(after) == 1 && after[0] == agent.own[len(agent.own)-1] {
				delay = *c.ThinkTime
			}
			end := wekaEnd{w.add(c, after, delay, prefix+strconv.Itoa(len(agent.own))), start}
			if c.APITime != nil {
				end.at += *c.APITime
			}
			agent.own, agent.open = append(agent.own, end), append(agent.open, end)
			before = c
		}
	}
	return agent.open
}

// dependencies takes the calls that one that begins at start waits for, and by how much
// it comes after the last of them.
func (g *wekaAgent) dependencies(start float64) (after []wekaEnd, delay float64) {
	own := false
	g.open = slices.DeleteFunc(g.open, func(e wekaEnd) bool {
		if e.at > start+wekaSlack {
			return false
		}
		after = append(after, e)
		own = own || slices.Contains(g.own, e)
		return true
	})
	if e := g.latest(start); !own && e.step != stream.Nowhere {
		after = append(after, e)
	}
	last := 0.0
	for _, e := range after {
		last = max(last, e.at)
	}
	return after, start - last
}

// latest is the own call that ended last of those that had ended at a time; the
// parent's if none had.
func (g *wekaAgent) latest(at float64) wekaEnd {
	best := g.own[0]
	for _, e := range g.own[1:] {
		if e.at <= at+wekaSlack && (best == g.own[0] || e.at >= best.at) {
			best = e
		}
	}
	return best
}

// add adds a call and returns its place.
func (w *wekaSteps) add(c *wekaCall, after []wekaEnd, delay float64, id string) stream.Index {
	step := stream.SessionStep{ID: id, InputTokens: *c.In, OutputTokens: *c.Out, Extends: stream.Nowhere,
		DelayUS: int64(math.Round(max(delay, 0) * 1e6)),
		Prompt:  w.session.tree.prompt(w.session.id, c.node, w.session.blockSize)}
	for _, e := range after {
		step.After = append(step.After, e.step)
	}
	slices.Sort(step.After)
	w.steps = append(w.steps, step)
	return stream.Index(len(w.steps) - 1)
}
