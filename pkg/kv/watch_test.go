package kv

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// watched compares what a cache tells, and an image of it, with the plain one.
type watched struct {
	*lives
	image *Image
	// found is what was told to be findable, by content; lost what was told to be
	// lost since the last look.
	found, lost map[string]bool
	// was is the image's content according to the plain cache.
	was map[string]bool
	// tokens is how long sequences were at the last look.
	tokens map[*life]int
	// means is what the number of each node was last told to stand for; recycled
	// counts how often that has changed, stale the looks at an image of the past.
	means           map[Node]string
	recycled, stale int
}

func (l *lives) watch() *watched {
	w := &watched{lives: l, image: NewImage(l.c), found: map[string]bool{}, lost: map[string]bool{}, was: map[string]bool{},
		tokens: map[*life]int{}, means: map[Node]string{}}
	l.c.Watch(w)
	l.w = w
	return w
}

// Found expects blocks that were not told to be findable.
func (w *watched) Found(n Node, lo, hi int32) {
	w.image.Found(n, lo, hi)
	for j := lo; j < hi; j++ {
		text := w.content(n, int(j+1)*w.size)
		if w.found[text] || !w.tree.nodes[n].named {
			w.Errorf("told of %s (node %d) again", text, n)
		}
		w.found[text] = true
		delete(w.lost, text)
	}
	w.told(n, lo, hi)
}

// Lost expects blocks that were told to be findable.
func (w *watched) Lost(n Node, lo, hi int32) {
	w.image.Lost(n, lo, hi)
	for j := lo; j < hi; j++ {
		text := w.content(n, int(j+1)*w.size)
		if !w.found[text] {
			w.Errorf("told that %s (node %d) is lost, which was never found", text, n)
		}
		delete(w.found, text)
		w.lost[text] = true
	}
	w.told(n, lo, hi)
}

// told notes which sequence a node stands for.
func (w *watched) told(n Node, lo, hi int32) {
	if lo >= hi {
		w.Errorf("told of blocks %d to %d of node %d", lo, hi, n)
	}
	key := w.tree.nodes[n].key
	text := w.content(n, int(key.start)+1)
	if old, ok := w.means[n]; ok && old != text {
		w.recycled++
	}
	w.means[n] = text
}

// findable is what the plain cache can find and others can name.
func (w *watched) findable() map[string]bool {
	set := map[string]bool{}
	for text := range w.p.known {
		if !strings.Contains(text, "own") {
			set[text] = true
		}
	}
	return set
}

// look compares after an operation, and at times brings everything up to date.
func (w *watched) look() {
	now := w.findable()
	for text := range w.found {
		if !now[text] {
			w.Errorf("%s was told to be findable and is not", text)
		}
	}
	for text := range now {
		if !w.found[text] && !w.written(text) {
			w.Errorf("%s is findable and was not told", text)
		}
		if w.lost[text] && !w.filled(text) {
			w.Errorf("%s was told to be lost and is findable", text)
		}
	}
	clear(w.lost)
	for _, x := range w.all {
		w.tokens[x] = x.tokens
	}
	switch w.r.IntN(6) {
	case 0:
		if w.c.Catch(); !maps.Equal(w.found, now) {
			w.Errorf("told to be findable is %v, want %v", keys(w.found), keys(now))
		}
	case 1:
		w.image.Refresh()
		w.was = now
	}
	if !maps.Equal(w.was, now) {
		w.stale++
	}
	w.check()
	w.match()
}

// written reports whether content is what a growing sequence produces.
func (w *watched) written(text string) bool {
	return slices.ContainsFunc(w.all, func(x *life) bool {
		return x.grows && strings.Contains(text, x.plain.output+":")
	})
}

// filled reports whether a growing sequence filled the block since the last look:
// then a copy of it may have been lost a moment before.
func (w *watched) filled(text string) bool {
	return slices.ContainsFunc(w.all, func(x *life) bool {
		known := (x.tokens - x.behind) / w.size * w.size
		return x.grows && x.tokens > w.tokens[x] && known > 0 && x.plain.content(known) == text
	})
}

// check compares the image with what the plain cache had at its time.
func (w *watched) check() {
	have := map[string]bool{}
	for n, list := range w.image.blocks {
		last := int32(-1)
		for _, s := range list {
			if s.lo <= last || s.hi <= s.lo {
				w.Errorf("stretches of node %d: %v", n, list)
			}
			last = s.hi
			for j := s.lo; j < s.hi; j++ {
				have[w.content(n, int(j+1)*w.size)] = true
			}
		}
	}
	if !maps.Equal(have, w.was) {
		w.Errorf("the image has %v, want %v", keys(have), keys(w.was))
	}
}

// match looks for a prompt in the image.
func (w *watched) match() {
	if len(w.all) == 0 {
		return
	}
	x := w.any()
	upto := w.r.IntN(x.plain.input + 4*w.size)
	want := 0
	for want+w.size <= upto && w.was[x.plain.content(want+w.size)] {
		want += w.size
	}
	if got := w.image.Match(x.path, upto); got != want {
		w.Errorf("%d tokens of %s in the image, want %d", got, x.plain.content(upto), want)
	}
}

func keys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// drawn lets rapid choose.
type drawn struct{ *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "choice") }

// TestWatch plays random lives, and expects that what is told, replayed, is what
// can be found at all times, and that an image is what could be found when it was
// refreshed.
func TestWatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLives(rt, drawn{rt})
		l.watch()
		l.play(120)
	})
}

// TestWatchLong is TestWatch with more and longer lives, in which nodes surely
// stand for one sequence after another, and images surely are not of now.
func TestWatchLong(t *testing.T) {
	var recycled, stale int
	for seed := range uint64(1000) {
		l := newLives(t, rand.New(rand.NewPCG(seed, 2)))
		w := l.watch()
		if l.play(400); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		recycled += w.recycled
		stale += w.stale
	}
	if recycled < 1000 || stale < 1000 {
		t.Errorf("%d nodes were used again, %d looks were at the past", recycled, stale)
	}
}

// TestImageKeepsNumbers looks for a prompt in an image of the time before it, when
// another prompt was there that nobody has any more.
func TestImageKeepsNumbers(t *testing.T) {
	tree := NewTree()
	c := NewCache(tree, 4, 1, true, Window{})
	image := NewImage(c)
	put := func(id string) Node { // which takes all blocks
		path := tree.Resolve(nil, []Segment{{id, 4}}, 4, id)
		defer tree.Drop(path)
		c.Touch(path, 4)
		return path[0].Node
	}
	in := func(id string) int {
		path := tree.Resolve(nil, []Segment{{id, 4}}, 4, id)
		defer tree.Drop(path)
		return image.Match(path, 4)
	}
	old := put("old")
	image.Refresh()
	if next := put("next"); next == old {
		t.Errorf("node %d, which the image has, was given away", old)
	}
	if in("old") != 4 || in("next") != 0 {
		t.Errorf("%d tokens of the old prompt in the image and %d of the next, want 4 and 0", in("old"), in("next"))
	}
	image.Refresh()
	if in("old") != 0 || in("next") != 4 {
		t.Errorf("%d tokens of the old prompt in the new image and %d of the next, want 0 and 4", in("old"), in("next"))
	}
	var numbers []Node
	for _, id := range []string{"third", "fourth", "fifth"} {
		numbers = append(numbers, put(id))
		image.Refresh()
	}
	if !slices.Contains(numbers, old) {
		t.Errorf("node %d was not used again, only %v", old, numbers)
	}
	if in("old") != 0 || in("fifth") != 4 {
		t.Errorf("%d tokens of the old prompt in the last image and %d of the fifth, want 0 and 4", in("old"), in("fifth"))
	}
	c.Forget(put("sixth"), 0, 4)
	image.Refresh()
	if tree.Len() != 0 {
		t.Errorf("%d nodes outlive what could be found", tree.Len())
	}
}

// TestForgetWritten forgets a copy of what a growing sequence has filled since
// anybody looked: that can still be found.
func TestForgetWritten(t *testing.T) {
	tree := NewTree()
	c := NewCache(tree, 8, 1, true, Window{})
	image := NewImage(c)
	prompt := []Segment{{"p", 2}}
	writer := tree.Resolve(nil, prompt, 2, "r")
	s := c.Open(writer)
	c.Lookup(s, 1)
	c.Admit(s, 2, 2, 0)
	c.Grow(s, 2, 0)
	output := writer[1].Node
	reader := tree.Resolve(nil, append(prompt, Segment{"r" + outputSuffix, 2}), 4, "q")
	c.Touch(reader, 4)
	image.Refresh()
	runs := len(c.runs) - len(c.spare)
	if c.Forget(output, 3, 3); len(c.runs)-len(c.spare) != runs {
		t.Error("a run was cut where nothing was to be forgotten")
	}
	c.Tick()
	c.Tick()
	if c.Forget(output, 2, 4); len(image.log) > 0 || c.Match(reader, 4) != 4 {
		t.Errorf("told %v, %d tokens found, want none and 4", image.log, c.Match(reader, 4))
	}
	c.Settle(s)
	c.Release(s)
	if c.Forget(output, 2, 4); len(image.log) != 1 || c.Match(reader, 4) != 2 {
		t.Errorf("told %v, %d tokens found, want one loss and 2", image.log, c.Match(reader, 4))
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
