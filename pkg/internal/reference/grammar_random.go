package reference

import (
	"fmt"
	"math/rand/v2"
)

// RandomGrammars is Random with grammars, of six cases one each with KV cache groups, speculative
// decoding and adapters.
func RandomGrammars(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6772616d))}
	return withGrammars(d, seed, pick(d, Random, Random, Random, RandomGroups, RandomSpeculation, RandomLoRA))
}

// RandomGrammarSessions is RandomSessions or RandomRetries with grammars.
func RandomGrammarSessions(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x67726d73))}
	return withGrammars(d, seed, pick(d, RandomSessions, RandomRetries))
}

// RandomGrammarFailures is RandomFailures with grammars.
func RandomGrammarFailures(seed uint64) (Config, []Request) {
	return withGrammars(&generator{Rand: rand.New(rand.NewPCG(seed, 0x67726d66))}, seed, RandomFailures)
}

// withGrammars draws a case with grammars. The times are fractions or multiples of that of a step.
func withGrammars(d *generator, seed uint64, draw func(uint64) (Config, []Request)) (Config, []Request) {
	c, requests := draw(seed)
	step := c.stepTime(Batch{Decode: 2, Context: 40})
	share := func(of ...float64) int64 { return roundHalfUp(float64(step) * pick(d, of...)) }
	compile := share(0, 0.2, 1, 5, 30)
	c.Grammars = &Grammars{MeanUS: 4 * compile, Workers: pick(d, 1, 1, 2, 5),
		MaskUS:     float64(share(0, 0.02, 0.3, 1.5)) + pick(d, 0, 0.3, 0.5),
		SamplingUS: 1 + share(0, 0, 0.3, 1),
		CompileUS:  func(name string) int64 { return compile*int64(len(name)) + int64(name[0]) }}
	kinds, structured := d.between(1, 8), pick(d, 100, 100, 60, 20)
	for i := range requests {
		if d.percent(structured) && !requests[i].Tool {
			k := min(d.IntN(kinds), d.IntN(kinds))
			requests[i].Grammar = fmt.Sprintf("%c%s", 'a'+k, "xxxxxxxx"[:k])
		}
	}
	return c, requests
}
