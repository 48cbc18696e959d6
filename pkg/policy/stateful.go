package policy

// withMemory returns the policy p, which was built from s, with the memory that its expressions use;
// p itself if they use none.
func withMemory[P any](b *builder, s *Spec, p P) P {
	m := b.memory
	if !m.random && len(m.names) == 0 {
		return p
	}
	var all any
	switch p := any(p).(type) {
	case Admitter:
		all = &statefulAdmitter{p, newUpdates(b, s, viewSignals())}
	case Prioritizer:
		all = &statefulPrioritizer{p, newUpdates(b, s, viewSignals())}
	case Router:
		all = &statefulRouter{Router: p, updates: newUpdates(b, s, candidateSignals())}
	case Scheduler:
		all = statefulScheduler{p, m.memory}
	case Preemptor:
		all = statefulPreemptor{p, m.memory}
	case Autoscaler:
		all = &statefulAutoscaler{p, newUpdates(b, s, deploymentSignals())}
	}
	for _, name := range m.names {
		if !m.read["state."+name] {
			b.unused = append(b.unused, Unused{b.path + ".state." + name, "no other expression of the policy reads it"})
		}
	}
	return all.(P)
}

// The stateful policies lend their memory to the view while the policy within decides, and update it
// afterward. A policy within that one lends its own memory meanwhile.

type statefulAdmitter struct {
	Admitter
	updates *updates[View]
}

func (p *statefulAdmitter) Admit(v *View) Verdict {
	outer := p.updates.lend(&v.memory, v.Draw)
	d := p.Admitter.Admit(v)
	p.updates.admitted = d.Action == Admit
	p.updates.run(v)
	v.memory = outer
	return d
}

func (p *statefulAdmitter) Needs() Needs   { return p.Admitter.Needs() | p.updates.needs() }
func (p *statefulAdmitter) Rules() []*Rule { return append(p.Admitter.Rules(), p.updates.rules()...) }
func (p *statefulAdmitter) Clone() Admitter {
	return &statefulAdmitter{p.Admitter.Clone(), p.updates.clone()}
}

type statefulPrioritizer struct {
	Prioritizer
	updates *updates[View]
}

func (p *statefulPrioritizer) Priority(v *View, hints *[MaxHints]float64) (priority float64, rule string) {
	outer := p.updates.lend(&v.memory, v.Draw)
	priority, rule = p.Prioritizer.Priority(v, hints)
	p.updates.priority = priority
	p.updates.run(v)
	v.memory = outer
	return priority, rule
}

func (p *statefulPrioritizer) Needs() Needs { return p.Prioritizer.Needs() | p.updates.needs() }
func (p *statefulPrioritizer) Rules() []*Rule {
	return append(p.Prioritizer.Rules(), p.updates.rules()...)
}
func (p *statefulPrioritizer) Clone() Prioritizer {
	return &statefulPrioritizer{p.Prioritizer.Clone(), p.updates.clone()}
}

// statefulRouter updates its memory in the scope of the chosen replica.
type statefulRouter struct {
	Router
	updates *updates[candidate]
	scope   candidate
}

func (p *statefulRouter) Route(v *View) Choice {
	outer := p.updates.lend(&v.memory, v.Draw)
	c := p.Router.Route(v)
	p.scope = candidate{v, &v.Replicas[c.Candidate]}
	p.updates.run(&p.scope)
	p.scope = candidate{}
	v.memory = outer
	return c
}

func (p *statefulRouter) Needs() Needs   { return p.Router.Needs() | p.updates.needs() }
func (p *statefulRouter) Rules() []*Rule { return append(p.Router.Rules(), p.updates.rules()...) }
func (p *statefulRouter) Clone() Router {
	return &statefulRouter{Router: p.Router.Clone(), updates: p.updates.clone()}
}

// statefulScheduler and statefulPreemptor have random numbers but no variables.
type statefulScheduler struct {
	Scheduler
	*memory
}

func (p statefulScheduler) Order(l *Local) float64 { return p.score(l, p.Scheduler.Order) }
func (p statefulScheduler) Clone() Scheduler {
	return statefulScheduler{p.Scheduler.Clone(), p.clone()}
}

type statefulPreemptor struct {
	Preemptor
	*memory
}

func (p statefulPreemptor) PreemptionScore(l *Local) float64 {
	return p.score(l, p.Preemptor.PreemptionScore)
}
func (p statefulPreemptor) Clone() Preemptor {
	return statefulPreemptor{p.Preemptor.Clone(), p.clone()}
}

// score returns the result of a policy's function while the memory is lent to l.
func (m *memory) score(l *Local, of func(*Local) float64) float64 {
	outer := m.lend(&l.memory, l.Draw)
	x := of(l)
	l.memory = outer
	return x
}
