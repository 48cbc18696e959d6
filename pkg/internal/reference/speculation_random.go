package reference

import "math/rand/v2"

// RandomSpeculation is Random with speculative decoding, without KV cache groups. The caller sets Draw.
func RandomSpeculation(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x73706563))}
	c, requests := Random(seed)
	if c.Groups != nil {
		c.BlockSize = c.Groups[0].BlockSize
	}
	c.Groups, c.States, c.Interval = nil, States{}, 0
	c.Sparse, c.HashAll, c.KeepUntilComputed, c.ReserveWindow = false, false, false, false
	s := &Speculation{Tokens: pick(d, 1, 1, 2, 3, 5, 8),
		DraftUS: pick(d, [2]float64{}, [2]float64{3, 1}, [2]float64{0.5, 0.25})}
	c.Speculation = s
	switch d.IntN(4) {
	case 0: // n-grams
	case 1: // a draft model
		s.Lookahead, s.BudgetSlots = s.Tokens, 1
	default: // EAGLE or MTP
		s.Lookahead = s.Tokens
		if s.HashLookahead = 1; d.percent(40) {
			s.HashLookahead, s.DropLastHit = 0, true
		}
	}
	if d.percent(25) {
		s.Schedule = []int{s.Tokens}
		for n := s.Tokens; len(s.Schedule) < 9; {
			n = max(0, n-pick(d, 0, 0, 1, s.Tokens))
			s.Schedule = append(s.Schedule, n)
		}
	}
	for range s.Tokens {
		s.Rates = append(s.Rates, pick(d, 0, 0.3, 0.6, 0.8, 1))
	}
	if d.percent(20) {
		for i := range requests {
			if d.percent(50) {
				requests[i].DraftAcceptance = new(pick(d, 0, 0.5, 1))
			}
		}
	}
	// The threshold does not cut the drafts of a request, as vLLM demands.
	if c.LongPrefillThreshold > 0 {
		c.LongPrefillThreshold = max(c.LongPrefillThreshold, 1+s.Tokens)
	}
	c.MaxNumBatchedTokens = max(c.MaxNumBatchedTokens, 1+s.Tokens+s.BudgetSlots)
	longest := 0
	for _, r := range requests {
		if c.MaxModelLen == 0 || r.Input+r.Output <= c.MaxModelLen {
			longest = max(longest, c.lone(c.mostSlots(r.Input, r.Output)))
		}
	}
	if d.percent(90) {
		c.NumBlocks = max(c.NumBlocks, 1+min(longest, c.NumBlocks+8*s.Tokens))
	}
	if d.percent(15) {
		longest := 0
		for _, r := range requests {
			longest = max(longest, r.Input+r.Output)
		}
		c.MaxModelLen = longest + d.between(0, s.Tokens)
	}
	return c, requests
}
