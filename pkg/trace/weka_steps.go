package trace

import (
	"math"
	"slices"
	"strconv"

	"blis/pkg/stream"
)

// wekaSteps converts the calls of a session to steps whose dependencies follow from the times of
// the trace.
//
// A call begins after the previous one in its list, think_time after its end. A sub-agent with a
// duration began that long before its t, after the call that ended last before; it runs
// concurrently with others and with its parent. The parent's next call, which begins after t, waits
// for all calls that have ended by then and that no call has waited for. A sub-agent without a
// duration was launched at t, and no call waits for it. A call that begins before the previous one
// has ended runs concurrently with it, after the same call.
type wekaSteps struct {
	session *wekaSession
	steps   []stream.SessionStep
}

// wekaEnd is a step with its end time in the trace, in seconds.
type wekaEnd struct {
	step stream.Index
	at   float64
}

// wekaSlack is the tolerance for starts before the end of the previous call, because starts are
// whole seconds.
const wekaSlack = 1

// record makes a the session; false if it has no calls.
func (s *wekaSession) record(a *stream.Arrival) bool {
	a.IsSession = true
	a.Session = stream.Session{ID: s.ID, UntilUS: stream.Never, Steps: a.Session.Steps[:0]}
	s.tree.splitRuns()
	w := &wekaSteps{session: s, steps: a.Session.Steps}
	w.chain(s.Requests, 0, wekaEnd{step: stream.NoIndex}, "")
	a.Session.Steps = w.steps
	return len(w.steps) > 0
}

// wekaAgent is the agent whose calls are being added.
type wekaAgent struct {
	// own holds its calls so far, after the call of its parent that it follows.
	own []wekaEnd
	// open holds its calls and those of its sub-agents that none of its later calls has waited for.
	open []wekaEnd
}

// chain adds the calls of one agent, whose clock starts at origin and whose first call comes after
// parent. It returns the calls that no later call has waited for.
func (w *wekaSteps) chain(calls []wekaCall, origin float64, parent wekaEnd, prefix string) []wekaEnd {
	agent := &wekaAgent{own: []wekaEnd{parent}}
	agents := 0
	var before *wekaCall // the previous element, if it became a step
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
			if before != nil && before.APITime != nil && c.ThinkTime != nil && len(after) == 1 &&
				after[0] == agent.own[len(agent.own)-1] {
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

// dependencies returns the calls that a call at start waits for, and its delay after the last of
// them.
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
	if e := g.latest(start); !own && e.step != stream.NoIndex {
		after = append(after, e)
	}
	last := 0.0
	for _, e := range after {
		last = max(last, e.at)
	}
	return after, start - last
}

// latest returns the agent's call with the latest end up to a time; the parent's call if there is
// none.
func (g *wekaAgent) latest(at float64) wekaEnd {
	best := g.own[0]
	for _, e := range g.own[1:] {
		if e.at <= at+wekaSlack && (best == g.own[0] || e.at >= best.at) {
			best = e
		}
	}
	return best
}

// add adds a call and returns its index.
func (w *wekaSteps) add(c *wekaCall, after []wekaEnd, delay float64, id string) stream.Index {
	step := stream.SessionStep{ID: id, InputTokens: *c.In, OutputTokens: *c.Out, Extends: stream.NoIndex,
		DelayUS: int64(math.Round(max(delay, 0) * 1e6)),
		Prompt:  w.session.tree.prompt(w.session.ID, c.node, w.session.BlockSize)}
	for _, e := range after {
		step.After = append(step.After, e.step)
	}
	slices.Sort(step.After)
	w.steps = append(w.steps, step)
	return stream.Index(len(w.steps) - 1)
}
