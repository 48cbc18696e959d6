package kv

// Pending is the set of prompts that will have been computed before a request's turn: the prefix it
// shares with one of them will be cached, too. The zero value is empty.
type Pending struct{ ends map[Node]int32 }

// Clear removes all prompts.
func (a *Pending) Clear() { clear(a.ends) }

// Add adds a prompt: the first tokens tokens of path.
func (a *Pending) Add(path Path, tokens int) {
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

// shared returns how many leading tokens of path the pending prompts have.
func (a *Pending) shared(path Path) (tokens int32) {
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

// MatchAfter is what Match will return once all pending prompts have been computed.
func (c *Cache) MatchAfter(path Path, upto int, a *Pending) int {
	now := c.Match(path, upto)
	if !c.caching {
		return now
	}
	return max(now, int(min(a.shared(path), int32(upto))/c.blockSize)*int(c.blockSize))
}

// Path returns the path of an open sequence.
func (c *Cache) Path(s Seq) Path { return c.seqs[s].path }
