package kv

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

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
	judge
	r    choices
	size int
	tree *Tree
	c    *Cache
	p    *plain
	w    *watched // nil if nobody watches
	all  []*life
	ids  int
	most int // that are open before one must end
}

// choices are those of a random stream or of rapid.
type choices interface{ IntN(n int) int }

type judge interface {
	Errorf(format string, args ...any)
	Failed() bool
}

// newLives returns two empty caches of random sizes.
func newLives(t judge, r choices) *lives {
	size, total, caching := 1+r.IntN(5), 3+r.IntN(40), r.IntN(8) > 0
	tree := NewTree()
	var w Window
	if r.IntN(4) == 0 {
		w = Window{Blocks: 1 + r.IntN(4), Extra: 1 + r.IntN(3)}
	}
	return &lives{judge: t, r: r, size: size, tree: tree, c: NewCache(tree, total, size, caching, w), p: newPlain(total, size, caching, w), most: 1 + r.IntN(20)}
}

// TestCacheIsPlain plays random lives through the cache and through one that
// moves single blocks, and expects the same hits and the same room throughout.
func TestCacheIsPlain(t *testing.T) {
	for seed := range uint64(10000) {
		l := newLives(t, rand.New(rand.NewPCG(seed, 1)))
		if l.play(120); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func (l *lives) play(operations int) {
	for op := 0; op < operations && !l.Failed(); op++ {
		switch k := l.r.IntN(10); {
		case len(l.all) > l.most:
			l.end(l.r.IntN(len(l.all)), false)
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
		if l.r.IntN(16) == 0 {
			l.forget()
		}
		if l.w != nil {
			l.w.look()
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
	if l.w != nil {
		l.w.image.Refresh()
	}
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
			id += fmt.Sprint(l.ids / 16) // names go out of fashion
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
			l.Errorf("%d tokens of %s found, want %d", got, x.plain.content(tokens-1), cached)
			return
		}
		upto = cached + 1 + l.r.IntN(tokens-cached)
	}
	room, spare, known := upto, 0, upto
	if admitting {
		room, spare = upto+l.r.IntN(2*l.size), l.r.IntN(3)
	} else {
		known = max(upto-l.r.IntN(2), min(upto, x.plain.input))
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

// forget makes some blocks of a node that a prompt names unfindable.
func (l *lives) forget() {
	if len(l.all) == 0 {
		return
	}
	path := l.any().path
	n := path[l.r.IntN(len(path))].Node
	lo := l.r.IntN(8)
	hi := lo + l.r.IntN(8)
	l.c.Forget(n, int32(lo), int32(hi))
	for j := lo; j < hi; j++ {
		if start := int(l.tree.nodes[n].key.start); (j+1)*l.size > start {
			l.p.forget(l.content(n, (j+1)*l.size))
		}
	}
}

// content names the first tokens tokens of a sequence of which they end in n.
func (l *lives) content(n Node, tokens int) string {
	text := ""
	for end := int32(tokens); n != None; {
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

// owner names the tokens of the tail n that is no other's.
func (l *lives) owner(n Node) string {
	for _, x := range l.all {
		if x.path[len(x.path)-1].Node == n {
			return x.plain.output
		}
	}
	return ""
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
