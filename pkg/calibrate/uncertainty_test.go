package calibrate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"blis/pkg/cluster"
	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// TestUncertaintyIncludesTheValue: also where shorter and longer steps both increase a metric.
func TestUncertaintyIncludesTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Float64Range(0.001, 1e6)
		is, shorter, longer := ms.Draw(t, "is"), ms.Draw(t, "shorter"), ms.Draw(t, "longer")
		below, above := rapid.Float64Range(0, 10).Draw(t, "below"), rapid.Float64Range(0, 10).Draw(t, "above")
		i := uncertaintyOf(is, below, above, [2]float64{shorter, longer})
		if middle := round(is, 5); i.Lo > middle || i.Hi < middle {
			t.Errorf("%g with steps as fitted, %g and %g: %+v", is, shorter, longer, *i)
		}
	})
}

// TestQueuedRatio: of two requests that queue for 30 steps, the one behind another's prompt has
// a free batch slot, and the one that waits for KV blocks, or for the only slot, has not.
func TestQueuedRatio(t *testing.T) {
	for _, c := range []struct {
		tokens int64
		slots  int
		want   float64
	}{{100, 10, 0}, {9000, 10, 0.5}, {100, 1, 0.5}} {
		p := &holdout{run: &replay{engine: engine{replicas: 1, maxSeqs: c.slots, kvTokens: 9600}},
			selected: []bool{true, true}}
		p.run.requests = []stream.Request{{InputTokens: c.tokens, OutputTokens: 101},
			{ArrivalUS: 50_000, InputTokens: c.tokens, OutputTokens: 101}}
		p.simulated = []timing{{ttft: 10e3, e2e: 1010e3, queue: 0}, {ttft: 310e3, e2e: 1310e3, queue: 300e3}}
		if got := p.queuedRatio(); got != c.want {
			t.Errorf("%d slots, prompts of %d tokens: a ratio of %g is queued, want %g", c.slots, c.tokens, got, c.want)
		}
	}
}

// TestUncertaintyByHand: of a fit to 30 to 50 sequences about 40, whose slope is known to ±10 µs,
// a step of 100 sequences, 10,000 + 100·50 µs, is known to 60·10/15000 = 4 %, and one of 45 as
// well as any; with 3 % of another uncertainty it is 5 %.
func TestUncertaintyByHand(t *testing.T) {
	r := &report{Scatter: &scatter{}}
	r.fit.method = "by hand"
	r.fit.value = coefficients{beta0: 10000, 20, 50, 0}
	r.fit.uncertainty[beta2] = stat.Interval{Lo: 40, Hi: 60, Level: level}
	r.fit.load = load{sequences: 40, lo: 30, hi: 50}
	if d := r.uncertaintyAt(load{sequences: 45}, nil); d.total() != 0 {
		t.Errorf("inside: %v", d)
	}
	d := r.uncertaintyAt(load{sequences: 100}, nil)
	if math.Abs(d.total()-0.04) > 1e-12 ||
		!strings.Contains(d.String(), "100 concurrent sequences extrapolate the fitted 30 to 50") {
		t.Errorf("outside: %g, %s", d.total(), &d)
	}
	d.add(0.03, "other")
	if math.Abs(d.total()-0.05) > 1e-12 {
		t.Errorf("both: %g", d.total())
	}
}

// TestTrendByHand: errors that grow by 50 µs per sequence with a noise of 5 ms and a stall of a
// second in each hundredth have that slope, ± about 1.645·5000/(14.4·√2000) = 13 µs.
func TestTrendByHand(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var x, y []float64
	for i := range 2000 {
		n := 50 * random.Float64()
		d := 1000 + 50*n + 5000*random.NormFloat64()
		if i%100 == 0 {
			d += 1e6
		}
		x, y = append(x, n), append(y, d)
	}
	slope, ci, ok := leastsq.Slope(x, y, level)
	d := &trend{slope, ci}
	if !ok || d.CI.Lo > 50 || d.CI.Hi < 50 || math.Abs((d.CI.Hi-d.CI.Lo)/2-12.8) > 1.5 {
		t.Fatalf("trend %+v", d)
	}
	if low, high := d.errorRange(100); low != 0 || math.Abs(high-d.CI.Hi/10) > 1e-9 {
		t.Errorf("100 sequences more: %g to %g ms", low, high)
	}
	if low, high := d.errorRange(-100); high != 0 || math.Abs(low+d.CI.Hi/10) > 1e-9 {
		t.Errorf("100 sequences fewer: %g to %g ms", low, high)
	}
	if slope, _, ok := leastsq.Slope(make([]float64, 100), y[:100], level); ok {
		t.Errorf("at one load: %g", slope)
	}
}

// TestIntervalsHaveOneLevel: that of texts is that of intervals.
func TestIntervalsHaveOneLevel(t *testing.T) {
	if math.Abs(zLevel-1.645) > 1e-3 {
		t.Errorf("%g standard deviations for %g", zLevel, level)
	}
	d := &trend{-1832, stat.Interval{Lo: -2000, Hi: 20, Level: level}}
	if want := "changes by -1832 us per decoding sequence (-2000 to 20 at 90 %)"; !strings.Contains(d.String(), want) {
		t.Errorf("%q lacks %q", d, want)
	}
}

// TestHostTimeByHand: a step of 20 ms of a GPU takes 1.1 ms more on a host that schedules
// synchronously and 0.8 ms on one that does not, each ± 0.4 ms.
func TestHostTimeByHand(t *testing.T) {
	for _, c := range []struct {
		async bool
		step  float64
	}{{false, 21100}, {true, 20800}} {
		r := &report{setup: &setup{options: &Options{}, deployment: &cluster.Deployment{}}, Scatter: &scatter{}}
		r.setup.deployment.Engine.AsyncScheduling = c.async
		r.fit.method = "by hand"
		r.fit.value = coefficients{beta0: 15000, 20, 50, 0}
		r.addHost()
		l := load{sequences: 100, lo: 0, hi: 200}
		r.fit.load = l
		m, err := r.fit.shape.model(r.fit.value, nil)
		if err != nil {
			t.Fatal(err)
		}
		if us := float64(m.Step(latency.Batch{Decode: 100})); us != c.step {
			t.Errorf("async %v: a step of %g us, want %g", c.async, us, c.step)
		}
		if d := r.uncertaintyAt(l, m); math.Abs(d.total()-400/c.step) > 1e-9 {
			t.Errorf("async %v: uncertainty %g, want %g", c.async, d.total(), 400/c.step)
		}
		r.fit.value[beta0] = -1
		if _, err := r.fit.shape.model(r.fit.value, nil); err == nil {
			t.Error("a negative step time is no error")
		}
	}
}

// TestSlopeByHand: a roofline's 10 µs per sequence without context are known to ±2. Where steps
// of 14,142 µs deviate from a line by 1 % and batches vary by 50, the data's slope is known to ±2,
// too: both have equal weight. Where they differ by 20, the prior's weight is that of a variance
// of 400 − 4 to 4, a hundredth.
// Data with an error of 1e6 have no weight.
func TestSlopeByHand(t *testing.T) {
	p := coefficients{beta2: 10}
	l := load{sd: 50}
	near := func(got, want float64) bool { return math.Abs(got-want) < 1e-3*want }
	d := slopeData{beta2: 12, nonlinearity: 0.01, step: 10000 * math.Sqrt2}
	s := estimateSlope(p, d, l)
	if !near(s.beta2, 11) || !near(s.dataWeight, 0.5) || !near(s.nonlinearity, math.Sqrt2) {
		t.Errorf("data and roofline that agree: %+v", s)
	}
	d.beta2 = 30
	s = estimateSlope(p, d, l)
	if !near(s.beta2, 29.8) || !near(s.dataWeight, 0.99) {
		t.Errorf("data that contradict: %+v", s)
	}
	d.err = 1e6
	if s := estimateSlope(p, d, l); !near(s.beta2, 10) || s.dataWeight > 1e-9 {
		t.Errorf("data without weight: %+v", s)
	}
}
