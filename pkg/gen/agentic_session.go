package gen

import (
	"maps"
	"math/rand/v2"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stream"
)

// agents are the sessions of a client with a workflow.
type agents struct {
	sessions
	*plan
	spec *Agentic
	// iterations is how often the loop happens; nil if always as often.
	iterations *dist.Length
	// lengths are those of calls of models, by their place in the workflow.
	lengths []lengths
	tools   map[string]tool
	// Of the session at hand, by place: what each call says by itself.
	said []stream.Segment
}

// tool is a tool at work; returns is nil if nothing.
type tool struct{ latency, returns *dist.Length }

// newAgents makes the sessions of c, which stands at path.
func newAgents(seed uint64, c *Client, path string, fault fault) (*agents, error) {
	m := &agents{spec: c.Agentic, lengths: make([]lengths, len(c.Agentic.Steps)), tools: map[string]tool{}}
	var err error
	if m.sessions, err = newSessions(seed, c, path, c.Agentic.Workflow, fault); err != nil {
		return nil, err
	}
	path += ".agentic"
	w, err := newWorkflow(c.Agentic, path, fault)
	if err != nil {
		return nil, err
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; !s.isTool() {
			if m.lengths[i].input, err = lengthAt(*s.InputDistribution, w.at(i, "input_distribution"), fault); err != nil {
				return nil, err
			}
			if m.lengths[i].output, err = lengthAt(*s.OutputDistribution, w.at(i, "output_distribution"), fault); err != nil {
				return nil, err
			}
		}
	}
	if w.Loop != nil && w.Loop.Iterations != nil {
		if m.iterations, err = lengthAt(*w.Loop.Iterations, path+".loop.iterations", fault); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Tools)) {
		if m.tools[name], err = newTool(w.Tools[name], path+".tools."+name, fault); err != nil {
			return nil, err
		}
	}
	m.plan, err = newPlan(w)
	return m, err
}

func newTool(t AgenticTool, path string, fault fault) (made tool, err error) {
	if t.Latency.Type == "" {
		return made, fault(path+".latency", "must be given: how long a call takes, in µs")
	}
	if made.latency, err = durationAt(t.Latency, path+".latency", fault); err != nil {
		return made, err
	}
	if t.OutputTokens != nil {
		made.returns, err = lengthAt(*t.OutputTokens, path+".output_tokens", fault)
	}
	return made, err
}

// fill makes one session: everything in it is drawn but when its steps happen.
func (m *agents) fill(a *stream.Arrival, n int64, at stream.Micros) error {
	d := m.begin(a, n, at)
	d.choosePrefix()
	iterations := m.plan.iterations
	if m.iterations != nil {
		iterations = int(min(m.iterations.Draw(d.stream("loop")), int64(iterations)))
	}
	run := m.run(iterations)
	m.said = slices.Grow(m.said[:0], run.len())[:run.len()]
	lengths, tools := d.draws(), d.stream("tool")
	for place := range run.len() {
		from, lower := run.at(place)
		spec := &m.spec.Steps[from.spec]
		s := d.step(from.id)
		if s.Iteration = from.iteration; from.id != spec.ID {
			s.Step = spec.ID
		}
		for _, of := range from.after {
			s.After = append(s.After, run.lowered(of, lower))
		}
		if spec.isTool() {
			m.tools[spec.Tool].call(s, spec.Tool, tools)
			continue
		}
		s.OutputTokens = m.lengths[from.spec].output.Draw(lengths.output)
		if err := m.prompt(&d, run, place, lengths.input); err != nil {
			return err
		}
	}
	return nil
}

// call makes s a call of the tool.
func (t tool) call(s *stream.SessionStep, name string, r *rand.Rand) {
	s.Tool, s.LatencyUS = name, t.latency.Draw(r)
	if t.returns != nil {
		s.OutputTokens = t.returns.Draw(r)
	}
}

// prompt composes the prompt of the call at a place, the last one so far.
func (m *agents) prompt(d *draft, run run, place int, r *rand.Rand) error {
	from, lower := run.at(place)
	s := &d.Steps[place]
	if !from.extends.IsZero() {
		s.Extends = run.lowered(from.extends, lower)
	}
	if int(run.lowered(from.twin, lower)) == place {
		own := m.lengths[from.spec].input.Draw(r)
		if begun := min(d.prefix.Tokens, own-1); s.Extends.IsZero() && begun > 0 {
			s.Prompt = append(s.Prompt, stream.Segment{ID: d.prefix.ID, Tokens: begun})
			own -= begun
		}
		m.said[place] = d.said(s.ID, own)
	}
	for _, p := range from.prompt {
		of := run.lowered(p.of, lower)
		switch p.kind {
		case text:
			s.Prompt = append(s.Prompt, m.said[of])
		case answer:
			s.Prompt = append(s.Prompt, d.generated(&d.Steps[of]))
		case result:
			s.Prompt = append(s.Prompt, d.returned(&d.Steps[of]))
		}
	}
	return d.measure()
}
