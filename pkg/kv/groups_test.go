package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// groupDriver runs random sequences through a cache with groups. The engine's tests compare such caches with the
// reference.
type groupDriver struct {
	*testing.T
	*rand.Rand
	tree *Tree
	c    *Cache
	open []groupRun
	ids  int
}

type groupRun struct {
	seq    Seq
	path   Path
	prompt int
	tokens int // that have blocks
}

func newGroupDriver(t *testing.T, seed uint64) *groupDriver {
	r := rand.New(rand.NewPCG(seed, 7))
	size := 1 + r.IntN(3)
	kinds := []Group{{BlockSize: size}, {SlidingWindow, size, 2 + r.IntN(12)},
		{SlidingWindow, 2 * size, 2 + r.IntN(12)}, {LocalChunks, size, size * (1 + r.IntN(6))}}
	cfg := Config{Blocks: 60, Caching: true, UnhashedFirst: r.IntN(2) == 0,
		Rules: GroupRules{Sparse: r.IntN(2) == 0, KeepUntilComputed: r.IntN(2) == 0}}
	for range 1 + r.IntN(4) {
		cfg.Groups = append(cfg.Groups, kinds[r.IntN(len(kinds))])
	}
	cfg.BlockSize = int(newHitLayout(cfg.Groups).alignment)
	tree := NewTree()
	return &groupDriver{T: t, Rand: r, tree: tree, c: NewCache(tree, cfg)}
}

// step opens, extends or closes a sequence, or gives those that grow a token.
func (d *groupDriver) step() {
	switch k := d.IntN(8); {
	case len(d.open) == 0 || k < 3 && len(d.open) < 6:
		d.begin()
	case k < 6:
		x := &d.open[d.IntN(len(d.open))]
		if n := x.tokens + 1 + d.IntN(8); d.c.Extend(x.seq, n, n, x.tokens, 0) {
			x.tokens = n
		}
	case k < 7:
		x := &d.open[d.IntN(len(d.open))]
		d.c.Grow(x.seq, x.tokens, 0, 0)
		for range d.IntN(6) {
			if d.c.TickNeed() <= d.c.Free() {
				d.c.Tick()
				d.c.Settle()
				x.tokens++
			}
		}
		d.c.StopGrowing(x.seq)
	default:
		i := d.IntN(len(d.open))
		d.c.Close(d.open[i].seq)
		d.tree.Drop(d.open[i].path)
		d.open = append(d.open[:i], d.open[i+1:]...)
	}
}

func (d *groupDriver) begin() {
	path, prompt := d.prompt()
	s := d.c.Open(path, prompt)
	hit := d.c.Lookup(s, prompt-1)
	if d.c.Admit(s, prompt, prompt, 0) {
		d.open = append(d.open, groupRun{s, path, prompt, prompt})
		if d.c.Match(path, prompt-1) < hit {
			d.Errorf("a prompt of %d tokens with a hit of %d has none of it afterwards", prompt, hit)
		}
		return
	}
	d.c.Close(s)
	d.tree.Drop(path)
}

func (d *groupDriver) prompt() (Path, int) {
	var segments []Segment
	tokens := 1 + d.IntN(4)
	for k := range d.IntN(4) {
		segments = append(segments, Segment{fmt.Sprint(k, d.IntN(2)), 1 + d.IntN(9)})
		tokens += segments[k].Tokens
	}
	d.ids++
	return d.tree.Resolve(nil, segments, tokens, fmt.Sprint("r", d.ids)), tokens
}

// TestGroupsCountAndImage: blocks are never lost, and an image finds what its cache finds.
func TestGroupsCountAndImage(t *testing.T) {
	hits := 0
	for seed := range uint64(2000) {
		d := newGroupDriver(t, seed)
		image := NewImage(d.c)
		for range 60 {
			d.step()
			if err := d.c.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			path, n := d.prompt()
			image.Refresh()
			got, want := image.Match(path, n), d.c.Match(path, n)
			if got != want || want%d.c.BlockSize() != 0 {
				t.Fatalf("seed %d: the image has %d tokens of a prompt, the cache %d", seed, got, want)
			}
			if want > 0 {
				hits++
			}
			d.tree.Drop(path)
		}
	}
	if hits < 10000 {
		t.Errorf("%d hits only", hits)
	}
}

// TestGroupsClone: a clone and its original do the same from there on.
func TestGroupsClone(t *testing.T) {
	for seed := range uint64(500) {
		d := newGroupDriver(t, seed)
		for range 40 {
			d.step()
		}
		tree := d.tree.Clone()
		e := &groupDriver{T: t, tree: tree, c: d.c.Clone(tree), ids: d.ids}
		for _, x := range d.open {
			x.path = append(Path(nil), x.path...)
			e.open = append(e.open, x)
		}
		d.Rand, e.Rand = rand.New(rand.NewPCG(seed, 8)), rand.New(rand.NewPCG(seed, 8))
		for step := range 40 {
			d.step()
			e.step()
			if d.c.Free() != e.c.Free() {
				t.Fatalf("seed %d, step %d: %d blocks free, of the clone %d", seed, step, d.c.Free(), e.c.Free())
			}
		}
		if err := e.c.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestWindowsOfVLLM: hits and blocks in a cache of one group of full attention and one of windows of 5 tokens, in
// blocks of 4. A token after 16 needs tokens 12 to 15 in the windows, one block.
func TestWindowsOfVLLM(t *testing.T) {
	for _, x := range []struct {
		sparse        bool
		same, longer  int // hits of its first 15 and 19 tokens
		branch, other int // hits of a prompt that parts after 8 tokens, and of another one after it
	}{
		{false, 12, 16, 8, 8},
		{true, 0, 16, 0, 8},
	} {
		tree := NewTree()
		c := NewCache(tree, Config{Blocks: 100, BlockSize: 4, Caching: true, UnhashedFirst: true,
			Groups: []Group{{SlidingWindow, 4, 5}, {FullAttention, 4, 0}}, Rules: GroupRules{Sparse: x.sparse}})
		begin := func(id string, segments ...Segment) (Path, Seq, int) {
			n := 0
			for _, s := range segments {
				n += s.Tokens
			}
			path := tree.Resolve(nil, segments, n, id)
			s := c.Open(path, n)
			hit := c.Lookup(s, n-1)
			c.Admit(s, n, n, 0)
			return path, s, hit
		}
		path, s, _ := begin("a", Segment{"p", 8}, Segment{"q", 12})
		if !c.Extend(s, 21, 21, 20, 0) { // the windows leave all but tokens 16 to 20
			t.Fatal("no blocks")
		}
		if used := c.Total() - c.Free(); used != 6+2 {
			t.Errorf("%+v: %d blocks used, want 6 and 2", x, used)
		}
		if same, longer := c.Match(path, 15), c.Match(path, 19); same != x.same || longer != x.longer {
			t.Errorf("%+v: hits of %d and %d", x, same, longer)
		}
		if _, _, hit := begin("b", Segment{"p", 8}, Segment{"b", 12}); hit != x.branch {
			t.Errorf("%+v: a prompt that parts after 8 tokens has a hit of %d", x, hit)
		}
		if _, _, hit := begin("c", Segment{"p", 8}, Segment{"c", 12}); hit != x.other {
			t.Errorf("%+v: another one has a hit of %d", x, hit)
		}
	}
}

// TestReservedBlocks: 100 tokens take 25 blocks of 4. A window of 8 tokens and 8 that are computed at once are 16
// tokens, 4 blocks in chunks of the window. A sliding window is 15 tokens, since a token sees itself, and may begin and
// end within a block: 4 + 1. At most 11 tokens are 3 blocks.
func TestReservedBlocks(t *testing.T) {
	for _, c := range []struct {
		kind  GroupKind
		rules GroupRules
		want  int32
	}{
		{FullAttention, GroupRules{MaxWindowTokens: 8}, 25},
		{SlidingWindow, GroupRules{}, 25},
		{LocalChunks, GroupRules{MaxWindowTokens: 8}, 4},
		{SlidingWindow, GroupRules{MaxWindowTokens: 8}, 5},
		{LocalChunks, GroupRules{MaxWindowTokens: 8, MaxLength: 11}, 3},
		{SlidingWindow, GroupRules{MaxWindowTokens: 8, MaxLength: 11}, 4},
	} {
		g := Group{Kind: c.kind, Window: 8, BlockSize: 4}
		if got := g.reserve(&c.rules, 100); got != c.want {
			t.Errorf("%v with %+v: %d blocks, want %d", c.kind, c.rules, got, c.want)
		}
	}
}

// TestRunBefore: the blocks before a place, back to an empty one or the first.
func TestRunBefore(t *testing.T) {
	table := &blockTable{blocks: []int32{7, 3, none, 4, 5}}
	for hi, want := range []int32{0, 0, 0, 3, 3, 3} {
		if got := table.runBefore(int32(hi)); got != want {
			t.Errorf("before %d: from %d, want %d", hi, got, want)
		}
	}
}
