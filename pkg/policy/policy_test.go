package policy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"blis/pkg/kv"
)

// TestRoutersConform holds every router in the table to what is common to all:
// the choice is a candidate, equal views give equal choices, and nothing is
// allocated.
func TestRoutersConform(t *testing.T) {
	for _, e := range Routers {
		t.Run(e.Name, func(t *testing.T) {
			a, err := e.Value(Spec{Type: e.Name})
			if err != nil {
				t.Fatal(err)
			}
			b, err := e.Value(Spec{Type: e.Name})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 1))
			var v View
			for range 500 {
				v = randomView(r)
				first, second := a.Route(&v), b.Route(&v)
				if first != second {
					t.Fatalf("%+v and %+v for the same view", first, second)
				}
				if first.Candidate < 0 || first.Candidate >= len(v.Replicas) {
					t.Fatalf("candidate %d of %d", first.Candidate, len(v.Replicas))
				}
			}
			if n := testing.AllocsPerRun(100, func() { a.Route(&v) }); n != 0 {
				t.Errorf("%v allocations a choice", n)
			}
			if _, err := e.Value(Spec{Type: e.Name, Params: map[string]float64{"queue-deph": 1}}); err == nil {
				t.Error("an unknown parameter is accepted")
			}
		})
	}
}

func randomView(r *rand.Rand) View {
	v := View{Group: r.IntN(2), InputTokens: 512, Replicas: make([]Replica, 1+r.IntN(20))}
	for i := range v.Replicas {
		v.Replicas[i] = Replica{Index: int32(i), QueueDepth: int32(r.IntN(4)), Inflight: int32(r.IntN(4)), Blocks: 32, Matched: int32(r.IntN(33))}
	}
	return v
}

func TestTiesGoToTheLowestIndex(t *testing.T) {
	v := View{Replicas: []Replica{{QueueDepth: 2, Inflight: 3}, {QueueDepth: 1, Inflight: 2}, {QueueDepth: 1, Inflight: 2}}}
	for _, name := range []string{"least-loaded", "weighted"} {
		r, err := NewRouter(Spec{Type: name})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Route(&v); c.Candidate != 1 {
			t.Errorf("%s chose %d, want 1", name, c.Candidate)
		}
	}
}

// TestRoundRobin: models take turns by themselves.
func TestRoundRobin(t *testing.T) {
	r, err := NewRouter(Spec{Type: "round-robin"})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, group := range []int{0, 0, 1, 0, 1, 0} {
		got += fmt.Sprint(r.Route(&View{Group: group, Replicas: make([]Replica, 3)}).Candidate)
	}
	if got != "010210" {
		t.Errorf("turns %s, want 010210", got)
	}
}

// TestWeighted: 3·(16/32) + 2·0 = 1.5 against 3·0 + 2·1 = 2, and with the
// queue's weight at 1 the other way round.
func TestWeighted(t *testing.T) {
	v := View{Replicas: []Replica{{QueueDepth: 4, Matched: 16, Blocks: 32}, {QueueDepth: 0, Blocks: 32}}}
	for _, c := range []struct {
		queue float64
		want  Choice
	}{{2, Choice{1, 2}}, {1, Choice{0, 1.5}}} {
		r, err := NewRouter(Spec{Type: "weighted", Params: map[string]float64{"prefix-affinity": 3, "queue-depth": c.queue}})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Route(&v); got != c.want {
			t.Errorf("queue-depth %v: %+v, want %+v", c.queue, got, c.want)
		}
	}
}

func TestUnknownRouter(t *testing.T) {
	_, err := NewRouter(Spec{Type: "least-loadd"})
	if err == nil || !strings.Contains(err.Error(), `did you mean "least-loaded"?`) {
		t.Errorf("error %v", err)
	}
}

// TestShadow: the router expects what it sent, a shorter use of a prefix too,
// and only where it sent it.
func TestShadow(t *testing.T) {
	tree := kv.NewTree()
	s := NewShadow(tree, 100, []int{16, 16})
	long := tree.Resolve(nil, []kv.Segment{{ID: "a", Tokens: 100}}, 120, "")
	short := tree.Resolve(nil, []kv.Segment{{ID: "a", Tokens: 60}, {ID: "b", Tokens: 40}}, 100, "r")
	s.Sent(0, long, 120)
	v := View{InputTokens: 100, Path: short, Replicas: []Replica{{Index: 0}, {Index: 1}}}
	s.Look(&v)
	// 60 shared tokens are three full blocks of 16; the prompt has six.
	if a, b := v.Replicas[0], v.Replicas[1]; a.Matched != 3 || a.Blocks != 6 || b.Matched != 0 {
		t.Errorf("expected %+v and %+v", a, b)
	}
}
