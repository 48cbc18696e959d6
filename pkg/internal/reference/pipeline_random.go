package reference

import "math/rand/v2"

// RandomPipeline is Random with pipeline parallelism, RandomGroups in one of four cases and RandomLoRA without
// speculative decoding in another one.
func RandomPipeline(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x706970))}
	return withPipeline(d, seed, pick(d, Random, Random, RandomGroups, randomPlainLoRA))
}

// RandomPipelineSessions is RandomSessions or RandomRetries with pipeline parallelism.
func RandomPipelineSessions(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x706973))}
	return withPipeline(d, seed, pick(d, RandomSessions, RandomRetries))
}

func randomPlainLoRA(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6c70))}
	return withAdapters(d, seed, pick(d, Random, RandomGroups))
}

// withPipeline draws a case with two to four stages.
func withPipeline(d *generator, seed uint64, draw func(uint64) (Config, []Request)) (Config, []Request) {
	c, requests := draw(seed)
	c.Async = d.percent(60)
	stages := pick(d, 2, 2, 3, 4)
	p := &Pipeline{Batches: stages, Cadence: 1, EmptyBatches: d.percent(75),
		HopUS: pick(d, 0, 0, 3.5, 200), HopTokenUS: pick(d, 0, 0, 0.25, 1)}
	if c.Async && d.percent(80) { // the V2 model runner
		p.Batches, p.Cadence = stages+1, stages
	}
	each := d.between(1, 9)
	for range stages {
		p.Layers = append(p.Layers, max(1, each-pick(d, 0, 0, 0, 1)))
	}
	c.Pipeline = p
	if c.Groups != nil { // more batches in flight keep more blocks
		c.NumBlocks = max(c.NumBlocks, 1+c.lone(d.between(1, 2)*10))
	}
	return c, requests
}
