package sim

import (
	"math/rand/v2"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
	"blis/pkg/engine"
)

// grammarTimes are the compilation times of the grammars of a deployment. A grammar takes the same time at all its
// replicas.
type grammarTimes struct {
	// simulated: requests with a grammar are served as structured output.
	simulated bool
	meanUS    float64
	noise     func(*rand.Rand) float64 // nil if all grammars take the mean
	seed      uint64
}

func newGrammarTimes(d *cluster.Deployment, seed uint64) grammarTimes {
	s := d.Engine.StructuredOutput.WithDefaults()
	g := grammarTimes{simulated: d.SimulatesGrammars(), meanUS: *s.CompileUS, seed: seed}
	if s.CompileCV > 0 {
		g.noise = dist.Noise(s.CompileCV)
	}
	return g
}

// of is the time to compile the grammar of that name.
func (g *grammarTimes) of(name string) des.Time {
	us := g.meanUS
	if g.noise != nil {
		us = float64(us * g.noise(dist.NewStream(g.seed, "grammar/"+name)))
	}
	return des.Micros(us)
}

// grammarsOf converts structured output.
func grammarsOf(e *cluster.Engine) engine.Grammars {
	s := e.StructuredOutput.WithDefaults()
	return engine.Grammars{Workers: s.Workers, MaskUS: *s.MaskUS, SamplingUS: des.Micros(*s.SamplingUS)}
}

// grammarUse is the grammar of a request, 0 if it has none. At its replica it waits for it from a time until it is
// ready; pending is when the event of that comes, or never.
type grammarUse struct {
	id                   int32
	from, ready, pending des.Time
}

// waited is how long the request has waited for it.
func (g *grammarUse) waited(now des.Time) int64 { return max(0, min(now, g.ready)-g.from) }

// compileUS is how long a replica of d compiles the grammar of a request if it does not have it.
func (d *deployment) compileUS(r *request) des.Time {
	if r.grammar.id == 0 {
		return 0
	}
	return d.grammars.of(r.out.Grammar)
}

// awaitGrammar schedules the end of the compilation of the grammar of a request that has just entered a queue.
func (s *simulation) awaitGrammar(slot int32) {
	r := s.request(slot)
	g := &r.grammar
	g.from, g.ready = s.now, s.replicas[r.replica].engine.GrammarReady(r.engineSeq)
	if g.pending != never { // at a replica that is gone
		s.events.stale++
	}
	if g.pending = never; g.ready > s.now {
		g.pending = g.ready
		s.events.queue.Push(des.NewEvent(g.ready, compiled, r.position, slot))
	}
}

// grammarCompiled notes that the grammar of a request is compiled. Its replica may have waited for it.
func (s *simulation) grammarCompiled(slot int32) error {
	r := s.request(slot)
	if r.grammar.pending != s.now {
		s.events.stale--
		return nil
	}
	r.grammar.pending = never
	if r.engineSeq == missing { // it has left its replica
		return nil
	}
	s.wake(r.replica)
	return s.observers.notify(s, onCompiled, slot)
}

// waitForGrammars notes that all requests of an idle replica wait for their grammars, if any do.
func (s *simulation) waitForGrammars(i int32) error {
	e := s.replicas[i].engine
	if s.transfers != nil || len(e.Formed()) == 0 {
		return nil // or it is noted with the transfers
	}
	for _, step := range e.Formed() {
		s.recordBatch(i, step)
	}
	s.telemetry.afterChange(s, i)
	return s.observers.notify(s, onWait, i)
}
