package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkTouch sends prompts of a shared and a unique part, of 256 tokens each, to a full cache
// of 16384 blocks: alone; with an image that is refreshed every 100 prompts; with a second cache of
// twice the size that gets the prompts too, like a router's shadow; and with a second cache that
// also gets each eviction.
func BenchmarkTouch(b *testing.B) {
	for _, name := range []string{"alone", "image", "shadow", "evictions"} {
		b.Run(name, func(b *testing.B) {
			tree := NewTree()
			c := NewCache(tree, Config{Blocks: 16384, BlockSize: 16, Caching: true})
			var image *Image
			var shadow *Cache
			switch name {
			case "image":
				image = NewImage(c)
			case "shadow", "evictions":
				shadow = NewCache(tree, Config{Blocks: 2 * 16384, BlockSize: 16, Caching: true})
				if name == "evictions" {
					c.Watch(evictionForwarder{shadow})
				}
			}
			r := rand.New(rand.NewPCG(1, 2))
			groups, ids := make([]string, 512), make([]string, 4096)
			for i := range groups {
				groups[i] = fmt.Sprintf("group-%d", i)
			}
			for i := range ids {
				ids[i] = fmt.Sprintf("own-%d", i)
			}
			var path Path
			n := 0
			send := func() {
				path = tree.Resolve(path[:0], []Segment{{groups[r.IntN(512)], 256}, {ids[r.IntN(4096)], 256}}, 512, "q")
				if shadow != nil {
					shadow.Touch(path, 512)
				}
				c.Touch(path, 512)
				tree.Drop(path)
				if n++; image != nil && n%100 == 0 {
					image.Refresh()
				}
			}
			for range 4096 { // fills the cache
				send()
			}
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
		})
	}
}

// evictionForwarder invalidates in one cache what another has evicted.
type evictionForwarder struct{ to *Cache }

func (t evictionForwarder) Inserted(int, Node, int32, int32)    {}
func (t evictionForwarder) Evicted(_ int, n Node, lo, hi int32) { t.to.Invalidate(n, lo, hi) }

// BenchmarkMatch looks prompts up in a cache and in its image, with thousands of nodes.
func BenchmarkMatch(b *testing.B) {
	tree := NewTree()
	c := NewCache(tree, Config{Blocks: 1 << 17, BlockSize: 16, Caching: true})
	image := NewImage(c)
	var paths []Path
	for i := range 8192 {
		segments := []Segment{{"all", 64}, {fmt.Sprint(i % 512), 64}, {fmt.Sprint("own", i), 128}}
		paths = append(paths, tree.Resolve(nil, segments, 256, fmt.Sprint(i)))
		c.Touch(paths[i], 256)
	}
	image.Refresh()
	for _, m := range []struct {
		name  string
		match func(Path, int) int
	}{{"cache", c.Match}, {"image", image.Match}} {
		b.Run(m.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				if i = (i + 5003) % len(paths); m.match(paths[i], 256) != 256 {
					b.Fatal("a prompt is not found")
				}
			}
		})
	}
}
