package kv

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// What MatchBehind says is what a cache of sufficient size finds once those before
// have been computed in it.
func TestMatchBehindIsMatchAfterwards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := NewTree()
		size := rapid.IntRange(1, 5).Draw(t, "block size")
		caching := rapid.Bool().Draw(t, "caching")
		c := NewCache(tree, 10_000, size, caching, Window{})
		var a Ahead
		a.Add(Path{{None, unbounded}}, 5)
		a.Clear()
		prompt := func(i int) (Path, int) {
			var segments []Segment
			input := 0
			for k := range rapid.IntRange(0, 4).Draw(t, "segments") {
				s := Segment{fmt.Sprint(k, rapid.IntRange(0, 1).Draw(t, "which")), rapid.IntRange(1, 9).Draw(t, "tokens")}
				segments, input = append(segments, s), input+s.Tokens
			}
			input += rapid.IntRange(0, 9).Draw(t, "own")
			return tree.Resolve(nil, segments, input, fmt.Sprint("r", i)), input
		}
		compute := func(path Path, input int) {
			s := c.Open(path)
			c.Lookup(s, input)
			if !c.Admit(s, input, input, 0) {
				t.Fatal("no room")
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "there") {
			compute(prompt(i))
		}
		var paths []Path
		var inputs []int
		for i := range rapid.IntRange(0, 4).Draw(t, "before") {
			path, input := prompt(10 + i)
			a.Add(path, input)
			paths, inputs = append(paths, path), append(inputs, input)
		}
		path, input := prompt(20)
		got := c.MatchBehind(path, input, &a)
		for i := range paths {
			compute(paths[i], inputs[i])
		}
		if want := c.Match(path, input); got != want {
			t.Fatalf("%d tokens, then %d are found", got, want)
		}
	})
}
