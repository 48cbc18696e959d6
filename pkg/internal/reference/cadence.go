package reference

import (
	"math/rand/v2"
	"slices"
)

// cadence is what a replica with a PrefillInterval knows of the batches before.
type cadence struct {
	// formed counts the batches that compute something, and without ranks in lockstep prefilled is its value with the
	// last of them that has a part of a prompt.
	formed, prefilled int
	// saturated: the last batch that could have prompts left a request in the queue that had never been passed.
	saturated bool
	// The batch that is being formed has no prompts, turns one away for that, or has one.
	defers, stops, prefills bool
	passed                  []*request
	deferred, turnedAway    int
}

// joint reports whether a replica counts the steps of all ranks of its server.
func (c *Config) joint() bool { return c.Ranks != nil && c.Ranks.Lockstep }

// beginCadence decides whether the next batch has prompts.
func (r *replica) beginCadence() {
	x := &r.cadence
	x.defers, x.stops, x.prefills = false, false, false
	if r.config.PrefillInterval <= 1 {
		return
	}
	due := x.prefilled == Never || x.formed+1-x.prefilled >= r.config.PrefillInterval
	if r.config.joint() {
		due = x.formed%r.config.PrefillInterval == 0
	}
	decodes := slices.ContainsFunc(r.running, func(q *request) bool { return !q.inPrompt })
	x.defers = !due && !x.saturated && decodes
	if x.defers {
		x.deferred++
	}
}

// turnsAway reports whether the batch that is being formed cannot have a waiting request with these hits.
func (r *replica) turnsAway(q *request, hits hit) bool {
	if !r.cadence.defers || hits.tokens >= q.length()-1 {
		return false
	}
	r.cadence.stops = true
	r.cadence.turnedAway++
	return true
}

// endCadence notes what the next batches must know of b.
func (r *replica) endCadence(b *batch) {
	x := &r.cadence
	x.passed = append(x.passed, r.skippedNow...)
	if b.Preempted == 0 && !x.defers {
		x.saturated = slices.ContainsFunc(r.waiting, func(q *request) bool {
			return !slices.Contains(x.passed, q) && (q.Grammar == "" || q.outcome.ScheduledUS != Never)
		})
	}
	if len(b.entries) > 0 {
		x.formed++
	}
	if x.prefills {
		x.prefilled = x.formed
	}
}

// RandomCadence is one of the other random cases, with prompts in some steps only.
func RandomCadence(seed uint64) (Config, []Request) {
	if seed%3 == 0 {
		c, requests := RandomRanks(seed)
		return withCadence(seed, c), requests
	} else if seed%3 == 1 && seed%4 == 0 {
		c, requests := RandomSessions(seed)
		return withCadence(seed, c), requests
	}
	return RandomCadenceAlone(seed)
}

// RandomCadenceAlone is RandomCadence without ranks and sessions.
func RandomCadenceAlone(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x616c6f6e))}
	c, requests := pick(d, Random, Random, RandomGroups, RandomSpeculation, RandomLoRA, RandomGrammars, RandomPipeline,
		RandomEncoder)(seed)
	return withCadence(seed, c), requests
}

// withCadence draws a PrefillInterval.
func withCadence(seed uint64, c Config) Config {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x63616465))}
	c.PrefillInterval = pick(d, 2, 2, 3, 4, 7, 16)
	return c
}
