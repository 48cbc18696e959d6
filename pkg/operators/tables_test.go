package operators

import (
	"math"
	"slices"
	"testing"
)

func TestGrid(t *testing.T) {
	g := newGrid([]row{{x: 1, y: 0, us: 10}, {x: 1, y: 100, us: 20}, {x: 2, y: 0, us: 12}, {x: 2, y: 100, us: 40},
		{x: 4, y: 0, us: 30}, {x: 1, y: 100, us: 25}})
	for _, c := range []struct{ x, y, want float64 }{
		{1, 0, 10}, {1, 50, 15}, {1.5, 50, 20.5}, {0, 0, 10}, // between cells, and below them
		{4, 100, 80}, // not measured: in proportion to the sequences
		{8, 0, 60},   // beyond: in proportion
		{2, 200, 80}, // also the context
		{1, 100, 20}, // the shorter of two measurements
		{3, 100, 60}} {
		if have := g.interpolate(c.x, c.y); math.Abs(have-c.want) > 1e-9 {
			t.Errorf("%g, %g: %g µs, want %g", c.x, c.y, have, c.want)
		}
	}
	falling := newGrid([]row{{x: 1, us: 10}, {x: 2, us: 50}, {x: 4, us: 20}, {x: 8, us: 30}})
	falling.clean()
	if want := []float64{10, 20, 20, 30}; !slices.Equal(falling.us, want) {
		t.Errorf("cleaned: %v, want %v", falling.us, want)
	}
}

// TestCleanProducts: what all matrices show at a size is a slower kernel, what one shows is noise.
func TestCleanProducts(t *testing.T) {
	tables := newTables("test")
	for n := 1; n <= 5; n++ {
		g := &grid{y: []float64{0}}
		for m := 1.0; m <= 64; m *= 2 {
			us := 300 + m
			if m == 16 {
				us = 450 // in all
			}
			if m == 4 && n == 3 {
				us = 900 // in one
			}
			g.x, g.us = append(g.x, m), append(g.us, us)
		}
		tables.series[key("gemm", "bfloat16", 64*n, 64)] = g
	}
	tables.cleanProducts()
	g := tables.series[key("gemm", "bfloat16", 192, 64)]
	if !slices.IsSorted(g.us) {
		t.Errorf("times fall: %v", g.us)
	}
	if us := g.interpolate(4, 0); us > 310 {
		t.Errorf("noise stays: %g µs", us)
	}
	if us := g.interpolate(16, 0); us < 345 || us > 450 {
		t.Errorf("the slow kernel takes %g µs, want the geometric mean of its neighbors", us)
	}
}

func TestCompareVersions(t *testing.T) {
	versions := []string{"0.9.2", "0.14.1.dev1+gd68209402", "0.14.1", "0.24.0", "2.27", "2.27.5"}
	slices.SortFunc(versions, CompareVersions)
	if want := []string{"0.9.2", "0.14.1", "0.14.1.dev1+gd68209402", "0.24.0", "2.27",
		"2.27.5"}; !slices.Equal(versions, want) {
		t.Errorf("%v, want %v", versions, want)
	}
}

func TestCodec(t *testing.T) {
	a := newTables("test")
	a.series["gemm|fp8|8|8"] = newGrid([]row{{x: 1, us: 3}, {x: 32, us: 700}, {x: 100, us: 9e6}})
	a.series["decode|fp8|128|0|1|8"] = newGrid([]row{{x: 1, y: 5, us: 3}, {x: 1, y: 9, us: 4}, {x: 2, y: 5, us: 6}})
	packed := a.encode()
	b, err := decode("test", packed)
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range a.series {
		h := b.series[name]
		if h == nil || !slices.Equal(g.x, h.x) || !slices.Equal(g.y, h.y) {
			t.Errorf("%s: %+v, want %+v", name, h, g)
			continue
		}
		for i, us := range g.us {
			if math.Abs(h.us[i]/us-1) > 0.0021 {
				t.Errorf("%s: %g µs, want %g", name, h.us[i], us)
			}
		}
	}
	for n := range packed {
		if c, err := decode("test", packed[:n]); err == nil && len(c.series) > len(a.series) {
			t.Errorf("%d of %d bytes: %d series", n, len(packed), len(c.series))
		}
	}
}

// FuzzDecode: no input crashes the decoder.
func FuzzDecode(f *testing.F) {
	t := newTables("test")
	t.series["gemm|fp8|8|8"] = newGrid([]row{{x: 1, us: 3}, {x: 32, us: 700}})
	f.Add(t.encode())
	f.Fuzz(func(t *testing.T, packed []byte) {
		if len(packed) > 1<<10 {
			return
		}
		_, _ = decode("test", packed)
	})
}
