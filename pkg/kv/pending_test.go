package kv

import (
	"fmt"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

// TestMatchAfterPredictsLaterMatch computes the pending prompts in a large cache and compares.
func TestMatchAfterPredictsLaterMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := NewTree()
		size := rapid.IntRange(1, 5).Draw(t, "block size")
		caching := rapid.Bool().Draw(t, "caching")
		c := NewCache(tree, Config{Blocks: 10_000, BlockSize: size, Caching: caching})
		var a PendingPrompts
		a.Add(Path{{noNode, unbounded}}, 5)
		a.Clear()
		prompt := func(i int) (Path, int) {
			var segments []Segment
			input := 0
			for k := range rapid.IntRange(0, 4).Draw(t, "segments") {
				s := Segment{fmt.Sprint(k, rapid.IntRange(0, 1).Draw(t, "variant")),
					rapid.IntRange(1, 9).Draw(t, "tokens")}
				segments, input = append(segments, s), input+s.Tokens
			}
			input += rapid.IntRange(0, 9).Draw(t, "unnamed tokens")
			return tree.Resolve(nil, segments, input, fmt.Sprint("r", i)), input
		}
		compute := func(path Path, input int) {
			s := c.Open(path, input)
			c.Lookup(s, input)
			if !c.Admit(s, input, input, 0) {
				t.Fatal("the cache is full")
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "cached prompts") {
			compute(prompt(i))
		}
		var paths []Path
		var inputs []int
		for i := range rapid.IntRange(0, 4).Draw(t, "pending prompts") {
			path, input := prompt(10 + i)
			a.Add(path, input)
			paths, inputs = append(paths, path), append(inputs, input)
		}
		path, input := prompt(20)
		got := c.MatchAfter(path, input, &a)
		for i := range paths {
			compute(paths[i], inputs[i])
		}
		if want := c.Match(path, input); got != want {
			t.Fatalf("MatchAfter says %d tokens, later %d are found", got, want)
		}
	})
}
