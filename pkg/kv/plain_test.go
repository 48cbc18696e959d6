package kv

import (
	"fmt"
	"slices"
)

// plainCache is the cache as vLLM writes it: single blocks, a list of free ones in order of
// eviction, and for each content its blocks in order of registration.
type plainCache struct {
	size    int
	caching bool
	// unhashedFirst: as in Config.
	unhashedFirst bool
	blocks        []plainBlock
	free          []int
	byContent     map[string][]int
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
}

func newPlainCache(cfg Config) *plainCache {
	p := &plainCache{size: cfg.BlockSize, caching: cfg.Caching, unhashedFirst: cfg.UnhashedFirst,
		blocks: make([]plainBlock, cfg.Blocks), byContent: map[string][]int{}}
	for i := range cfg.Blocks {
		p.free = append(p.free, i)
	}
	return p
}

// content describes the first n tokens of q.
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

func (p *plainCache) lookup(q *plainSeq, upto int) []int {
	var hits []int
	for j := 1; p.caching && j*p.size <= upto; j++ {
		have := p.byContent[q.content(j*p.size)]
		if len(have) == 0 {
			break
		}
		hits = append(hits, have[0])
	}
	return hits
}

// extend gives q its hits and blocks for upto tokens, if there are free blocks for reserve tokens
// and spare more.
func (p *plainCache) extend(q *plainSeq, hits []int, upto, reserve, spare int) bool {
	count := (upto + p.size - 1) / p.size
	need := count - len(q.blocks) - len(hits)
	wanted := (reserve + p.size - 1) / p.size
	wanted += spare - len(q.blocks) - len(hits)
	unheld := 0
	for _, b := range hits {
		if p.blocks[b].refs == 0 {
			unheld++
		}
	}
	if wanted+unheld > len(p.free) {
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
		q.blocks = append(q.blocks, p.allocate())
	}
	return true
}

// allocate takes the block that is next to be evicted.
func (p *plainCache) allocate() int {
	b := p.free[0]
	p.free = p.free[1:]
	p.drop(b)
	p.blocks[b].refs = 1
	return b
}

// publish registers the blocks that the first tokens tokens of q fill.
func (p *plainCache) publish(q *plainSeq, tokens int) {
	for p.caching && q.hashed < tokens/p.size {
		b := q.blocks[q.hashed]
		q.hashed++
		text := q.content(q.hashed * p.size)
		p.blocks[b].content = text
		p.byContent[text] = append(p.byContent[text], b)
	}
}

func (p *plainCache) release(q *plainSeq) {
	freed := slices.Clone(q.blocks)
	slices.Reverse(freed)
	var first, last []int
	for _, b := range freed {
		if p.blocks[b].refs--; p.blocks[b].refs > 0 {
			continue
		}
		if p.unhashedFirst && p.blocks[b].content == "" {
			first = append(first, b)
		} else {
			last = append(last, b)
		}
	}
	p.free = slices.Concat(first, p.free, last)
	q.blocks, q.hashed = nil, 0
}

// invalidate erases copies of a content that have no holder and puts them first in the free list.
func (p *plainCache) invalidate(content string) {
	for _, b := range slices.Clone(p.byContent[content]) {
		if p.blocks[b].refs > 0 {
			continue
		}
		p.drop(b)
		p.free = slices.DeleteFunc(p.free, func(f int) bool { return f == b })
		p.free = slices.Insert(p.free, 0, b)
	}
}

// drop erases block b.
func (p *plainCache) drop(b int) {
	if old := p.blocks[b].content; old != "" {
		p.byContent[old] = slices.DeleteFunc(p.byContent[old], func(f int) bool { return f == b })
		if len(p.byContent[old]) == 0 {
			delete(p.byContent, old)
		}
	}
	p.blocks[b].content = ""
}
