package latency

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sampleTable is small enough to compute by hand.
func sampleTable() *Table {
	return &Table{
		PrefillTokens:   []int64{0, 100},
		DecodeSequences: []int64{0, 10, 40},
		ContextTokens:   []int64{0, 1000},
		StepUS: []float64{
			100, 200, 300, 500, 600, 1100, // prefill 0: sequences 0, 10, 40 by context 0, 1000
			1100, 1200, 1300, 1500, 1600, 2100, // prefill 100
		},
	}
}

func newTableModel(t testing.TB, g *Table) Model {
	t.Helper()
	m, err := newTable(Coefficients{Alpha: []float64{0, 0, 0}, Table: g})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTable(t *testing.T) {
	m := newTableModel(t, sampleTable())
	for _, c := range []struct {
		name  string
		batch Batch
		want  int64
	}{
		{"a point", Batch{Decode: 10, Context: 1000}, 500},
		{"the last point", Batch{Prefill: 100, Decode: 40, Context: 1000}, 2100},
		// half way from 300 to 600
		{"between sequences", Batch{Decode: 25}, 450},
		// 275 = mean of 100, 200, 300, 500, and half of 1000
		{"between all", Batch{Prefill: 50, Decode: 5, Context: 500}, 775},
		{"beyond the last prefill", Batch{Prefill: 250}, 2600},                                  // 1100 + 150·10
		{"beyond the last sequences", Batch{Decode: 50}, 700},                                   // 600 + 10·10
		{"beyond the last sequences and context", Batch{Decode: 50, Context: 2000}, 1100 + 700}, // + 10·20 + 1000·0.5
		// + 100·10 + 10·20 + 1000·0.5
		{"beyond the last of all", Batch{Prefill: 200, Decode: 50, Context: 2000}, 2100 + 1700},
		{"bounded", Batch{Prefill: 1 << 61, Decode: 1 << 61, Context: 1 << 61}, 1_000_000_000e6}, // 30 years
		{"ignored inputs", Batch{Decode: 10, Chunks: 9, PriorContext: 1e6, Pairs: 1 << 40}, 300}, // as without
	} {
		if got := m.Step(c.batch); got != c.want {
			t.Errorf("%s: %d µs, want %d", c.name, got, c.want)
		}
	}
}

// TestTableBelowItsFirstPoint: below its first points the table is constant.
func TestTableBelowItsFirstPoint(t *testing.T) {
	m := newTableModel(
		t,
		&Table{PrefillTokens: []int64{0}, DecodeSequences: []int64{8, 16}, ContextTokens: []int64{512},
			StepUS: []float64{0.4, 2.5}},
	)
	// 0.4 is too short, 1.45, 2.5 half up, 4.6
	for decode, want := range map[int64]int64{0: 1, 8: 1, 12: 1, 16: 3, 24: 5} {
		if got := m.Step(Batch{Prefill: 77, Decode: decode, Context: 1e6}); got != want {
			t.Errorf("%d sequences: %d µs, want %d", decode, got, want)
		}
	}
}

// TestTableStaysMonotoneWhenSlopesConverge: context costs more with 10 sequences than with 20, as
// may be measured; far outside, 20 must still take at least as long.
func TestTableStaysMonotoneWhenSlopesConverge(t *testing.T) {
	m := newTableModel(
		t,
		&Table{PrefillTokens: []int64{0}, DecodeSequences: []int64{10, 20}, ContextTokens: []int64{0, 100},
			StepUS: []float64{10, 110, 100, 120}},
	)
	for _, decode := range []int64{10, 15, 20, 30} {
		if got, fewer := m.Step(Batch{Decode: decode, Context: 1100}),
			m.Step(Batch{Decode: decode - 5, Context: 1100}); got < fewer {
			t.Errorf("%d sequences: %d µs, with 5 fewer %d", decode, got, fewer)
		}
	}
	if got := m.Step(Batch{Decode: 20, Context: 1100}); got != 1120 { // 120 + 1000·1, the slope of 10 sequences
		t.Errorf("%d µs, want 1120", got)
	}
}

// drawTable draws a table of up to four points per axis with rising times.
func drawTable(t *rapid.T) *Table {
	axis := func(name string) []int64 {
		points := []int64{rapid.Int64Range(0, 50).Draw(t, name)}
		for range rapid.IntRange(0, 3).Draw(t, name+"s") {
			points = append(points, points[len(points)-1]+rapid.Int64Range(1, 300).Draw(t, name))
		}
		return points
	}
	g := &Table{PrefillTokens: axis("prefill"), DecodeSequences: axis("decode"), ContextTokens: axis("context")}
	rows, width := len(g.DecodeSequences), len(g.ContextTokens)
	for i := range len(g.PrefillTokens) * rows * width {
		us, at := 0.0, g.coordinates(i)
		for n, stride := range [3]int{rows * width, width, 1} {
			if at[n] > 0 {
				us = max(us, g.StepUS[i-stride])
			}
		}
		g.StepUS = append(g.StepUS, us+rapid.SampledFrom([]float64{0, 1, 7.25, 100, 2000}).Draw(t, "us"))
	}
	return g
}

func drawWork(t *rapid.T) Batch {
	tokens := rapid.Int64Range(0, 2000)
	return Batch{Prefill: tokens.Draw(t, "prefill"), Decode: tokens.Draw(t, "decode"),
		Context: tokens.Draw(t, "context")}
}

// referenceStep is an independent implementation of the table model: the weighted sum of the eight
// surrounding points, and beyond an end the steepest slope at or below.
func referenceStep(g *Table, b Batch) float64 {
	value := func(at [3]int) float64 {
		return g.StepUS[(at[0]*len(g.DecodeSequences)+at[1])*len(g.ContextTokens)+at[2]]
	}
	// interpolateAt sums f over the points around the batch, clamped to the axes, weighted by
	// proximity.
	interpolateAt := func(f func([3]int) float64) float64 {
		var around [3]map[int]float64
		for n, a := range g.axes() {
			v := [3]int64{b.Prefill, b.Decode, b.Context}[n]
			v = min(max(v, a.points[0]), a.points[len(a.points)-1])
			around[n] = map[int]float64{}
			for i, p := range a.points {
				if p == v {
					around[n] = map[int]float64{i: 1}
				} else if i > 0 && a.points[i-1] < v && v < p {
					far := float64(v-a.points[i-1]) / float64(p-a.points[i-1])
					around[n] = map[int]float64{i - 1: 1 - far, i: far}
				}
			}
		}
		sum := 0.0
		for i, wi := range around[0] {
			for j, wj := range around[1] {
				for k, wk := range around[2] {
					sum += wi * wj * wk * f([3]int{i, j, k})
				}
			}
		}
		return sum
	}
	us := interpolateAt(value)
	for n, a := range g.axes() {
		last := len(a.points) - 1
		over := [3]int64{b.Prefill, b.Decode, b.Context}[n] - a.points[last]
		if over <= 0 || last == 0 {
			continue
		}
		us += float64(over) * interpolateAt(func(p [3]int) float64 {
			steepest := 0.0
			for i := range p[0] + 1 {
				for j := range p[1] + 1 {
					for k := range p[2] + 1 {
						end := [3]int{i, j, k}
						end[n] = last
						before := end
						before[n]--
						steepest = max(steepest, (value(end)-value(before))/float64(a.points[last]-a.points[last-1]))
					}
				}
			}
			return steepest
		})
	}
	return us
}

func TestTableMatchesReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawTable(t)
		m, err := newTable(Coefficients{Alpha: []float64{0, 0, 0}, Table: g})
		if err != nil {
			t.Fatal(err)
		}
		b := drawWork(t)
		if got, want := float64(m.Step(b)), max(1, referenceStep(g, b)); math.Abs(got-want) > 0.5+1e-6*want {
			t.Fatalf("%+v takes %g µs, want %g", b, got, want)
		}
		i := rapid.IntRange(0, len(g.StepUS)-1).Draw(t, "point")
		at := g.coordinates(i)
		b = Batch{Prefill: g.PrefillTokens[at[0]], Decode: g.DecodeSequences[at[1]], Context: g.ContextTokens[at[2]]}
		if got, want := m.Step(b), max(1, int64(math.Floor(g.StepUS[i]+0.5))); got != want {
			t.Fatalf("point %d takes %d µs, want %d", i, got, want)
		}
	})
}

func TestTableIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := newTable(Coefficients{Alpha: []float64{0, 0, 0}, Table: drawTable(t)})
		if err != nil {
			t.Fatal(err)
		}
		less, more := drawWork(t), drawWork(t)
		more.Prefill, more.Decode, more.Context = more.Prefill+less.Prefill, more.Decode+less.Decode,
			more.Context+less.Context
		if a, b := m.Step(less), m.Step(more); a < 1 || b < a {
			t.Fatalf("%+v takes %d µs, %+v takes %d", less, a, more, b)
		}
	})
}

func TestTablesAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Table)
		want   string
	}{
		{func(g *Table) { g.ContextTokens = nil }, "table.context_tokens must have at least one point"},
		{func(g *Table) { g.DecodeSequences[2] = 10 },
			"table.decode_sequences[2] must be above the 10 before it, is 10"},
		{func(g *Table) { g.PrefillTokens[0] = -1 }, "table.prefill_tokens[0] must be between 0 and"},
		{func(g *Table) { g.StepUS = g.StepUS[:11] },
			"must have 12 times (2 of prefill_tokens x 3 of decode_sequences x 2 of context_tokens), has 11"},
		{func(g *Table) { g.StepUS[3] = math.NaN() }, "table.step_us[3] must be between 0 and"},
		{func(g *Table) { g.StepUS[3] = 250 },
			"table.step_us[3] (prefill_tokens 0, decode_sequences 10, context_tokens 1000) is 250, less than the " +
				"300 at context_tokens 0"},
		{func(g *Table) { g.StepUS[4], g.StepUS[5] = 299, 500 },
			"decode_sequences 40, context_tokens 0) is 299, less than the 300 at decode_sequences 10"},
		{func(g *Table) { g.StepUS[6] = 99 },
			"(prefill_tokens 100, decode_sequences 0, context_tokens 0) is 99, less than the 100 at prefill_tokens 0"},
		{func(g *Table) {
			long := make([]int64, 2000)
			for i := range long {
				long[i] = int64(i)
			}
			g.PrefillTokens, g.DecodeSequences = long, long
		}, "must have at most 1048576 points"},
	} {
		g := sampleTable()
		c.change(g)
		if _, err := newTable(Coefficients{Alpha: []float64{0, 0, 0}, Table: g}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if _, err := newTable(Coefficients{Alpha: []float64{0, 0, 0}}); err == nil ||
		!strings.Contains(err.Error(), "needs a table") {
		t.Errorf("without a table: error %v", err)
	}
	if _, err := newTable(Coefficients{Table: sampleTable()}); err == nil ||
		!strings.Contains(err.Error(), "alpha_us must have 3") {
		t.Errorf("without alpha: error %v", err)
	}
	m, err := newTable(Coefficients{Alpha: []float64{2000, 0.5, 30.5}, Table: sampleTable()})
	if err != nil {
		t.Fatal(err)
	}
	if q, o := m.Queueing(3), m.Output(1); q != 2002 || o != 31 {
		t.Errorf("queueing %d, output %d; want 2002 and 31", q, o)
	}
}

// largeTable has the size of a real measurement: 16 x 24 x 24 points.
func largeTable() *Table {
	g := &Table{}
	for i := range int64(24) {
		if i < 16 {
			g.PrefillTokens = append(g.PrefillTokens, 512*i)
		}
		g.DecodeSequences = append(g.DecodeSequences, 16*i)
		g.ContextTokens = append(g.ContextTokens, 20000*i)
	}
	for i := range 16 * 24 * 24 {
		at := g.coordinates(i)
		g.StepUS = append(g.StepUS, 5000+float64(9000*at[0]+500*at[1]+300*at[2]))
	}
	return g
}

func BenchmarkTable(b *testing.B) {
	linear, err := newLinear(Coefficients{Alpha: []float64{0, 0, 0}, Beta: []float64{1e4, 50, 200, 0.5}})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		m    Model
	}{{"linear", linear}, {"table", newTableModel(b, largeTable())}} {
		for name, batch := range map[string]Batch{"decode": {Decode: 100, Context: 77777},
			"mixed": {Prefill: 900, Decode: 100, Context: 77777}} {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					batch.Context += c.m.Step(batch) & 1
				}
			})
		}
	}
}

func TestTablesDoNotAllocate(t *testing.T) {
	m := newTableModel(t, largeTable())
	if n := testing.AllocsPerRun(100, func() { m.Step(Batch{Prefill: 1e5, Decode: 33, Context: 1e9}) }); n != 0 {
		t.Errorf("%g allocations a step", n)
	}
}
