package kv

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// watchChecker compares the notifications of a cache, and an image built from them, with the plain
// cache.
type watchChecker struct {
	*cachePair
	image *Image
	// reportedInserted holds the content reported as findable; reportedEvicted the content reported as
	// evicted since the last compare.
	reportedInserted, reportedEvicted map[string]bool
	// imageContent is what the image must hold according to the plain cache.
	imageContent map[string]bool
	// tokens holds the lengths of sequences at the last compare.
	tokens map[*seqPair]int
	// contentOf is the sequence that each node number stood for in its last report. recycled counts
	// changes of it, staleChecks the checks of an image that is out of date.
	contentOf             map[Node]string
	recycled, staleChecks int
}

func (l *cachePair) watch() *watchChecker {
	w := &watchChecker{cachePair: l, image: NewImage(l.c), reportedInserted: map[string]bool{},
		reportedEvicted: map[string]bool{}, imageContent: map[string]bool{}, tokens: map[*seqPair]int{},
		contentOf: map[Node]string{}}
	l.c.Watch(w)
	l.w = w
	return w
}

// Inserted expects blocks that were not findable before.
func (w *watchChecker) Inserted(group int, n Node, lo, hi int32) {
	w.image.Inserted(group, n, lo, hi)
	for j := lo; j < hi; j++ {
		text := w.content(n, int(j+1)*w.size)
		if w.reportedInserted[text] || !w.tree.nodes[n].named {
			w.Errorf("%s (node %d) is reported as inserted twice", text, n)
		}
		w.reportedInserted[text] = true
		delete(w.reportedEvicted, text)
	}
	w.noteNode(n, lo, hi)
}

// Evicted expects blocks that were findable before.
func (w *watchChecker) Evicted(group int, n Node, lo, hi int32) {
	w.image.Evicted(group, n, lo, hi)
	for j := lo; j < hi; j++ {
		text := w.content(n, int(j+1)*w.size)
		if !w.reportedInserted[text] {
			w.Errorf("%s (node %d) is reported as evicted without having been inserted", text, n)
		}
		delete(w.reportedInserted, text)
		w.reportedEvicted[text] = true
	}
	w.noteNode(n, lo, hi)
}

// noteNode records which sequence a node stands for.
func (w *watchChecker) noteNode(n Node, lo, hi int32) {
	if lo >= hi {
		w.Errorf("blocks %d to %d of node %d are reported", lo, hi, n)
	}
	key := w.tree.nodes[n].key
	text := w.content(n, int(key.start)+1)
	if old, ok := w.contentOf[n]; ok && old != text {
		w.recycled++
	}
	w.contentOf[n] = text
}

// findable is what the plain cache can find and prompts can name.
func (w *watchChecker) findable() map[string]bool {
	set := map[string]bool{}
	for text := range w.p.byContent {
		if !strings.Contains(text, "own") {
			set[text] = true
		}
	}
	return set
}

// compare checks the reports after an operation, and at times brings everything up to date.
func (w *watchChecker) compare() {
	now := w.findable()
	for text := range w.reportedInserted {
		if !now[text] {
			w.Errorf("%s is reported as findable and is not", text)
		}
	}
	for text := range now {
		if !w.reportedInserted[text] && !w.isBeingWritten(text) {
			w.Errorf("%s is findable and is not reported", text)
		}
		if w.reportedEvicted[text] && !w.wasJustFilled(text) {
			w.Errorf("%s is reported as evicted and is findable", text)
		}
	}
	clear(w.reportedEvicted)
	for _, x := range w.all {
		w.tokens[x] = x.tokens
	}
	switch w.r.IntN(6) {
	case 0:
		if w.c.CatchUp(); !maps.Equal(w.reportedInserted, now) {
			w.Errorf("reported as findable: %v, want %v", keys(w.reportedInserted), keys(now))
		}
	case 1:
		w.image.Refresh()
		w.imageContent = now
	}
	if !maps.Equal(w.imageContent, now) {
		w.staleChecks++
	}
	w.check()
	w.match()
}

// isBeingWritten reports whether a growing sequence produces the content.
func (w *watchChecker) isBeingWritten(text string) bool {
	return slices.ContainsFunc(w.all, func(x *seqPair) bool {
		return x.growing && strings.Contains(text, x.plain.output+":")
	})
}

// wasJustFilled reports whether a growing sequence filled the block since the last compare: a copy of
// it may have been evicted just before.
func (w *watchChecker) wasJustFilled(text string) bool {
	return slices.ContainsFunc(w.all, func(x *seqPair) bool {
		visible := (x.tokens - x.lag) / w.size * w.size
		return x.growing && x.tokens > w.tokens[x] && visible > 0 && x.plain.content(visible) == text
	})
}

// check compares the image with the plain cache as of the last refresh.
func (w *watchChecker) check() {
	have := map[string]bool{}
	for n, list := range w.image.blocks[0] {
		last := int32(-1)
		for _, s := range list {
			if s.lo <= last || s.hi <= s.lo {
				w.Errorf("extents of node %d: %v", n, list)
			}
			last = s.hi
			for j := s.lo; j < s.hi; j++ {
				have[w.content(n, int(j+1)*w.size)] = true
			}
		}
	}
	if !maps.Equal(have, w.imageContent) {
		w.Errorf("the image has %v, want %v", keys(have), keys(w.imageContent))
	}
}

// match looks a prompt up in the image.
func (w *watchChecker) match() {
	if len(w.all) == 0 {
		return
	}
	x := w.pick()
	upto := w.r.IntN(x.plain.input + 4*w.size)
	want := 0
	for want+w.size <= upto && w.imageContent[x.plain.content(want+w.size)] {
		want += w.size
	}
	if got := w.image.Match(x.path, upto); got != want {
		w.Errorf("%d tokens of %s in the image, want %d", got, x.plain.content(upto), want)
	}
}

func keys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// rapidSource draws from rapid.
type rapidSource struct{ *rapid.T }

func (d rapidSource) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "choice") }

// TestWatcherAndImageMatchCache runs random sequences and expects that the replayed notifications
// equal what can be found at all times, and that an image equals what could be found when it was
// refreshed.
func TestWatcherAndImageMatchCache(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newCachePair(rt, rapidSource{rt})
		l.watch()
		l.run(120)
	})
}

// TestWatcherAndImageMatchCacheLong runs more and longer sequences, in which node numbers are
// surely reused and images are surely stale.
func TestWatcherAndImageMatchCacheLong(t *testing.T) {
	var recycled, stale int
	for seed := range uint64(1000) {
		l := newCachePair(t, rand.New(rand.NewPCG(seed, 2)))
		w := l.watch()
		if l.run(400); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		recycled += w.recycled
		stale += w.staleChecks
	}
	if recycled < 1000 || stale < 1000 {
		t.Errorf("%d nodes were reused, %d checks were of a stale image", recycled, stale)
	}
}

// TestImageKeepsNodesAlive looks up a prompt in an image that predates it and still holds an
// evicted prompt.
func TestImageKeepsNodesAlive(t *testing.T) {
	tree := NewTree()
	c := NewCache(tree, Config{Blocks: 4, BlockSize: 1, Caching: true})
	image := NewImage(c)
	put := func(id string) Node { // takes all blocks
		path := tree.Resolve(nil, []Segment{{id, 4}}, 4, id)
		defer tree.Drop(path)
		c.Touch(path, 4)
		return path[0].Node
	}
	found := func(id string) int {
		path := tree.Resolve(nil, []Segment{{id, 4}}, 4, id)
		defer tree.Drop(path)
		return image.Match(path, 4)
	}
	old := put("old")
	image.Refresh()
	if next := put("next"); next == old {
		t.Errorf("node %d is in the image and was reused", old)
	}
	if found("old") != 4 || found("next") != 0 {
		t.Errorf("%d tokens of the old prompt in the image and %d of the next, want 4 and 0", found("old"),
			found("next"))
	}
	image.Refresh()
	if found("old") != 0 || found("next") != 4 {
		t.Errorf("%d tokens of the old prompt in the new image and %d of the next, want 0 and 4", found("old"),
			found("next"))
	}
	var numbers []Node
	for _, id := range []string{"third", "fourth", "fifth"} {
		numbers = append(numbers, put(id))
		image.Refresh()
	}
	if !slices.Contains(numbers, old) {
		t.Errorf("node %d was not reused, only %v", old, numbers)
	}
	if found("old") != 0 || found("fifth") != 4 {
		t.Errorf("%d tokens of the old prompt in the last image and %d of the fifth, want 0 and 4", found("old"),
			found("fifth"))
	}
	c.Invalidate(put("sixth"), 0, 4)
	image.Refresh()
	if tree.Len() != 0 {
		t.Errorf("%d nodes outlive the last findable block", tree.Len())
	}
}

// TestInvalidateKeepsGrowingBlocks invalidates a copy of blocks that a growing sequence has filled
// since the last lookup: they can still be found.
func TestInvalidateKeepsGrowingBlocks(t *testing.T) {
	tree := NewTree()
	c := NewCache(tree, Config{Blocks: 8, BlockSize: 1, Caching: true})
	image := NewImage(c)
	prompt := []Segment{{"p", 2}}
	writer := tree.Resolve(nil, prompt, 2, "r")
	s := c.Open(writer, 2)
	c.Lookup(s, 1)
	c.Admit(s, 2, 2, 0)
	c.Grow(s, 2, 0, 0)
	output := writer[1].Node
	reader := tree.Resolve(nil, append(prompt, Segment{"r" + outputSuffix, 2}), 4, "q")
	c.Touch(reader, 4)
	image.Refresh()
	runs := len(c.runs) - len(c.spareRuns)
	if c.Invalidate(output, 3, 3); len(c.runs)-len(c.spareRuns) != runs {
		t.Error("a run was split although nothing was invalidated")
	}
	c.Tick()
	c.Tick()
	if c.Invalidate(output, 2, 4); len(image.log) > 0 || c.Match(reader, 4) != 4 {
		t.Errorf("notified of %v, %d tokens found, want none and 4", image.log, c.Match(reader, 4))
	}
	c.StopGrowing(s)
	c.Release(s)
	if c.Invalidate(output, 2, 4); len(image.log) != 1 || c.Match(reader, 4) != 2 {
		t.Errorf("notified of %v, %d tokens found, want one eviction and 2", image.log, c.Match(reader, 4))
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
