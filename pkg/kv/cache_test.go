package kv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// plain is the cache as vLLM writes it: single blocks, a list of free ones in
// the order of eviction, and for each content the blocks that have it in the
// order of registration.
type plain struct {
	size    int
	caching bool
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
}

func newPlain(blocks, size int, caching bool) *plain {
	p := &plain{size: size, caching: caching, blocks: make([]plainBlock, blocks), known: map[string][]int{}}
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

func (p *plain) extend(q *plainSeq, hits []int, upto int) bool {
	need := (upto+p.size-1)/p.size - len(q.blocks) - len(hits)
	idle := 0
	for _, b := range hits {
		if p.blocks[b].refs == 0 {
			idle++
		}
	}
	if need+idle > len(p.free) {
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
		b := p.free[0]
		p.free = p.free[1:]
		if old := p.blocks[b].content; old != "" {
			p.known[old] = slices.DeleteFunc(p.known[old], func(f int) bool { return f == b })
		}
		p.blocks[b] = plainBlock{refs: 1}
		q.blocks = append(q.blocks, b)
	}
	for p.caching && q.hashed < upto/p.size {
		b := q.blocks[q.hashed]
		q.hashed++
		text := q.content(q.hashed * p.size)
		p.blocks[b].content = text
		p.known[text] = append(p.known[text], b)
	}
	return true
}

func (p *plain) release(q *plainSeq) {
	for _, b := range slices.Backward(q.blocks) {
		if p.blocks[b].refs--; p.blocks[b].refs == 0 {
			p.free = append(p.free, b)
		}
	}
	q.blocks, q.hashed = nil, 0
}

// life is one sequence in both caches.
type life struct {
	seq    Seq
	path   Path
	plain  plainSeq
	tokens int
	grows  bool
}

// TestCacheIsPlain plays random lives through the cache and through one that
// moves single blocks, and expects the same hits and the same room throughout.
func TestCacheIsPlain(t *testing.T) {
	for seed := range uint64(10000) {
		playLives(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func playLives(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	size, total := 1+r.IntN(5), 3+r.IntN(40)
	caching := r.IntN(8) > 0
	tree := NewTree()
	c, p := NewCache(tree, total, size, caching), newPlain(total, size, caching)
	var lives []*life
	ids := 0
	for op := range 120 {
		switch k := r.IntN(10); {
		case k < 3: // a new sequence
			l := &life{plain: plainSeq{input: 1 + r.IntN(4*size+8)}}
			left := l.plain.input
			if len(lives) > 0 && r.IntN(2) == 0 { // goes on where another one is or was
				other := &lives[r.IntN(len(lives))].plain
				l.plain.segments = slices.Clone(other.segments)
				if n := 1 + r.IntN(2*size); isOutput(other.output) {
					l.plain.segments = append(l.plain.segments, Segment{other.output, n})
				}
				if left = r.IntN(2); len(l.plain.segments) == 0 {
					left = 1
				}
				l.plain.input = left
				for _, s := range l.plain.segments {
					l.plain.input += s.Tokens
				}
			}
			for _, id := range []string{"a", "b", "c"}[:r.IntN(4)] {
				if n := 1 + r.IntN(3*size+2); n <= left {
					l.plain.segments = append(l.plain.segments, Segment{id, n})
					left -= n
				}
			}
			l.plain.output = fmt.Sprintf("own%d", ids) // nobody names it
			id := fmt.Sprintf("r%d", ids)
			if left == 0 {
				l.plain.output = id + outputSuffix
			}
			ids++
			l.path = tree.Resolve(nil, l.plain.segments, l.plain.input, id)
			l.seq = c.Open(l.path)
			lives = append(lives, l)
		case len(lives) == 0:
		case k < 6: // admit or extend
			l := lives[r.IntN(len(lives))]
			if l.grows {
				continue
			}
			if len(l.plain.blocks) == 0 {
				upto := l.plain.input + r.IntN(5)
				hits := p.lookup(&l.plain, upto-1)
				if got := c.Lookup(l.seq, upto-1); got != len(hits)*size {
					t.Errorf("op %d: %d tokens found, want %d", op, got, len(hits)*size)
				}
				upto = len(hits)*size + 1 + r.IntN(upto-len(hits)*size)
				ok := p.extend(&l.plain, hits, upto)
				if c.Admit(l.seq, upto) != ok {
					t.Errorf("op %d: admitted %v, want %v", op, !ok, ok)
				}
				if ok {
					l.tokens = upto
				}
			} else {
				upto := l.tokens + 1 + r.IntN(2*size)
				ok := p.extend(&l.plain, nil, upto)
				if c.Extend(l.seq, upto) != ok {
					t.Errorf("op %d: extended %v, want %v", op, !ok, ok)
				}
				if ok {
					l.tokens = upto
				}
			}
		case k < 7: // grow or settle
			l := lives[r.IntN(len(lives))]
			if l.grows {
				c.Settle(l.seq)
				l.grows = false
			} else if len(l.plain.blocks) > 0 && l.tokens >= l.plain.input {
				c.Grow(l.seq, l.tokens)
				l.grows = true
			}
		case k < 9: // tick
			need := 0
			for _, l := range lives {
				if l.grows && l.tokens%size == 0 {
					need++
				}
			}
			if c.TickNeed() != need {
				t.Errorf("op %d: a tick needs %d blocks, want %d", op, c.TickNeed(), need)
			}
			if need > len(p.free) {
				continue
			}
			c.Tick()
			for _, l := range lives {
				if l.grows {
					l.tokens++
					p.extend(&l.plain, nil, l.tokens)
				}
			}
		default: // release or close
			i := r.IntN(len(lives))
			l := lives[i]
			if l.grows {
				c.Settle(l.seq)
				l.grows = false
			}
			p.release(&l.plain)
			l.tokens = 0
			if r.IntN(3) == 0 {
				c.Release(l.seq)
				continue
			}
			c.Close(l.seq)
			tree.Drop(l.path)
			lives = slices.Delete(lives, i, i+1)
		}
		if c.Free() != len(p.free) {
			t.Errorf("op %d: %d blocks free, want %d", op, c.Free(), len(p.free))
		}
		if r.IntN(4) == 0 {
			if err := c.Check(); err != nil {
				t.Errorf("op %d: %v", op, err)
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, l := range lives {
		if l.grows {
			c.Settle(l.seq)
		}
		c.Close(l.seq)
		tree.Drop(l.path)
	}
	c.evict(c.free)
	if tree.Len() != 0 {
		t.Errorf("%d nodes outlive their last block", tree.Len())
	}
}
