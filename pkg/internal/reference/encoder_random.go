package reference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// RandomEncoder is Random with images, RandomGroups in one of three cases.
func RandomEncoder(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x656e636f))}
	draw := pick(d, Random, Random, RandomGroups)
	c, requests := draw(seed)
	for again := seed; slices.ContainsFunc(c.Groups, func(g Group) bool { return g.State }); {
		again += 1<<32 + 1
		c, requests = draw(again)
	}
	tokens := make([]int, d.between(1, 8))
	for i := range tokens {
		tokens[i] = d.between(1, pick(d, 2, 5, 12, 30))
	}
	share := pick(d, 30, 60, 100)
	for i := range requests {
		if d.percent(share) {
			d.images(&requests[i], tokens)
		}
	}
	if c.Groups == nil && d.percent(30) {
		d.preemptImages(&c, requests)
	}
	return withEncoder(d, c, requests), requests
}

// preemptImages makes requests with images of a low priority lose their blocks to others.
func (d *generator) preemptImages(c *Config, requests []Request) {
	c.Scheduler, c.Preemption, c.Victim, c.MaxNumSeqs = "priority-fcfs", "lowest-priority", nil, 256
	c.MaxNumBatchedTokens, c.LongPrefillThreshold = d.between(40, 200), d.between(1, 8)
	c.ReserveFull, c.Watermark = false, 0
	most := 0
	for i := range requests {
		requests[i].Priority = float64(d.IntN(4))
		requests[i].ArrivalUS = int64(i) * c.stepTime(batchOf(4, 2, 8)) / 2
		requests[i].DeadlineUS = Never
		named := 0
		for k := range requests[i].Prompt {
			s := &requests[i].Prompt[k]
			if named += s.Tokens; s.Media && d.percent(80) {
				s.ID += " of " + requests[i].ID
			}
		}
		requests[i].Input = max(named, min(requests[i].Input, 60))
		most = max(most, requests[i].Input+requests[i].Output)
	}
	if c.MaxModelLen > 0 {
		c.MaxModelLen = most
	}
	c.NumBlocks = max(c.NumBlocks/8, 2+most/c.BlockSize+d.IntN(4))
	c.HorizonUS = requests[len(requests)-1].ArrivalUS + 1000*c.stepTime(batchOf(4, 2, 8))
}

// RandomEncoderSessions is RandomSessions or RandomRetries with some of the segments as images.
func RandomEncoderSessions(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x656e6373))}
	c, requests := pick(d, RandomSessions, RandomRetries)(seed)
	images := map[string]bool{}
	for i := range requests {
		prompt := slices.Clone(requests[i].Prompt)
		for k := range prompt {
			id := prompt[k].ID
			if _, known := images[id]; !known {
				images[id] = d.percent(60) && !strings.HasSuffix(id, ".out")
			}
			prompt[k].Media = images[id]
		}
		requests[i].Prompt = prompt
	}
	return withEncoder(d, c, requests), requests
}

// images replaces the prompt of a request behind its first segment by images and text.
func (d *generator) images(r *Request, tokens []int) {
	var prompt []Segment
	if len(r.Prompt) > 0 && d.percent(50) {
		prompt = append(prompt, r.Prompt[0])
	}
	room := r.Input
	for _, s := range prompt {
		room -= s.Tokens
	}
	for range d.between(1, 8) {
		k := min(d.IntN(len(tokens)), d.IntN(len(tokens)))
		s := Segment{ID: fmt.Sprint("image-", k), Tokens: tokens[k], Media: true}
		if d.percent(40) {
			s = Segment{ID: fmt.Sprint("text-", d.IntN(3)), Tokens: d.between(1, 6)}
		}
		if s.Tokens > room {
			continue
		}
		room -= s.Tokens
		prompt = append(prompt, s)
	}
	r.Prompt = prompt
}

// withEncoder draws an encoder for the images of the requests. The step times are those of Beta.
func withEncoder(d *generator, c Config, requests []Request) Config {
	largest := 1
	for _, r := range requests {
		for _, s := range r.Prompt {
			if s.Media {
				largest = max(largest, s.Tokens)
			}
		}
	}
	c.StepTime = nil
	e := &Encoder{ItemUS: pick(d, 0, 0, 3, 40.5), TokenUS: pick(d, 0, 1, 0.3, 12)}
	e.Budget = max(largest, pick(d, 1, largest+d.between(0, largest), c.MaxNumBatchedTokens))
	e.Cache = max(largest, pick(d, 1, largest+d.between(0, 2*largest), c.MaxNumBatchedTokens))
	fits := largest <= c.MaxNumBatchedTokens && (c.LongPrefillThreshold == 0 || largest <= c.LongPrefillThreshold)
	e.Whole = fits && d.percent(40)
	if slices.ContainsFunc(c.Groups, func(g Group) bool { return g.State }) {
		// A chunk that ends before an image and is cut to whole blocks may be empty. Then a request never goes on, in
		// vLLM as here.
		e.Whole, e.Budget, e.Cache = false, 1<<20, 1<<20
	}
	c.Encoder = e
	return c
}
