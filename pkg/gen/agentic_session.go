package gen

import (
	"maps"
	"math/rand/v2"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// agentSessions generates the sessions of a client with a workflow.
type agentSessions struct {
	sessionBase
	*plan
	spec *Agentic
	// iterationCount is the distribution of the number of iterations; nil means always the maximum.
	iterationCount *dist.Length
	// lengths holds the length distributions of the model calls, by step of the workflow.
	lengths []lengths
	tools   map[string]tool
	// ownText holds the text of each call of the current session.
	ownText []stream.Segment
}

// tool holds the distributions of a tool; output is nil if the tool returns nothing.
type tool struct{ latency, output *dist.Length }

// newAgentSessions makes the generator of the client c.
func newAgentSessions(seed uint64, c *Client, at field) *agentSessions {
	m := &agentSessions{sessionBase: newSessionBase(seed, c, c.Agentic.Workflow, at), spec: c.Agentic,
		lengths: make([]lengths, len(c.Agentic.Steps)), tools: map[string]tool{}}
	at = at.at("agentic")
	w := newWorkflow(c.Agentic, at)
	for i, s := range w.Steps {
		m.lengths[i] = lengths{w.step(i).length("input_distribution", s.InputDistribution),
			w.step(i).length("output_distribution", s.OutputDistribution)}
	}
	if w.Loop != nil {
		m.iterationCount = at.length("loop.iterations", w.Loop.Iterations)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Tools)) {
		t, at := w.Tools[name], at.at("tools."+name)
		if t.Latency.Type == "" {
			at.fail("latency", "must be given: how long a call takes, in µs")
		}
		m.tools[name] = tool{at.duration("latency", &t.Latency), at.length("output_tokens", t.OutputTokens)}
	}
	if at.err == nil {
		m.plan = newPlan(w)
	}
	return m
}

// fill makes one session. Everything is drawn here except the times of later steps, which the
// simulation decides.
func (m *agentSessions) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.newDraft(a, n, at)
	d.choosePrefix()
	iterations := m.plan.maxIterations
	if m.iterationCount != nil {
		iterations = int(min(m.iterationCount.Draw(d.stream("loop")), int64(iterations)))
	}
	plan := m.withIterations(iterations)
	m.ownText = slices.Grow(m.ownText[:0], plan.len())[:plan.len()]
	inputs, outputs := d.lengthStreams()
	tools := d.stream("tool")
	for place := range plan.len() {
		planned, offset := plan.at(place)
		spec := &m.spec.Steps[planned.spec]
		s := d.addStep(planned.id)
		if s.Iteration = planned.iteration; planned.id != spec.ID {
			s.Step = spec.ID
		}
		for _, of := range planned.after {
			s.After = append(s.After, plan.sessionIndex(of, offset))
		}
		if spec.isTool() {
			t := m.tools[spec.Tool]
			if s.Tool, s.LatencyUS = spec.Tool, t.latency.Draw(tools); t.output != nil {
				s.OutputTokens = t.output.Draw(tools)
			}
			continue
		}
		s.OutputTokens = m.lengths[planned.spec].output.Draw(outputs)
		if err := m.prompt(&d, plan, place, inputs); err != nil {
			return err
		}
	}
	return nil
}

// prompt builds the prompt of the call at place, which is the last step so far.
func (m *agentSessions) prompt(d *sessionDraft, plan sessionPlan, place int, r *rand.Rand) error {
	planned, offset := plan.at(place)
	s := &d.Steps[place]
	if !planned.extends.IsZero() {
		s.Extends = plan.sessionIndex(planned.extends, offset)
	}
	if int(plan.sessionIndex(planned.firstCopy, offset)) == place {
		tokens := m.lengths[planned.spec].input.Draw(r)
		if prefix := min(d.prefix.Tokens, tokens-1); s.Extends.IsZero() && prefix > 0 {
			s.Prompt = append(s.Prompt, stream.Segment{ID: d.prefix.ID, Tokens: prefix})
			tokens -= prefix
		}
		m.ownText[place] = d.ownSegment(s.ID, tokens)
	}
	for _, p := range planned.prompt {
		step := plan.sessionIndex(p.step, offset)
		if p.isOutput {
			s.Prompt = append(s.Prompt, d.outputSegment(&d.Steps[step]))
		} else {
			s.Prompt = append(s.Prompt, m.ownText[step])
		}
	}
	return d.setPromptLength()
}
