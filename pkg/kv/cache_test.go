package kv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// seqPair is one sequence in both caches.
type seqPair struct {
	seq     Seq
	path    Path
	plain   plainSeq
	tokens  int
	growing bool
	lag     int
}

// cachePair holds a cache, its plain counterpart, and all sequences open in both.
type cachePair struct {
	reporter
	r       intSource
	size    int
	tree    *Tree
	c       *Cache
	p       *plainCache
	w       *watchChecker // nil if there is none
	all     []*seqPair
	ids     int
	maxOpen int // sequences open before one must end
}

// intSource is a random stream or rapid.
type intSource interface{ IntN(n int) int }

type reporter interface {
	Errorf(format string, args ...any)
	Failed() bool
}

// newCachePair returns two empty caches of random sizes.
func newCachePair(t reporter, r intSource) *cachePair {
	size, total, caching := 1+r.IntN(5), 3+r.IntN(40), r.IntN(8) > 0
	tree := NewTree()
	cfg := Config{Blocks: total, BlockSize: size, Caching: caching, UnhashedFirst: r.IntN(2) == 0}
	if r.IntN(3) == 0 { // a group of full attention is as good as none
		cfg.Groups = []Group{{BlockSize: size}}
	}
	return &cachePair{reporter: t, r: r, size: size, tree: tree, c: NewCache(tree, cfg), p: newPlainCache(cfg),
		maxOpen: 1 + r.IntN(20)}
}

// TestCacheMatchesPlainCache runs random sequences through the cache and through one that moves
// single blocks, and expects the same hits and free blocks throughout.
func TestCacheMatchesPlainCache(t *testing.T) {
	for seed := range uint64(10000) {
		l := newCachePair(t, rand.New(rand.NewPCG(seed, 1)))
		if l.run(120); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (l *cachePair) run(operations int) {
	for op := 0; op < operations && !l.Failed(); op++ {
		switch k := l.r.IntN(10); {
		case len(l.all) > l.maxOpen:
			l.end(l.r.IntN(len(l.all)), false)
		case k < 3:
			l.begin()
		case len(l.all) == 0:
		case k < 6:
			l.extend(l.pick())
		case k < 7:
			l.toggleGrowth(l.pick())
		case k < 9:
			l.tick()
		default:
			l.end(l.r.IntN(len(l.all)), l.r.IntN(3) == 0)
		}
		if l.r.IntN(16) == 0 && l.c.groups == nil {
			l.invalidate()
		}
		if l.w != nil {
			l.w.compare()
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
	l.evictAll()
	if l.w != nil {
		l.w.image.Refresh()
	}
	if l.tree.Len() != 0 {
		l.Errorf("%d nodes outlive their last block", l.tree.Len())
	}
}

// evictAll takes all free blocks.
func (l *cachePair) evictAll() {
	if l.c.groups == nil {
		l.c.takeFree(l.c.free)
		return
	}
	l.c.groups.take(nil, int(l.c.free))
}

func (l *cachePair) pick() *seqPair { return l.all[l.r.IntN(len(l.all))] }

// begin opens a sequence: of random segments, or continuing one that is or was open.
func (l *cachePair) begin() {
	x := &seqPair{plain: plainSeq{input: 1 + l.r.IntN(4*l.size+8)}}
	q := &x.plain
	left := q.input
	if len(l.all) > 0 && l.r.IntN(2) == 0 {
		other := &l.pick().plain
		q.segments = slices.Clone(other.segments)
		if n := 1 + l.r.IntN(2*l.size); IsOutput(other.output) {
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
			id += fmt.Sprint(l.ids / 16) // new names over time
			q.segments = append(q.segments, Segment{id, n})
			left -= n
		}
	}
	id := fmt.Sprintf("r%d", l.ids)
	q.output = fmt.Sprintf("own%d", l.ids) // no prompt names it
	if left == 0 {
		q.output = id + outputSuffix
	}
	l.ids++
	x.path = l.tree.Resolve(nil, q.segments, q.input, id)
	x.seq = l.c.Open(x.path, q.input)
	l.all = append(l.all, x)
}

// extend admits a sequence or extends it.
func (l *cachePair) extend(x *seqPair) {
	if x.growing {
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
			l.Errorf("%d tokens of %s found, want %d", got, x.plain.content(tokens-1), cached)
			return
		}
		upto = cached + 1 + l.r.IntN(tokens-cached)
	}
	reserve, spare, visible := upto, 0, upto
	if admitting {
		reserve, spare = upto+l.r.IntN(2*l.size), l.r.IntN(3)
	} else {
		visible = max(upto-l.r.IntN(2), min(upto, x.plain.input))
	}
	want, got := l.p.extend(&x.plain, hits, upto, reserve, spare), false
	if admitting {
		got = l.c.Admit(x.seq, upto, reserve, spare)
	} else {
		got = l.c.Extend(x.seq, upto, visible, x.tokens, 0)
	}
	if got != want {
		l.Errorf("blocks for %d tokens: %v, want %v", upto, got, want)
	}
	if want {
		l.p.publish(&x.plain, visible)
		x.tokens = upto
	}
}

// toggleGrowth starts or stops the growth of a sequence.
func (l *cachePair) toggleGrowth(x *seqPair) {
	if x.growing {
		l.c.StopGrowing(x.seq)
		x.growing = false
		if l.r.IntN(2) == 0 {
			l.c.Publish(x.seq, x.tokens)
			l.p.publish(&x.plain, x.tokens)
		}
	} else if len(x.plain.blocks) > 0 && x.tokens >= x.plain.input {
		x.growing, x.lag = true, l.r.IntN(2)
		l.c.Publish(x.seq, x.tokens-x.lag)
		l.p.publish(&x.plain, x.tokens-x.lag)
		l.c.Grow(x.seq, x.tokens, x.lag, x.lag)
	}
}

func (l *cachePair) tick() {
	need := 0
	for _, x := range l.all {
		if x.growing && x.tokens%l.size == 0 {
			need++
		}
	}
	if l.c.TickNeed() != need {
		l.Errorf("a tick needs %d blocks, want %d", l.c.TickNeed(), need)
	}
	if need > len(l.p.free) {
		return
	}
	l.c.Tick()
	l.c.Settle()
	for _, x := range l.all {
		if x.growing {
			x.tokens++
			l.p.extend(&x.plain, nil, x.tokens, x.tokens, 0)
			l.p.publish(&x.plain, x.tokens-x.lag)
		}
	}
}

// invalidate makes some blocks of a random path's node unfindable.
func (l *cachePair) invalidate() {
	if len(l.all) == 0 {
		return
	}
	path := l.pick().path
	n := path[l.r.IntN(len(path))].Node
	lo := l.r.IntN(8)
	hi := lo + l.r.IntN(8)
	l.c.Invalidate(n, int32(lo), int32(hi))
	for j := lo; j < hi; j++ {
		if start := int(l.tree.nodes[n].key.start); (j+1)*l.size > start {
			l.p.invalidate(l.content(n, (j+1)*l.size))
		}
	}
}

// content describes the first tokens tokens of a sequence that ends in n.
func (l *cachePair) content(n Node, tokens int) string {
	text := ""
	for end := int32(tokens); n != noNode; {
		if l.tree.nodes[n].refs == 0 {
			l.Errorf("node %d is dead", n)
			return text
		}
		key := l.tree.nodes[n].key
		id := key.id
		if id == "" {
			id = l.owner(n)
		}
		text = fmt.Sprintf("%s:%d|", id, end-key.start) + text
		n, end = key.parent, key.start
	}
	return text
}

// owner describes the tokens of the unnamed tail n.
func (l *cachePair) owner(n Node) string {
	for _, x := range l.all {
		if x.path[len(x.path)-1].Node == n {
			return x.plain.output
		}
	}
	return ""
}

// end releases a sequence and, unless stay, closes it.
func (l *cachePair) end(i int, stay bool) {
	x := l.all[i]
	if x.growing {
		l.c.StopGrowing(x.seq)
		x.growing = false
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
