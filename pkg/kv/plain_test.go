package kv

import (
	"fmt"
	"slices"
)

// plain is the cache as vLLM writes it: single blocks, a list of free ones in
// the order of eviction, and for each content the blocks that have it in the
// order of registration.
type plain struct {
	size    int
	caching bool
	window  Window
	blocks  []plainBlock
	free    []int
	known   map[string][]int
}

type plainBlock struct {
	content string
	refs    int
}

type plainSeq struct {
	segments []Segment
	output   string
	input    int
	blocks   []int
	hashed   int
	extra    []int
}

func newPlain(blocks, size int, caching bool, w Window) *plain {
	p := &plain{size: size, caching: caching, window: w, blocks: make([]plainBlock, blocks), known: map[string][]int{}}
	for i := range blocks {
		p.free = append(p.free, i)
	}
	return p
}

// content names the first n tokens of q.
func (q *plainSeq) content(n int) string {
	text, left := "", n
	for _, s := range q.segments {
		d := min(s.Tokens, left)
		if d > 0 {
			text += fmt.Sprintf("%s:%d|", s.ID, d)
		}
		left -= d
	}
	if left > 0 {
		text += fmt.Sprintf("%s:%d|", q.output, left)
	}
	return text
}

func (p *plain) lookup(q *plainSeq, upto int) []int {
	var hits []int
	for j := 1; p.caching && j*p.size <= upto; j++ {
		have := p.known[q.content(j*p.size)]
		if len(have) == 0 {
			break
		}
		hits = append(hits, have[0])
	}
	return hits
}

// extend gives q its hits and blocks for upto tokens, if those for room tokens
// and spare more are free.
func (p *plain) extend(q *plainSeq, hits []int, upto, room, spare int) bool {
	count := (upto + p.size - 1) / p.size
	extra := p.window.Extra * min(count, p.window.Blocks)
	need := count - len(q.blocks) - len(hits)
	asked := (room + p.size - 1) / p.size
	asked += p.window.Extra*min(asked, p.window.Blocks) - len(q.blocks) - len(q.extra) - len(hits) + spare
	idle := 0
	for _, b := range hits {
		if p.blocks[b].refs == 0 {
			idle++
		}
	}
	if asked+idle > len(p.free) {
		return false
	}
	for _, b := range hits {
		if p.blocks[b].refs == 0 {
			p.free = slices.DeleteFunc(p.free, func(f int) bool { return f == b })
		}
		p.blocks[b].refs++
		q.blocks = append(q.blocks, b)
		q.hashed++
	}
	for range need {
		q.blocks = append(q.blocks, p.take())
	}
	for len(q.extra) < extra {
		q.extra = append(q.extra, p.take())
	}
	return true
}

// take takes the block that is first in line for eviction.
func (p *plain) take() int {
	b := p.free[0]
	p.free = p.free[1:]
	p.drop(b)
	p.blocks[b].refs = 1
	return b
}

// know registers the blocks that the first tokens tokens of q fill.
func (p *plain) know(q *plainSeq, tokens int) {
	for p.caching && q.hashed < tokens/p.size {
		b := q.blocks[q.hashed]
		q.hashed++
		text := q.content(q.hashed * p.size)
		p.blocks[b].content = text
		p.known[text] = append(p.known[text], b)
	}
}

func (p *plain) release(q *plainSeq) {
	for _, b := range q.extra {
		p.blocks[b].refs--
		p.free = append(p.free, b)
	}
	for _, b := range slices.Backward(q.blocks) {
		if p.blocks[b].refs--; p.blocks[b].refs == 0 {
			p.free = append(p.free, b)
		}
	}
	q.blocks, q.extra, q.hashed = nil, nil, 0
}

// forget makes copies of a content that have no holder blank and the first to be
// taken.
func (p *plain) forget(content string) {
	for _, b := range slices.Clone(p.known[content]) {
		if p.blocks[b].refs > 0 {
			continue
		}
		p.drop(b)
		p.free = slices.DeleteFunc(p.free, func(f int) bool { return f == b })
		p.free = slices.Insert(p.free, 0, b)
	}
}

// drop makes block b blank.
func (p *plain) drop(b int) {
	if old := p.blocks[b].content; old != "" {
		if p.known[old] = slices.DeleteFunc(p.known[old], func(f int) bool { return f == b }); len(p.known[old]) == 0 {
			delete(p.known, old)
		}
	}
	p.blocks[b].content = ""
}
