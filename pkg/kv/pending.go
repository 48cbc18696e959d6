package kv

// Ahead is which prompts will have been computed by the time that a request's turn
// comes: as far as its own begins as one of them does, it will be cached, too. The
// zero value is none.
type Ahead struct{ ends map[Node]int32 }

// Clear forgets all prompts.
func (a *Ahead) Clear() { clear(a.ends) }

// Add puts so many tokens of path, its first, before all that is asked from then on.
func (a *Ahead) Add(path Path, tokens int) {
	if a.ends == nil {
		a.ends = map[Node]int32{}
	}
	for _, s := range path {
		end := min(s.End, int32(tokens))
		a.ends[s.Node] = max(a.ends[s.Node], end)
		if end < s.End {
			return
		}
	}
}

// shared is how many leading tokens of path the prompts ahead have.
func (a *Ahead) shared(path Path) (tokens int32) {
	if len(a.ends) == 0 {
		return 0
	}
	for _, s := range path {
		end := a.ends[s.Node]
		if end < s.End {
			return max(tokens, end)
		}
		tokens = s.End
	}
	return tokens
}

// MatchBehind is Match as it will be once all in a have been computed.
func (c *Cache) MatchBehind(path Path, upto int, a *Ahead) int {
	now := c.Match(path, upto)
	if !c.caching {
		return now
	}
	return max(now, int(min(a.shared(path), int32(upto))/c.blockSize)*int(c.blockSize))
}

// Path is that of an open sequence.
func (c *Cache) Path(s Seq) Path { return c.seqs[s].path }
