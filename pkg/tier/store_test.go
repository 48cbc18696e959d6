package tier

import (
	"math/rand/v2"
	"testing"

	"blis/pkg/kv"
)

// TestEviction: blocks of the request that used them least recently go first, and its last ones before its first ones.
func TestEviction(t *testing.T) {
	tree := kv.NewTree()
	path := func(id string) kv.Path {
		return tree.Resolve(nil, []kv.Segment{{ID: id, Tokens: 40}}, 40, id)
	}
	p, q, r := path("p"), path("q"), path("r")
	s := NewStore(tree, 8, "lru")
	var a, b, c User
	for _, o := range []struct {
		user *User
		path kv.Path
	}{{&a, p}, {&b, q}} {
		missing, ok := s.Offer(o.user, o.path, 10, 0, 4)
		if !ok || Blocks(missing) != 4 {
			t.Fatalf("%v of four blocks are missing, room %v", missing, ok)
		}
		s.Stored(missing, NoRank)
		s.Finish(o.user, o.path, 10)
	}
	if n, busy := s.Lookup(p, 10, 0, 4); n != 4 || busy {
		t.Fatalf("%d blocks of p, busy %v", n, busy)
	}
	var d User
	load := s.Load(&d, p, 10, 0, 2) // two blocks of p are used again
	if missing, ok := s.Offer(&c, r, 10, 0, 3); !ok || Blocks(missing) != 3 {
		t.Fatalf("%v are missing, room %v", missing, ok)
	}
	for _, x := range []struct {
		path kv.Path
		want int32
		busy bool
	}{{p, 2, true}, {q, 3, false}, {r, 3, true}} {
		if n, busy := s.Lookup(x.path, 10, 0, 4); n != x.want || busy != x.busy {
			t.Errorf("%d blocks, busy %v; want %d, %v", n, busy, x.want, x.busy)
		}
	}
	if _, ok := s.Offer(&d, path("s"), 10, 0, 4); ok {
		t.Error("there is room for four blocks when five are in transfers")
	}
	s.Stored(load, NoRank)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// TestOfferInLoad: a request that offers only blocks in a load has used them, and its rank is that of this time. The
// first request's block p has rank 1, and 2 when it ends; the load gives it 3 and the offer 4. s has rank 5 and r, of
// the request that offered p, 4: p and r go before s.
func TestOfferInLoad(t *testing.T) {
	tree := kv.NewTree()
	path := func(id string) kv.Path {
		return tree.Resolve(nil, []kv.Segment{{ID: id, Tokens: 20}}, 20, id)
	}
	p, r, s := path("p"), path("r"), path("s")
	store := NewStore(tree, 3, "lru")
	offer := func(u *User, x kv.Path, want int32) {
		t.Helper()
		missing, ok := store.Offer(u, x, 10, 0, want)
		if !ok || Blocks(missing) != want {
			t.Fatalf("%v are missing, room %v", missing, ok)
		}
		store.Stored(missing, NoRank)
	}
	var first, loads, offers, other, last User
	offer(&first, p, 1)
	store.Finish(&first, p, 10)
	load := store.Load(&loads, p, 10, 0, 1)
	if missing, ok := store.Offer(&offers, p, 10, 0, 1); !ok || len(missing) > 0 {
		t.Fatalf("%v are missing, room %v", missing, ok)
	}
	store.Stored(load, NoRank)
	offer(&other, s, 1)
	offer(&offers, r, 1)
	offer(&last, path("t"), 2)
	for _, x := range []struct {
		path kv.Path
		want int32
	}{{p, 0}, {r, 0}, {s, 1}} {
		if n, _ := store.Lookup(x.path, 10, 0, 1); n != x.want {
			t.Errorf("%d blocks; want %d", n, x.want)
		}
	}
}

// TestNodes adds and drops nodes at random and expects what a map has.
func TestNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	table, want := newNodes(2), map[kv.Node]int32{}
	for i := range int32(20000) {
		switch n := kv.Node(random.IntN(300)); random.IntN(3) {
		case 0:
			table.add(n).first = i
			want[n] = i
		case 1:
			x := table.find(n)
			if x.node == n {
				x.first = none
			}
			table.drop(x)
			delete(want, n)
		default:
			got := table.find(n)
			if x, ok := want[n]; ok && got.first != x || !ok && *got != noEnds {
				t.Fatalf("step %d: node %d has %+v; want %d, %v", i, n, *got, x, ok)
			}
		}
	}
	if table.used != len(want) || len(want) == 0 {
		t.Errorf("%d nodes; want %d", table.used, len(want))
	}
}

// TestTailEndsInAnyOrder: the end of a store of Added may be noted after that of a later store, if both have ended.
func TestTailEndsInAnyOrder(t *testing.T) {
	tree := kv.NewTree()
	path := tree.Resolve(nil, nil, 20, "")
	s := NewStore(tree, 9, "lru")
	s.Growers(func(int32) {})
	s.KeepTails()
	var u User
	offer := func(lo, hi int32) []Extent {
		list, ok := s.Offer(&u, path, 10, lo, hi)
		if !ok {
			t.Fatalf("no room for blocks %d to %d", lo, hi)
		}
		return list
	}
	s.Stored(offer(0, 3), u.Rank())
	node, ok := s.Grow(1, &u, path, 10, 3)
	if !ok {
		t.Fatal("it does not grow")
	}
	s.Add(1)
	s.StopGrowing(&u, node, 3, 3, 4)
	later := offer(4, 5)
	s.Stored(later, u.Rank())
	s.Added(1)
	s.Ready(Extent{node, 3, 4}, u.Rank())
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	s.Known(&u)
	if n, busy := s.Lookup(path, 10, 0, 9); n != 5 || busy {
		t.Errorf("%d blocks, busy %v", n, busy)
	}
}

// TestGrow: a user grows that has used blocks, where no other grows and no block comes after its next one. What it has
// added is known when it stops, and extends its last run if that is ready.
func TestGrow(t *testing.T) {
	tree := kv.NewTree()
	path := tree.Resolve(nil, []kv.Segment{{ID: "a", Tokens: 20}}, 20, "a")
	tail := path[len(path)-1].Node
	s := NewStore(tree, 9, "lru")
	s.Growers(func(int32) {})
	var u, other, arc User
	if _, ok := s.Grow(1, &u, path, 10, 2); ok {
		t.Error("a user grows that has used nothing")
	}
	missing, ok := s.Offer(&u, path, 10, 0, 3)
	if !ok || Blocks(missing) != 3 {
		t.Fatalf("%v are missing, room %v", missing, ok)
	}
	s.Stored(missing, NoRank)
	s.numberOf(&other)
	for _, from := range []int32{1, 2} {
		if _, ok := s.Grow(1, &u, path, 10, from); ok {
			t.Errorf("it grows from block %d on", from)
		}
	}
	if node, ok := s.Grow(1, &u, path, 10, 3); !ok || node != tail {
		t.Fatalf("it does not grow: %v, %v", node, ok)
	}
	if _, ok := s.Grow(2, &other, path, 10, 3); ok {
		t.Error("two users grow in a node")
	}
	s.Add(2)
	s.Added(1)
	s.StopGrowing(&u, tail, 3, 4, 5)
	if n, busy := s.Lookup(path, 10, 0, 9); n != 5 || !busy {
		t.Errorf("%d blocks, busy %v", n, busy)
	}
	if r := s.nodes.find(tail).first; s.runs[r].Lo != 2 || s.runs[r].Hi != 4 {
		t.Errorf("the first run is %+v, want blocks 2 and 3", s.runs[r])
	}
	s.Stored([]Extent{{tail, 4, 5}}, NoRank)
	if n, busy := s.Lookup(path, 10, 0, 9); n != 5 || busy {
		t.Errorf("%d blocks, busy %v", n, busy)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if s.Leave(&u); u.Used() || s.Check() != nil {
		t.Errorf("a user that has left: %+v, %v", u, s.Check())
	}
	s = NewStore(tree, 9, "arc")
	s.numberOf(&arc)
	if _, ok := s.Grow(1, &arc, path, 10, 3); ok {
		t.Error("a user grows in a store that does not evict by lru")
	}
}

// TestCheckCountsGhosts: a store for two blocks remembers at most four that it evicted.
func TestCheckCountsGhosts(t *testing.T) {
	tree := kv.NewTree()
	node := tree.Resolve(nil, []kv.Segment{{ID: "a", Tokens: 90}}, 90, "a")[0].Node
	for ghosts, ok := range map[int32]bool{4: true, 5: false} {
		s := NewStore(tree, 2, "arc")
		a := s.eviction.(*adaptive)
		a.ghosts.insert(Extent{node, 0, ghosts}, ready, a.ghosts.rankIn(once, 1, true))
		if err := s.Check(); (err == nil) != ok {
			t.Errorf("%d ghosts: %v", ghosts, err)
		}
	}
}

// TestMissedGhosts: evicted blocks that a request misses are noted again as if they were evicted now, the last one
// before the others (vLLM goes through them backward), so that the last one is forgotten first.
func TestMissedGhosts(t *testing.T) {
	tree := kv.NewTree()
	node := tree.Resolve(nil, []kv.Segment{{ID: "a", Tokens: 90}}, 90, "a")[0].Node
	s := NewStore(tree, 4, "arc")
	a := s.eviction.(*adaptive)
	a.ghosts.insert(Extent{node, 0, 3}, ready, a.ghosts.rankIn(once, s.nextNumber(), true))
	a.missed(s, &User{}, []Extent{{node, 0, 3}})
	var first Extent
	a.ghosts.take(once, 1, func(x Extent, _ bool) { first = x })
	if want := (Extent{node, 2, 3}); first != want {
		t.Errorf("%v is forgotten first, want %v", first, want)
	}
}
