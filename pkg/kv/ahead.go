package kv

// Ahead is which prompts will have been computed by the time that somebody's turn
// comes: as far as his own begins as one of them does, it will be cached, too. The
// zero value is none.
type Ahead struct{ ends map[Node]int32 }

// Clear forgets all prompts.
func (a *Ahead) Clear() { clear(a.ends) }

// Add puts the first tokens of path before all that is asked from then on.
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

// shared is how many leading tokens of path others compute before.
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

// MatchBehind is Match once all in a have been computed.
func (c *Cache) MatchBehind(path Path, upto int, a *Ahead) int {
	now := c.Match(path, upto)
	if !c.caching {
		return now
	}
	return max(now, int(min(a.shared(path), int32(upto))/c.blockSize)*int(c.blockSize))
}

// Path is what s consists of.
func (c *Cache) Path(s Seq) Path { return c.seqs[s].path }
