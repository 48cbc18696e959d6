package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestNamedNodesMatchMap: after any sequence of paths that come and go, a tree finds the named nodes that a map finds.
func TestNamedNodesMatchMap(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		tree, names := NewTree(), 1+random.IntN(60)
		var paths []Path
		for step := range 400 {
			if len(paths) > random.IntN(50) {
				k := random.IntN(len(paths))
				tree.Drop(paths[k])
				paths[k] = paths[len(paths)-1]
				paths = paths[:len(paths)-1]
			} else {
				segments, input := make([]Segment, random.IntN(4)), random.IntN(2)
				for i := range segments {
					segments[i] = Segment{ID: fmt.Sprint("s", random.IntN(names)), Tokens: 1 + random.IntN(3)}
					input += segments[i].Tokens
				}
				paths = append(paths, tree.Resolve(nil, segments, input, fmt.Sprint("r", step)))
			}
			want := map[nodeKey]Node{}
			for n := range tree.nodes {
				if x := &tree.nodes[n]; x.named {
					want[x.key] = Node(n)
				}
			}
			if tree.named.used != len(want) {
				t.Fatalf("seed %d, step %d: %d named nodes, want %d", seed, step, tree.named.used, len(want))
			}
			for key, n := range want {
				if got := tree.find(&key, key.hash()).node; got != n {
					t.Fatalf("seed %d, step %d: node %d for %v, want %d", seed, step, got, key, n)
				}
			}
		}
	}
}
