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
		s.Stored(missing)
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
	s.Stored(load)
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
		store.Stored(missing)
	}
	var first, loads, offers, other, last User
	offer(&first, p, 1)
	store.Finish(&first, p, 10)
	load := store.Load(&loads, p, 10, 0, 1)
	if missing, ok := store.Offer(&offers, p, 10, 0, 1); !ok || len(missing) > 0 {
		t.Fatalf("%v are missing, room %v", missing, ok)
	}
	store.Stored(load)
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
			if x := table.find(n); x.node == n {
				x.first = none
			}
			table.drop(n)
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
