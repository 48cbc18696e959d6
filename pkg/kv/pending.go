package kv

// PendingPrompts is the set of prompts that will have been computed before a request's turn: the
// prefix that it shares with one of them will be cached, too. The zero value is empty.
type PendingPrompts struct {
	// ends has, for each node of the prompts, how many tokens of its sequence they reach.
	ends map[Node]int32
}

// Clear removes all prompts.
func (a *PendingPrompts) Clear() { clear(a.ends) }

// Add adds a prompt: the given number of leading tokens of path.
func (a *PendingPrompts) Add(path Path, tokens int) {
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

// sharedTokens returns how many leading tokens of path one of the prompts has, too.
func (a *PendingPrompts) sharedTokens(path Path) (tokens int32) {
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

// MatchAfter returns what Match will return once all prompts in a have been computed.
func (c *Cache) MatchAfter(path Path, upto int, a *PendingPrompts) int {
	now := c.Match(path, upto)
	if !c.caching {
		return now
	}
	return max(now, int(min(a.sharedTokens(path), int32(upto))/c.blockSize)*int(c.blockSize))
}

// Path returns the path of an open sequence.
func (c *Cache) Path(s Seq) Path { return c.seqs[s].path }
