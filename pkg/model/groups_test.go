package model

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/internal/mutation"
)

// plainLayer is one layer of a pipeline stage.
type plainLayer struct {
	kind   KVKind
	window int
	bytes  int64 // of a token
}

// plainPlan lays out layers without states one by one, as get_kv_cache_groups of vLLM does.
func plainPlan(layers []plainLayer, blockSize int, ratio float64) KVPlan {
	var kinds []plainLayer
	of := map[plainLayer][]plainLayer{}
	oneType, allBytes, largest := true, int64(0), int64(0)
	for _, l := range layers {
		if of[l] == nil {
			kinds = append(kinds, l)
		}
		of[l] = append(of[l], l)
		oneType = oneType && l.kind == layers[0].kind && l.window == layers[0].window
		allBytes += l.bytes
		largest = max(largest, l.bytes)
	}
	if oneType {
		all := KVGroup{layers[0].kind, layers[0].window, blockSize, len(layers)}
		return KVPlan{[]KVGroup{all}, allBytes * int64(blockSize)}
	}
	fewest, most := len(layers), 0
	for _, k := range kinds {
		fewest, most = min(fewest, len(of[k])), max(most, len(of[k]))
	}
	size := fewest
	if ratio*float64(fewest) > float64(most) {
		size = most
	}
	plan := KVPlan{BlockBytes: largest * int64(blockSize) * int64(size)}
	for _, k := range kinds {
		tokens := blockSize
		if largest%k.bytes == 0 {
			tokens = blockSize * int(largest/k.bytes)
		}
		groups := 1
		for groups*size < len(of[k]) {
			groups++
		}
		first := len(plan.Groups)
		for range groups {
			plan.Groups = append(plan.Groups, KVGroup{k.kind, k.window, tokens, 0})
		}
		for i := range of[k] { // dealt in turn
			plan.Groups[first+i%groups].Layers++
		}
	}
	return plan
}

func TestPlainKVPlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := MemoryPlan{TP: 1, PP: rapid.IntRange(1, 3).Draw(rt, "pp"), DP: 1, BlockSize: 16,
			GroupRatio: rapid.SampledFrom([]float64{1, 1.25, 1.5, 2}).Draw(rt, "ratio")}
		var plain []plainLayer
		seen := map[plainLayer]bool{}
		for range rapid.IntRange(1, 4).Draw(rt, "kinds") {
			l := plainLayer{KVFull, 0, 1024 * rapid.Int64Range(1, 4).Draw(rt, "KiB")}
			if rapid.Bool().Draw(rt, "window") {
				l.kind, l.window = KVWindow, 128*rapid.IntRange(1, 2).Draw(rt, "size")
			}
			if seen[l] {
				continue
			}
			seen[l] = true
			stage := rapid.IntRange(1, 12).Draw(rt, "layers")
			p.Layers = append(p.Layers, KVLayers{Kind: l.kind, WindowTokens: l.window, Bytes: l.bytes, Heads: 1,
				Count: stage*p.PP - rapid.IntRange(0, p.PP-1).Draw(rt, "fewer")})
			for range stage {
				plain = append(plain, l)
			}
		}
		if diff := cmp.Diff(plainPlan(plain, p.BlockSize, p.GroupRatio), p.KVPlan()); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestPlainGroupRatio tries all small numbers of layers of two kinds, so that some have exactly the ratio.
func TestPlainGroupRatio(t *testing.T) {
	window := plainLayer{KVWindow, 128, 1024}
	for _, other := range []plainLayer{{KVFull, 0, 1024}, {KVWindow, 256, 1024}} {
		for _, ratio := range []float64{1, 1.25, 1.5, 2} {
			for n := 1; n <= 12; n++ {
				for m := 1; m <= 12; m++ {
					p := MemoryPlan{TP: 1, PP: 1, DP: 1, BlockSize: 16, GroupRatio: ratio, Layers: []KVLayers{
						{Kind: other.kind, WindowTokens: other.window, Bytes: other.bytes, Heads: 1, Count: n},
						{Kind: window.kind, WindowTokens: window.window, Bytes: window.bytes, Heads: 1, Count: m}}}
					plain := append(slices.Repeat([]plainLayer{other}, n), slices.Repeat([]plainLayer{window}, m)...)
					if diff := cmp.Diff(plainPlan(plain, p.BlockSize, p.GroupRatio), p.KVPlan()); diff != "" {
						t.Fatalf("%d and %d layers with ratio %g: %s", n, m, ratio, diff)
					}
				}
			}
		}
	}
}

// TestMutations breaks the rules of groups one at a time and expects the plain layout to notice each.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("builds tests with broken rules; run without -short")
	}
	mutation.Run(t, []mutation.Mutation{
		{Rule: "the ratio is exceeded below it only", File: "model/groups.go",
			Old: "if float64(most) < float64(p.GroupRatio", New: "if float64(most) <= float64(p.GroupRatio"},
		{Rule: "the ratio is a setting", File: "model/groups.go",
			Old: "float64(p.GroupRatio*float64(fewest))", New: "float64(1.5*float64(fewest))"},
		{Rule: "below the ratio groups have the most layers", File: "model/groups.go",
			Old: "\t\tsize = most\n", New: "\t\tsize = fewest + 0*most\n"},
		{Rule: "layers are dealt to groups in turn", File: "model/groups.go",
			Old: "(l.Count - k + n - 1) / n", New: "min(size, l.Count-k*size)"},
		{Rule: "a small page has more tokens", File: "model/groups.go",
			Old: "case l.Kind != KVState && largest%pages[i] == 0:",
			New: "case l.Kind != KVState && largest < 0*pages[i]:"},
		{Rule: "a block has the largest page for each layer", File: "model/groups.go",
			Old: "int64(size) * largest}", New: "int64(size) * pages[0]}"},
		{Rule: "a pipeline stage has its share of the layers", File: "model/groups.go",
			Old: "l.Count = (l.Count + p.PP - 1) / p.PP", New: "l.Count = l.Count / p.PP"},
		{Rule: "one window is one type", File: "model/groups.go",
			Old: " && l.WindowTokens == layers[0].WindowTokens", New: ""},
	}, func(int) []string { return []string{"^TestPlain(KVPlan|GroupRatio)$"} })
}
