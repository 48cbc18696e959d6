package reference

import (
	"fmt"
	"math/rand/v2"
)

// RandomLoRA is Random with adapters, RandomGroups in one of four cases and RandomSpeculation in another one.
func RandomLoRA(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6c6f7261))}
	return withAdapters(d, seed, pick(d, Random, Random, RandomGroups, RandomSpeculation))
}

// RandomLoRASessions is RandomSessions or RandomRetries with adapters.
func RandomLoRASessions(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6c6f7273))}
	return withAdapters(d, seed, pick(d, RandomSessions, RandomRetries))
}

// withAdapters draws a case with adapters, one for all requests of a session. The step times are those of Beta.
func withAdapters(d *generator, seed uint64, draw func(uint64) (Config, []Request)) (Config, []Request) {
	c, requests := draw(seed)
	c.StepTime = nil
	l := &LoRA{Max: pick(d, 1, 1, 2, 3), LoadUS: pick[int64](d, 0, 7, 500), CopyUS: pick[int64](d, 0, 3, 200),
		Factor: pick(d, 1, 1, 1.25, 1.3), EachUS: pick(d, 0, 0, 1, 2.5)}
	l.MaxHost = l.Max + pick(d, 0, 0, 1, 3)
	c.LoRA = l
	adapters, without := d.between(l.Max, 2*l.Max+3), pick(d, 0, 0, 20, 50)
	for i := range requests {
		r := &requests[i]
		switch {
		case i > 0 && r.Session != "" && r.Session == requests[i-1].Session:
			r.Adapter = requests[i-1].Adapter
		case !d.percent(without):
			r.Adapter = fmt.Sprintf("adapter-%d", min(d.IntN(adapters), d.IntN(adapters)))
		}
	}
	return c, requests
}
