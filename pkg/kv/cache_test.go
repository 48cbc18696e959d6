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
	if old := p.blocks[b].content; old != "" {
		p.known[old] = slices.DeleteFunc(p.known[old], func(f int) bool { return f == b })
	}
	p.blocks[b] = plainBlock{refs: 1}
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

// life is one sequence in both caches.
type life struct {
	seq    Seq
	path   Path
	plain  plainSeq
	tokens int
	grows  bool
	behind int
}

// lives are all sequences that are open, in both caches.
type lives struct {
	*testing.T
	r    *rand.Rand
	size int
	tree *Tree
	c    *Cache
	p    *plain
	all  []*life
	ids  int
}

// TestCacheIsPlain plays random lives through the cache and through one that
// moves single blocks, and expects the same hits and the same room throughout.
func TestCacheIsPlain(t *testing.T) {
	for seed := range uint64(10000) {
		r := rand.New(rand.NewPCG(seed, 1))
		size, total, caching := 1+r.IntN(5), 3+r.IntN(40), r.IntN(8) > 0
		tree := NewTree()
		var w Window
		if r.IntN(4) == 0 {
			w = Window{Blocks: 1 + r.IntN(4), Extra: 1 + r.IntN(3)}
		}
		l := &lives{T: t, r: r, size: size, tree: tree, c: NewCache(tree, total, size, caching, w), p: newPlain(total, size, caching, w)}
		if l.play(); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (l *lives) play() {
	for op := 0; op < 120 && !l.Failed(); op++ {
		switch k := l.r.IntN(10); {
		case k < 3:
			l.begin()
		case len(l.all) == 0:
		case k < 6:
			l.extend(l.any())
		case k < 7:
			l.turn(l.any())
		case k < 9:
			l.tick()
		default:
			l.end(l.r.IntN(len(l.all)), l.r.IntN(3) == 0)
		}
		if l.c.Free() != len(l.p.free) {
			l.Errorf("operation %d: %d blocks free, want %d", op, l.c.Free(), len(l.p.free))
		}
		if err := l.c.Check(); err != nil {
			l.Errorf("operation %d: %v", op, err)
		}
	}
	for len(l.all) > 0 {
		l.end(0, false)
	}
	l.c.evict(l.c.free)
	if l.tree.Len() != 0 {
		l.Errorf("%d nodes outlive their last block", l.tree.Len())
	}
}

func (l *lives) any() *life { return l.all[l.r.IntN(len(l.all))] }

// begin opens a sequence: of random segments, or going on where another one is
// or was.
func (l *lives) begin() {
	x := &life{plain: plainSeq{input: 1 + l.r.IntN(4*l.size+8)}}
	q := &x.plain
	left := q.input
	if len(l.all) > 0 && l.r.IntN(2) == 0 {
		other := &l.any().plain
		q.segments = slices.Clone(other.segments)
		if n := 1 + l.r.IntN(2*l.size); isOutput(other.output) {
			q.segments = append(q.segments, Segment{other.output, n})
		}
		if left = l.r.IntN(2); len(q.segments) == 0 {
			left = 1
		}
		q.input = left
		for _, s := range q.segments {
			q.input += s.Tokens
		}
	}
	for _, id := range []string{"a", "b", "c"}[:l.r.IntN(4)] {
		if n := 1 + l.r.IntN(3*l.size+2); n <= left {
			q.segments = append(q.segments, Segment{id, n})
			left -= n
		}
	}
	id := fmt.Sprintf("r%d", l.ids)
	q.output = fmt.Sprintf("own%d", l.ids) // nobody names it
	if left == 0 {
		q.output = id + outputSuffix
	}
	l.ids++
	x.path = l.tree.Resolve(nil, q.segments, q.input, id)
	x.seq = l.c.Open(x.path)
	l.all = append(l.all, x)
}

// extend admits a sequence or gives it room for more tokens.
func (l *lives) extend(x *life) {
	if x.grows {
		return
	}
	var hits []int
	upto := x.tokens + 1 + l.r.IntN(2*l.size)
	admitting := len(x.plain.blocks) == 0
	if admitting {
		tokens := x.plain.input + l.r.IntN(5)
		hits = l.p.lookup(&x.plain, tokens-1)
		cached := len(hits) * l.size
		if got := l.c.Lookup(x.seq, tokens-1); got != cached {
			l.Errorf("%d tokens found, want %d", got, cached)
			return
		}
		upto = cached + 1 + l.r.IntN(tokens-cached)
	}
	room, spare, known := upto, 0, upto
	if admitting {
		room, spare = upto+l.r.IntN(2*l.size), l.r.IntN(3)
	} else {
		known -= l.r.IntN(2)
	}
	want, got := l.p.extend(&x.plain, hits, upto, room, spare), false
	if admitting {
		got = l.c.Admit(x.seq, upto, room, spare)
	} else {
		got = l.c.Extend(x.seq, upto, known)
	}
	if got != want {
		l.Errorf("room for %d tokens: %v, want %v", upto, got, want)
	}
	if want {
		l.p.know(&x.plain, known)
		x.tokens = upto
	}
}

// turn makes a sequence grow with the clock, or stop it.
func (l *lives) turn(x *life) {
	if x.grows {
		l.c.Settle(x.seq)
		x.grows = false
		if l.r.IntN(2) == 0 {
			l.c.Know(x.seq, x.tokens)
			l.p.know(&x.plain, x.tokens)
		}
	} else if len(x.plain.blocks) > 0 && x.tokens >= x.plain.input {
		x.grows, x.behind = true, l.r.IntN(2)
		l.c.Know(x.seq, x.tokens-x.behind)
		l.p.know(&x.plain, x.tokens-x.behind)
		l.c.Grow(x.seq, x.tokens, x.behind)
	}
}

func (l *lives) tick() {
	need := 0
	for _, x := range l.all {
		if x.grows && x.tokens%l.size == 0 {
			need++
			if x.tokens/l.size < l.p.window.Blocks {
				need += l.p.window.Extra
			}
		}
	}
	if l.c.TickNeed() != need {
		l.Errorf("a tick needs %d blocks, want %d", l.c.TickNeed(), need)
	}
	if need > len(l.p.free) {
		return
	}
	l.c.Tick()
	for _, x := range l.all {
		if x.grows {
			x.tokens++
			l.p.extend(&x.plain, nil, x.tokens, x.tokens, 0)
			l.p.know(&x.plain, x.tokens-x.behind)
		}
	}
}

// end frees what a sequence holds and, unless it shall stay open, closes it.
func (l *lives) end(i int, stay bool) {
	x := l.all[i]
	if x.grows {
		l.c.Settle(x.seq)
		x.grows = false
	}
	l.p.release(&x.plain)
	x.tokens = 0
	if stay {
		l.c.Release(x.seq)
		return
	}
	l.c.Close(x.seq)
	l.tree.Drop(x.path)
	l.all = slices.Delete(l.all, i, i+1)
}
