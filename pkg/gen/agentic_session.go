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

// newAgentSessions makes the generator of the client c at path.
func newAgentSessions(seed uint64, c *Client, path string, errorf errorFunc) (*agentSessions, error) {
	m := &agentSessions{spec: c.Agentic, lengths: make([]lengths, len(c.Agentic.Steps)), tools: map[string]tool{}}
	var err error
	if m.sessionBase, err = newSessionBase(seed, c, path, c.Agentic.Workflow, errorf); err != nil {
		return nil, err
	}
	path += ".agentic"
	w, err := newWorkflow(c.Agentic, path, errorf)
	if err != nil {
		return nil, err
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; !s.isTool() {
			if m.lengths[i].input, err = lengthAt(*s.InputDistribution, w.fieldPath(i, "input_distribution"),
				errorf); err != nil {
				return nil, err
			}
			if m.lengths[i].output, err = lengthAt(*s.OutputDistribution, w.fieldPath(i, "output_distribution"),
				errorf); err != nil {
				return nil, err
			}
		}
	}
	if w.Loop != nil && w.Loop.Iterations != nil {
		if m.iterationCount, err = lengthAt(*w.Loop.Iterations, path+".loop.iterations", errorf); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Tools)) {
		if m.tools[name], err = newTool(w.Tools[name], path+".tools."+name, errorf); err != nil {
			return nil, err
		}
	}
	m.plan, err = newPlan(w)
	return m, err
}

func newTool(t AgenticTool, path string, errorf errorFunc) (result tool, err error) {
	if t.Latency.Type == "" {
		return result, errorf(path+".latency", "must be given: how long a call takes, in µs")
	}
	if result.latency, err = durationAt(t.Latency, path+".latency", errorf); err != nil {
		return result, err
	}
	if t.OutputTokens != nil {
		result.output, err = lengthAt(*t.OutputTokens, path+".output_tokens", errorf)
	}
	return result, err
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
	lengths, tools := d.lengthStreams(), d.stream("tool")
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
			m.tools[spec.Tool].call(s, spec.Tool, tools)
			continue
		}
		s.OutputTokens = m.lengths[planned.spec].output.Draw(lengths.output)
		if err := m.prompt(&d, plan, place, lengths.input); err != nil {
			return err
		}
	}
	return nil
}

// call makes s a call of the tool.
func (t tool) call(s *stream.SessionStep, name string, r *rand.Rand) {
	s.Tool, s.LatencyUS = name, t.latency.Draw(r)
	if t.output != nil {
		s.OutputTokens = t.output.Draw(r)
	}
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
		switch p.kind {
		case ownText:
			s.Prompt = append(s.Prompt, m.ownText[step])
		case modelOutput:
			s.Prompt = append(s.Prompt, d.outputSegment(&d.Steps[step]))
		case toolOutput:
			s.Prompt = append(s.Prompt, d.toolSegment(&d.Steps[step]))
		}
	}
	return d.setPromptLength()
}
