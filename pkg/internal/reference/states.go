package reference

import "slices"

// States are the rules for groups with a recurrent state.
type States struct {
	// Chunks says where chunks of prompts end: prompts (also ""), recomputed, shared, blocks or resumable.
	Chunks string
	// Checkpoint: the last chunk of a prompt also writes the state at the last end of a block before its own end.
	Checkpoint bool
	// NextStep admits no request whose hit ends with a state that is hashed in the same step.
	NextStep bool
	// LastOnly frees, of states behind a gap, only the one before the newest.
	LastOnly bool
}

// multiple is the largest multiple of size that is at most n.
func multiple(n, size int) int { return n / size * size }

// stateBlock is the number of tokens in a block of hashed states, 0 if there are none.
func (c *Config) stateBlock() int {
	for _, g := range c.groups() {
		if g.State && c.PrefixCaching {
			return g.BlockSize
		}
	}
	return 0
}

// aligned cuts a chunk of n tokens after the first start tokens of a request; first is its first chunk.
func (r *replica) aligned(q *request, start, n int, first bool) int {
	c, size := r.config, r.config.stateBlock()
	if size == 0 {
		return n
	}
	known := q.visible()
	prompt := max(q.Input, known-1)
	switch c.States.Chunks {
	case "", "prompts":
		if q.outcome.Generated > 0 {
			return n
		}
		return cutBefore(start, n, size, multiple(q.Input, size))
	case "recomputed", "shared":
		if start >= prompt {
			return n
		}
		n = cutBefore(start, n, size, multiple(known, size))
		if common := q.junction - start; c.States.Chunks == "shared" && first && common >= size && n > common {
			n = multiple(common, size)
		}
		return n
	}
	if start >= prompt {
		return n
	}
	end := start + n
	if c.States.Checkpoint && end >= prompt && start%size == 0 && start+size <= multiple(prompt-1, size) {
		if start < q.junction && q.junction < end {
			end = start + multiple(q.junction-start, size)
		}
		return end - start
	}
	if end < prompt {
		most := c.MaxNumBatchedTokens
		if c.LongPrefillThreshold > 0 {
			most = min(most, c.LongPrefillThreshold)
		}
		if down := multiple(end, size); down > start || size <= most {
			end = down
		}
	}
	last := multiple(known, size)
	if c.States.Chunks == "resumable" {
		last = multiple(known-1, size)
	}
	stops := []int{last}
	if start%size != 0 {
		stops = append(stops, multiple(start, size)+size)
	}
	if start < q.junction && q.junction < end {
		stops = append(stops, start+multiple(q.junction-start, size))
	}
	for _, s := range stops {
		if start < s && s < end {
			end = s
		}
	}
	return max(0, end-start)
}

// cutBefore cuts a chunk of n tokens to end at last, or to a multiple of size if it ends before.
func cutBefore(start, n, size, last int) int {
	switch {
	case start+n < last:
		return multiple(n, size)
	case start < last && last < start+n:
		return last - start
	}
	return n
}

// states is the most states that a request with this many blocks holds, except for those that LastOnly leaves.
func (c *Config) states(blocks int) int {
	most := 2
	if c.States.Checkpoint {
		most++
	}
	if c.KeepUntilComputed {
		most++
	}
	return min(blocks, most)
}

// places is how many of the last missing places in the table of a group get a block if a request computes the
// tokens from start to end. For a state that is the last one or, with a checkpoint, the last two.
func (c *Config) places(q *request, g Group, start, end, missing int) int {
	if !g.State {
		return missing
	}
	checkpoint := c.States.Checkpoint && start%g.BlockSize == 0 && start+g.BlockSize <= multiple(end-1, g.BlockSize)
	if c.Sparse && c.Interval == 0 && end < max(q.Input, q.visible()-1) {
		checkpoint = false
	}
	if checkpoint {
		return min(missing, 2)
	}
	return min(missing, 1)
}

// isFresh reports whether hits end with a state that is hashed in the step that is formed.
func (r *replica) isFresh(q *request, hits hit) bool {
	for k, g := range r.config.groups() {
		if g.State && r.config.States.NextStep && hits.tokens > 0 &&
			slices.Contains(r.fresh, q.blockHash(k, hits.tokens)) {
			r.deferred++
			return true
		}
	}
	return false
}

// retire frees states of a request with LastOnly: those before place left up to a gap, and the one before the
// newest if it is before place passed.
func (r *replica) retire(q *request, k, left, passed int) {
	table := q.tables[k]
	first := left
	for first > 0 && table[first-1] != null {
		first--
	}
	r.cache.release(table[first:left])
	for i := first; i < left; i++ {
		table[i] = null
	}
	if last := q.lastState[k]; last < passed && table[last] != null {
		r.cache.release(table[last : last+1])
		table[last] = null
	}
}
