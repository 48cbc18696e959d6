package operators

import (
	"math"
	"slices"
	"testing"

	"blis/pkg/model"
)

// line is a grid of one axis, whose time is 10 µs at each size.
func line(sizes ...float64) *grid {
	return &grid{x: sizes, y: []float64{0}, us: slices.Repeat([]float64{10}, len(sizes))}
}

// TestFillByContext: what was not measured at a longer context is in proportion to the tokens, the new one included.
func TestFillByContext(t *testing.T) {
	g := &grid{x: []float64{1}, y: []float64{1, 3}, us: []float64{10, math.NaN()}}
	g.fill()
	if want := 10 * 4.0 / 2; *g.at(0, 1) != want {
		t.Errorf("%v µs, want %v", *g.at(0, 1), want)
	}
}

// TestReach: the reach of several tables is that of the smallest, in each direction.
func TestReach(t *testing.T) {
	var c compiler
	for _, g := range []*grid{{x: []float64{1, 64}, y: []float64{0, 100}}, {x: []float64{1, 32}, y: []float64{0, 400}},
		{x: []float64{1, 128}, y: []float64{0, 200}}} {
		c.coversDecode(g, 2)
	}
	if c.reach.Sequences != 16 || c.reach.Context != 100 {
		t.Errorf("%d sequences with %d tokens, want 16 with 100", c.reach.Sequences, c.reach.Context)
	}
	c.tables = newTables("test")
	c.tables.series[key("gemm", "bfloat16", 8, 8)] = line(1, 512)
	if us := c.tabled("bfloat16", 8, 8); us == nil || us(4) != 10 || c.reach.Tokens != 512 {
		t.Errorf("a product reaches %d tokens, want 512", c.reach.Tokens)
	}
	if got := curve(nil, tokenSizes); got.At != nil || got.US != nil {
		t.Errorf("no kernels have the curve %v", got)
	}
}

// TestLoadsOfOtherLaws: only loads by a power between 1 and 2 are corrected.
func TestLoadsOfOtherLaws(t *testing.T) {
	x := experts{experts: 8, topK: 2}
	g := &grid{x: []float64{2, 4, 8}, y: []float64{0}, us: []float64{10, 20, 60}}
	for _, distribution := range []string{"balanced", "power_law_1", "power_law_2", "power_law_0.5", "power_law_x"} {
		if got := x.sameLaw(g, distribution); got != g {
			t.Errorf("%s: %v", distribution, got.us)
		}
	}
	if got := x.sameLaw(g, "power_law_1.2"); got == g || got.us[1] <= 20 || got.us[1] > 60 || got.us[2] != 60 {
		t.Errorf("corrected: %v", got.us)
	}
}

// TestShortChunks: without long chunks, the time of a pair follows from the two longest ones.
func TestShortChunks(t *testing.T) {
	g := &grid{x: []float64{1}, y: []float64{1, 2, 4}, us: []float64{10, 13, 27}}
	tokens, pair := split(g, 0) // 1, 3 and 10 pairs
	if pair != 2 || tokens(1) != 8 || tokens(2) != 8 || tokens(4) != 8 {
		t.Errorf("a pair has %v µs, the rest %v, %v and %v; want 2 and 8", pair, tokens(1), tokens(2), tokens(4))
	}
}

// TestNearestTables: a table of the same sizes stands for itself, without a note, and else the nearest one with a note.
func TestNearestTables(t *testing.T) {
	c := compiler{tables: newTables("test"), arch: &model.Architecture{Hidden: 7168,
		Precision: model.Precision{DType: "bfloat16", KVCache: "bfloat16"}}}
	small, large := line(1), line(1)
	c.tables.series[key("gdn", "context", 2, 4)] = small
	c.tables.series[key("gdn", "context", 8, 32)] = large
	few, many := line(1), line(1)
	c.tables.series[key("mla", "DeepseekV3ForCausalLM", "bfloat16", "bfloat16", 16)] = few
	c.tables.series[key("mla", "DeepseekV3ForCausalLM", "bfloat16", "bfloat16", 128)] = many
	latent := &model.Attention{MLA: &model.MLA{}}
	for _, x := range []struct {
		got, want *grid
		notes     int
	}{
		{c.nearestLinear("gdn", "context", 2, 4), small, 0},
		{c.nearestLinear("kda", "context", 2, 4), nil, 0},
		{c.nearestModule("mla", latent, 16), few, 0},
		{c.nearestModule("mla", latent, 128), many, 0},
		{c.nearestModule("none", latent, 128), nil, 0},
	} {
		if x.got != x.want || len(c.notes) != 0 {
			t.Errorf("%v, want %v; notes %q", x.got, x.want, c.notes)
		}
	}
	large.us[0] = 77
	if got := c.nearestLinear("gdn", "context", 8, 24); got == nil || got.us[0] != 77 || len(c.notes) != 1 {
		t.Errorf("24 heads: %v, notes %q", got, c.notes)
	}
	if got := c.nearestModule("mla", latent, 20); got != few || len(c.notes) != 2 {
		t.Errorf("20 heads: %v, notes %q", got, c.notes)
	}
}
