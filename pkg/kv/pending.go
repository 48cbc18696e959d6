package kv

import "slices"

// PendingPrompts is a set of prompts that a replica will compute before a given request. The request will
// hit the longest prefix that it shares with one of them. The zero value is empty.
type PendingPrompts struct {
	// covered[n] is how far the prompts reach in node n, in tokens from the start of a sequence.
	covered map[Node]int32
	// replaced are the values that prompts since Mark have replaced, if marked.
	marked   bool
	replaced []Span
}

// Clear removes all prompts and the mark.
func (p *PendingPrompts) Clear() {
	clear(p.covered)
	p.marked, p.replaced = false, p.replaced[:0]
}

// Mark sets the state to which Undo returns.
func (p *PendingPrompts) Mark() { p.marked, p.replaced = true, p.replaced[:0] }

// Undo removes the prompts that were added since Mark.
func (p *PendingPrompts) Undo() {
	for _, old := range slices.Backward(p.replaced) {
		if old.End == 0 {
			delete(p.covered, old.Node)
		} else {
			p.covered[old.Node] = old.End
		}
	}
	p.marked, p.replaced = false, p.replaced[:0]
}

// Add adds a prompt: the first n tokens of path.
func (p *PendingPrompts) Add(path Path, n int) {
	if p.covered == nil {
		p.covered = map[Node]int32{}
	}
	for _, span := range path {
		end := min(span.End, int32(n))
		before := p.covered[span.Node]
		if p.marked {
			p.replaced = append(p.replaced, Span{span.Node, before})
		}
		p.covered[span.Node] = max(before, end)
		if end < span.End {
			return
		}
	}
}

// sharedTokens returns the length in tokens of the longest prefix that path shares with a prompt.
func (p *PendingPrompts) sharedTokens(path Path) (tokens int32) {
	if len(p.covered) == 0 {
		return 0
	}
	for _, span := range path {
		end := p.covered[span.Node]
		if end < span.End {
			return max(tokens, end)
		}
		tokens = span.End
	}
	return tokens
}

// MatchAfter returns what Match will return once all prompts in p have been computed, if nothing is
// evicted meanwhile. With groups it is an estimate: it assumes that windows are hashed where prompts part.
func (c *Cache) MatchAfter(path Path, n int, p *PendingPrompts) int {
	now := c.Match(path, n)
	if !c.caching {
		return now
	}
	shared := min(p.sharedTokens(path)-c.lookahead, int32(n)) / c.blockSize
	if c.dropLastHit {
		shared--
	}
	return max(now, int(shared)*int(c.blockSize))
}
