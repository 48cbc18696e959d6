package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Random draws a small cluster and its requests from a seed, for comparing two simulators. In most
// cases requests compete for step tokens, batch slots or blocks. The ids are req-0, req-1, … in
// order of arrival.
func Random(seed uint64) (Config, []Request) { return random(seed, false, false) }

// RandomGroups is Random with KV cache groups, half of the time with recurrent states among them.
func RandomGroups(seed uint64) (Config, []Request) { return random(seed, true, seed%2 == 0) }

// random draws a case with certain switches and groups, or with recurrent states among them, or leaves them to chance.
func random(seed uint64, groups, states bool) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x626c6973)), names: []string{"p", "p", "q"}}
	d.input = pick(d, 1, 4, 8, 12, 20, 30, 60)
	d.output = pick(d, 1, 4, 8, 12, 20, 40)
	c := d.cluster()
	deadlinePercent := pick(d, 0, 0, 10, 30, 60) // share of requests with a deadline
	equalOutputs := d.percent(30)                // all outputs have the same length, and so end together
	count := pick(d, 3, 8, 15, 15, 25, 40)
	switch {
	case d.percent(30):
		d.preemptionStorm(&c)
	case d.percent(20):
		d.rushHour(&c)
		deadlinePercent, count = 60, 60
	}
	// Switches come from their own generator: adding them did not change the cases of the seeds.
	s := &generator{Rand: rand.New(rand.NewPCG(seed, 0x73776974))}
	if groups || s.percent(47) { // the others have none and use beta for step times
		s.switches(&c)
	}
	if c.Async && s.percent(25) {
		d.bursts(s, &c)
		deadlinePercent, count = pick(s, 0, 50, 80), pick(s, 8, 25, 40)
	}
	// So do the policies.
	p := &generator{Rand: rand.New(rand.NewPCG(seed, 0x706f6c69))}
	p.policies(&c)
	// And so do the rules for choices.
	t := &generator{Rand: rand.New(rand.NewPCG(seed, 0x74696573))}
	t.choices(&c)
	// And so do the KV cache groups.
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x67726f75)), input: d.input, output: d.output}
	if groups || c.Switches != (Switches{}) && g.percent(60) {
		g.groups(&c)
		// And so do recurrent states.
		s := &generator{Rand: rand.New(rand.NewPCG(seed, 0x73746174)), input: d.input, output: d.output}
		if states || !groups && s.percent(40) {
			s.states(&c)
		}
	}
	d.stepUS = c.stepTime(batchOf(min(c.MaxNumBatchedTokens, d.input), 2, d.input))
	requests := make([]Request, count)
	span := int(float64(d.stepUS) * float64(len(requests)) * pick(d, 0, 0.1, 0.3, 1, 3))
	arrivals := d.arrivals(len(requests), span)
	if d.percent(20) {
		c.HorizonUS = int64(d.between(0, span+20*int(d.stepUS)))
	}
	for i := range requests {
		r := &requests[i]
		*r = Request{ID: fmt.Sprintf("req-%d", i), ArrivalUS: arrivals[i], DeadlineUS: Never}
		r.Output = d.between(1, d.output)
		if equalOutputs {
			r.Output = d.output
		}
		if d.bursty && d.percent(60) {
			r.Output = d.between(1, 3)
		}
		d.prompt(&c, r, requests[:i])
		if d.percent(deadlinePercent) {
			r.DeadlineUS = r.ArrivalUS + d.deadlineAfter(&c, r.Input)
		}
	}
	if c.SnapshotUS > 0 {
		c.SnapshotUS = max(1, d.stepUS*c.SnapshotUS/4)
	}
	if c.Scheduler != "" {
		p.assignPriorities(requests)
	}
	// And so do the ends of outputs.
	e := &generator{Rand: rand.New(rand.NewPCG(seed, 0x656f73))}
	if e.percent(30) {
		share := pick(e, 20, 50, 100)
		for i := range requests {
			requests[i].EOS = e.percent(share)
		}
	}
	return c, requests
}

// generator draws one case.
type generator struct {
	*rand.Rand
	// input and output bound the lengths of ordinary requests.
	input, output int
	// names are the ids of the segments that prompts start with.
	names []string
	// shortDeadlines: deadlines are early. bursty: the case comes from bursts.
	shortDeadlines, bursty bool
	// stepUS is the approximate duration of a step in µs.
	stepUS int64
}

func (d *generator) percent(p int) bool { return d.IntN(100) < p }

// between draws from lo to hi, both inclusive.
func (d *generator) between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

func pick[T any](d *generator, of ...T) T { return of[d.IntN(len(of))] }

// cluster draws a configuration that can serve ordinary requests but mostly lacks memory, batch
// slots or token budget.
func (d *generator) cluster() Config {
	slots := d.input + d.output - 1
	c := Config{
		Replicas:            pick(d, 1, 1, 1, 2, 2, 3, 4),
		MaxNumSeqs:          pick(d, 1, 2, 3, 5, 8, 256, 256),
		MaxNumBatchedTokens: pick(d, d.between(1, 8), d.between(1, 64), d.between(1, 64), 2*slots, 2048),
		BlockSize:           pick(d, 1, 2, 3, 4, 4, 8, 16),
		Chunked:             d.percent(70),
		PrefixCaching:       d.percent(85),
		Routing:             pick(d, "round-robin", "least-loaded", "weighted", "weighted"),
		ShadowBlocks:        pick(d, 0, 1, d.between(1, 8), d.between(4, 40)),
		HorizonUS:           Never,
	}
	needed := (slots + c.BlockSize - 1) / c.BlockSize
	c.NumBlocks = 1 + needed + pick(d, 0, 1, d.between(0, needed), d.between(0, 2*needed), d.between(0, 2*needed),
		10*needed)
	if d.percent(25) || !c.Chunked && d.percent(50) {
		c.LongPrefillThreshold = d.between(1, max(1, d.input/2))
	}
	if d.percent(20) {
		c.MaxModelLen = slots + 1 - d.between(0, slots/4)
	}
	if !c.Chunked && d.percent(50) {
		c.MaxNumBatchedTokens = pick(d, max(c.MaxNumBatchedTokens, slots), slots+d.between(0, slots/2))
	}
	d.timing(&c)
	if c.Routing == "weighted" {
		c.Scorers = pick(d,
			[]Scorer{{"prefix-affinity", 3}, {"queue-depth", 2}},
			[]Scorer{{"queue-depth", 0.7}, {"prefix-affinity", 1.3}},
			[]Scorer{{"prefix-affinity", 1}},
			[]Scorer{{"queue-depth", 1}},
		)
	}
	return c
}

// switches draws the engine switches of a case.
func (d *generator) switches(c *Config) {
	c.Async = d.percent(84)
	c.ReserveFull = d.percent(42)
	if d.percent(42) {
		c.Watermark = pick(d, 0.01, 0.03, 0.07, 0.1, 0.1, 0.15, 0.2, 0.25, 0.29, 0.3, 0.4, 0.5)
	}
	if d.percent(35) {
		c.Window = pick(d, 0, 1, 2, 4, 7, 16)
		weights := [11]int64{pick[int64](d, 1, 10, 1000)}
		for i := range weights[1:] {
			if i == 3 { // the longest context has that of prefill
				weights[1+i] = weights[1]
				continue
			}
			weights[1+i] = pick[int64](d, 0, 1, 2, 5)
		}
		c.StepTime = weighted(weights)
	}
	c.UnhashedFirst = d.percent(50)
	c.SpareLone, c.Adaptive = d.percent(50), d.percent(30)
	c.ContinueAfterSelf, c.SkipAfterIdle = d.percent(50), d.percent(30)
}

// groups draws KV cache groups and the rules for them, and more blocks.
func (d *generator) groups(c *Config) {
	// vLLM has only chunks that end with a block (make_local_attention_virtual_batches).
	kinds := []Group{{}, {Window: pick(d, 2, 3, 4, 7, 16)}, {Window: d.between(2, 40)},
		{Chunk: 2 * c.BlockSize * d.between(1, 3)}}
	sizes := []int{c.BlockSize, c.BlockSize, c.BlockSize, c.BlockSize, 2 * c.BlockSize}
	first := pick(d, kinds[0], kinds[0], kinds[0], kinds[1])
	for range d.between(1, 4) {
		first.BlockSize = pick(d, sizes...)
		c.Groups = append(c.Groups, first)
		first = pick(d, kinds[0], kinds[1], kinds[1], kinds[1], kinds[2], kinds[3], first)
	}
	c.BlockSize = c.alignment()
	c.Sparse, c.KeepUntilComputed, c.ReserveWindow = d.percent(60), d.percent(60), d.percent(60)
	if d.percent(40) {
		c.Interval = c.BlockSize * d.between(1, 4)
	}
	c.NumBlocks = 1 + max(c.NumBlocks*len(c.Groups)/pick(d, 1, 1, 2, 3),
		c.lone(d.input+d.output)-pick(d, 0, 0, 0, 2), 1)
	c.HashAll = !c.Sparse && d.percent(50)
}

// states replaces windows and chunks by recurrent states and draws the rules for them.
func (d *generator) states(c *Config) {
	block := Group{BlockSize: c.Groups[0].BlockSize}
	state := block
	state.State = true
	groups := []Group{block, state}
	for range d.between(0, 2) {
		groups = append(groups, pick(d, block, state, state))
	}
	if d.percent(50) { // as most models have them
		slices.Reverse(groups)
	}
	c.Groups, c.BlockSize = groups, block.BlockSize
	c.States = States{Chunks: pick(d, "prompts", "recomputed", "shared", "blocks", "blocks", "resumable", "resumable"),
		Checkpoint: d.percent(50), NextStep: d.percent(70), LastOnly: d.percent(30)}
	c.HashAll, c.Interval = !c.Sparse && c.HashAll, multiple(c.Interval, block.BlockSize)
	if !c.PrefixCaching {
		for i := range c.Groups {
			if c.Groups[i].State {
				c.Groups[i].BlockSize = 1024 * block.BlockSize // for a whole sequence
			}
		}
	} else if c.Chunked = true; c.States.Chunks != "blocks" && c.States.Chunks != "resumable" {
		c.MaxNumBatchedTokens = max(c.MaxNumBatchedTokens, block.BlockSize)
		if c.LongPrefillThreshold > 0 {
			c.LongPrefillThreshold = max(c.LongPrefillThreshold, block.BlockSize)
		}
	}
	c.NumBlocks = 1 + max(c.NumBlocks/pick(d, 1, 1, 2), c.lone(d.input+d.output)-pick(d, 0, 0, 0, 2), 1)
	if c.Async && c.KeepUntilComputed && c.States.LastOnly { // else a request that runs alone can lack blocks
		c.NumBlocks += len(groups) * block.blocks(d.input+d.output)
	}
}

// policies draws a queue order and a preemption policy for some of the cases, and the age of what
// routers see, in quarters of a step.
func (d *generator) policies(c *Config) {
	if d.percent(45) {
		c.Scheduler = pick(d, "fcfs", "priority-fcfs", "priority-fcfs", "reverse-priority", "sjf")
		c.Preemption = pick(d, "last-in", "lowest-priority", "lowest-priority")
	}
	if c.Replicas > 1 && d.percent(50) {
		c.Routing = pick(d, c.Routing, c.Routing, "least-snapshot")
		c.SnapshotUS = pick[int64](d, 0, 1, 2, 4, 10, 40)
		if c.Routing != "weighted" {
			c.Scorers = nil
		}
	}
}

// choices draws how routers choose among equals and by score, and for some of the cases another
// router.
func (d *generator) choices(c *Config) {
	if c.Replicas == 1 {
		return
	}
	c.Tie = pick(d, "random", "random", "least-inflight", "first")
	c.Picker = pick(d, "max-score", "max-score", "max-score", "random", "weighted-random")
	if d.percent(25) {
		c.Routing, c.Scorers = pick(d, "power-of-two", "prefix-affinity"), nil
	}
}

// assignPriorities gives requests priorities and predictions, many of them equal.
func (d *generator) assignPriorities(requests []Request) {
	levels := pick(d, []float64{0, 10, 50, 100}, []float64{1, 2}, []float64{-5, 0, 0.5})
	for i := range requests {
		requests[i].Priority = pick(d, levels...)
		requests[i].Predicted = d.between(1, pick(d, 3, 50))
	}
}

// preemptionStorm makes memory the only scarce resource: many sequences start and grow at once and
// keep preempting each other.
func (d *generator) preemptionStorm(c *Config) {
	d.input = min(d.input, 12)
	d.output = max(d.output, 12)
	c.MaxNumSeqs = pick(d, 8, 256)
	c.MaxNumBatchedTokens = d.between(d.input+d.output, 256)
	c.MaxModelLen = 0
	needed := (d.input + d.output + c.BlockSize - 2) / c.BlockSize
	c.NumBlocks = 1 + needed + d.between(0, needed)
}

// rushHour makes many short requests that hit each other's blocks and several of which are aborted
// in one step.
func (d *generator) rushHour(c *Config) {
	d.shortDeadlines = true
	d.names = []string{"p", "q", "r", "s", "t", "u", "v", "w"}
	d.input = d.between(4, 16)
	d.output = pick(d, 2, 4, 8)
	c.Replicas = 1
	c.BlockSize = pick(d, 1, 2, 4)
	c.NumBlocks = 1 + (2+d.IntN(4))*(d.input+d.output)/c.BlockSize
	c.MaxNumSeqs, c.MaxNumBatchedTokens, c.MaxModelLen = 256, 256, 0
	c.PrefixCaching = true
}

// bursts makes some sequences so short that in most steps one gets its last token, while others grow
// and need its blocks and its batch slot. Prompts continue outputs that are still being generated.
// The parameters come from generator s.
func (d *generator) bursts(s *generator, c *Config) {
	d.bursty = true
	d.input = s.between(4, 16)
	d.output = pick(s, 3, 6, 12)
	slots := d.input + d.output - 1
	c.BlockSize = pick(s, 1, 1, 2, 3)
	needed := (slots + c.BlockSize - 1) / c.BlockSize
	c.NumBlocks = 1 + needed + s.between(0, needed)
	c.MaxNumSeqs = pick(s, 2, 3, 5, 256, 256)
	c.ReserveFull = c.ReserveFull && s.percent(50)
	c.MaxNumBatchedTokens = slots + s.between(0, 3*slots)
	c.MaxModelLen = 0
}

// timing draws the latencies, including steps of 1 µs and times that end in a half.
func (d *generator) timing(c *Config) {
	c.Beta = pick(d,
		[]float64{0, 0, 0}, []float64{1, 0, 0}, []float64{3, 0, 2}, []float64{10, 1, 1},
		[]float64{10, 1, 1, 1}, []float64{0.5, 0.25, 0.5, 0.125}, []float64{0, 2.5, 1.5},
		[]float64{10000, 50, 200}, []float64{10000, 50, 200, 0.5})
	c.Alpha = pick(d,
		[4]float64{}, [4]float64{}, [4]float64{2, 0, 1}, [4]float64{0, 1, 0},
		[4]float64{0.5, 0.5, 0.5, 0.25}, [4]float64{2000, 3.5, 30}, [4]float64{0, 0, 0, 5})
	tick := c.stepTime(batchOf(d.input, 1, 0))
	c.AdmissionLatencyUS = pick(d, 0, 0, 0, 1, tick/2, 2*tick)
	c.RoutingLatencyUS = pick(d, 0, 0, 0, 1, tick/2, 2*tick)
}

// arrivals draws n times from 0 to span in ascending order, some of them equal.
func (d *generator) arrivals(n, span int) []int64 {
	times := make([]int64, n)
	for i := range times {
		times[i] = int64(d.between(0, span))
		if i > 0 && d.percent(25) {
			times[i] = times[i-1]
		}
	}
	slices.Sort(times)
	return times
}

// prompt draws the prompt of a request that follows others.
func (d *generator) prompt(c *Config, r *Request, earlier []Request) {
	r.Input = pick(d, 1, d.between(1, d.input), d.between(1, d.input), d.fullBlocks(c), d.input)
	if d.percent(3) {
		// Most likely infeasible for one reason or another.
		r.Input = d.between(d.input, d.input+2*c.NumBlocks*c.BlockSize)
		return
	}
	if len(earlier) == 0 {
		d.namedPrompt(c, r)
		return
	}
	before, kind := earlier[d.IntN(len(earlier))], d.IntN(5)
	if d.bursty {
		before, kind = earlier[max(0, len(earlier)-d.between(1, 3))], pick(d, kind, 2)
	}
	switch kind {
	case 0: // unique
	case 1: // the same prompt again
		r.Input, r.Prompt = before.Input, before.Prompt
	case 2: // a turn that goes on from what another one was answered, perhaps not yet
		r.Prompt = slices.Clone(before.Prompt)
		r.Prompt = append(r.Prompt, Segment{ID: before.ID + ".out", Tokens: d.between(1, before.Output+1)})
		if d.percent(50) {
			r.Prompt = append(r.Prompt, Segment{ID: "more", Tokens: d.between(1, c.BlockSize)})
		}
		d.fitPrompt(r, pick(d, 0, 0, 1, d.between(0, c.BlockSize)))
	default:
		d.namedPrompt(c, r)
	}
}

// fullBlocks draws a length of full blocks.
func (d *generator) fullBlocks(c *Config) int {
	return c.BlockSize * d.between(1, max(1, d.input/c.BlockSize))
}

// namedPrompt gives the request one or two of the few segments, in different lengths, and leaves
// part of its prompt unique or nothing.
func (d *generator) namedPrompt(c *Config, r *Request) {
	r.Prompt = []Segment{{ID: pick(d, d.names...), Tokens: pick(d, 1, r.Input, d.between(1, r.Input), d.fullBlocks(c))}}
	if d.percent(40) {
		r.Prompt = append(r.Prompt, Segment{ID: pick(d, "p", "x", "y"), Tokens: pick(d, d.between(1, r.Input),
			d.fullBlocks(c))})
	}
	d.fitPrompt(r, pick(d, 0, 0, 1, d.between(0, c.BlockSize)))
}

// fitPrompt cuts the segments to the length of ordinary inputs and appends some unique tokens if
// they fit.
func (d *generator) fitPrompt(r *Request, unique int) {
	room := d.input
	for i := range r.Prompt {
		r.Prompt[i].Tokens = min(r.Prompt[i].Tokens, room)
		room -= r.Prompt[i].Tokens
	}
	r.Prompt = slices.DeleteFunc(r.Prompt, func(s Segment) bool { return s.Tokens == 0 })
	r.Input = d.input - room + min(unique, room)
}

// deadlineAfter draws the time from arrival to deadline so that deadlines hit every stage.
func (d *generator) deadlineAfter(c *Config, input int) int64 {
	admission, routing, delay := c.AdmissionLatencyUS, c.RoutingLatencyUS, c.queueDelay(input)
	queue := admission + routing + delay
	if d.shortDeadlines || d.bursty && d.percent(70) {
		return queue + d.Int64N(5*d.stepUS)
	}
	return pick(d,
		0,
		d.Int64N(admission+1),
		admission+d.Int64N(routing+1),
		admission+routing+d.Int64N(delay+1),
		queue+d.Int64N(3*d.stepUS),
		queue+d.stepUS*d.Int64N(20),
		queue+d.Int64N(20*d.stepUS),
		queue+d.Int64N(100*d.stepUS))
}

// batchOf returns a batch with these sums.
func batchOf(prefill, decode, context int) Batch {
	return Batch{Prefill: int64(prefill), Decode: int64(decode), Context: int64(context)}
}
