package diff

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/resample"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// randomRuns makes two runs of n requests on three replicas and two tenants. A slow
// fluctuation of the workload affects both; b is slower by 5 ms and some of its requests
// time out.
func randomRuns(n int, seed uint64) (a, b testRun) {
	random := dist.NewStream(seed, "test")
	a, b = testRun{policy: "x"}, testRun{policy: "y"}
	wave := 0.0
	for i := range n {
		wave = 0.7*wave + 10*math.Abs(random.NormFloat64())
		id, at := fmt.Sprint("r", i), int64(i*50)
		for k, r := range []*testRun{&a, &b} {
			ttft := int64(20+wave+20*random.Float64()) + int64(5*k)
			o := outcome(id, at, ttft/4, ttft, ttft+int64(100+100*random.Float64()), int64(2+i%7),
				stream.Index(random.IntN(3)))
			o.Tenant, o.CachedTokens, o.Preemptions = fmt.Sprint("t", i%2), int64(random.IntN(100)),
				int64(random.IntN(2))
			if k == 1 && i%37 == 5 {
				o.State, o.Reason, o.CompletedUS, o.GeneratedTokens, o.EndedUS, o.SLOMet = stream.StateTimedOut,
					stream.ReasonDeadline, stream.Never, 1, o.CompletedUS, stream.BoolPtr(false)
			}
			r.outcomes = append(r.outcomes, o)
		}
	}
	return a, b
}

// slowInterval draws blocks as the package comment describes, expands the requests of
// each bootstrap sample, and computes the statistic of both sides from them.
func slowInterval(a, b []stream.Outcome, blocks int, seed uint64, of func([]stream.Outcome) float64) (lo, hi float64) {
	rng := dist.NewStream(seed, "bootstrap")
	n := len(a)
	var differences []float64
	for range resample.Samples {
		var x, y []stream.Outcome
		for range blocks {
			k := rng.IntN(blocks)
			for i := range n {
				if i*blocks/n == k {
					x, y = append(x, a[i]), append(y, b[i])
				}
			}
		}
		differences = append(differences, of(y)-of(x))
	}
	slices.Sort(differences)
	at := func(p float64) float64 {
		position := p * (resample.Samples - 1)
		low := math.Floor(position)
		return differences[int(low)] + (position-low)*(differences[int(math.Ceil(position))]-differences[int(low)])
	}
	// With few blocks the percentiles are further out than 2.5 and 97.5, by Student's t
	// distribution with blocks - 1 degrees of freedom.
	out := normalCDF(-tQuantile975(float64(blocks-1)) * math.Sqrt(float64(blocks)/float64(blocks-1)))
	return at(out), at(1 - out)
}

// tQuantile975 returns the 97.5 % quantile of Student's t distribution with v degrees of
// freedom, by integrating its density from 0.
func tQuantile975(v float64) float64 {
	above, _ := math.Lgamma((v + 1) / 2)
	below, _ := math.Lgamma(v / 2)
	const step = 1e-4
	sum, x := 0.0, 0.0
	for sum < 0.475 {
		sum += step * math.Exp(above-below) / math.Sqrt(v*math.Pi) * math.Pow(1+(x+step/2)*(x+step/2)/v, -(v+1)/2)
		x += step
	}
	return x
}

func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// The intervals of the document are those of bootstrap samples that are expanded request
// by request.
func TestIntervalsMatchExpandedSamples(t *testing.T) {
	a, b := randomRuns(160, 1)
	d := compareFiles(t, files{"a": a.stream(), "b": b.stream()}, Options{Seed: 7})
	if d.Bootstrap == nil || d.Bootstrap.Blocks < stat.MinBlocks || d.Bootstrap.Blocks > 299 {
		t.Fatalf("%+v", d.Bootstrap)
	}
	t.Logf("%+v", *d.Bootstrap)
	sorted := func(list []stream.Outcome, of func(*stream.Outcome) (float64, bool)) []float64 {
		var x []float64
		for i := range list {
			if v, ok := of(&list[i]); ok {
				x = append(x, v)
			}
		}
		slices.Sort(x)
		return x
	}
	ttft := func(o *stream.Outcome) (float64, bool) { return float64(o.FirstTokenUS-o.ArrivalUS) / 1000, true }
	e2e := func(o *stream.Outcome) (float64, bool) {
		return float64(o.CompletedUS-o.ArrivalUS) / 1000, o.CompletedUS != stream.Never
	}
	count := func(list []stream.Outcome, of func(*stream.Outcome) bool) float64 {
		n := 0.0
		for i := range list {
			if of(&list[i]) {
				n++
			}
		}
		return n
	}
	met := func(o *stream.Outcome) bool { return *o.SLOMet }
	for path, of := range map[string]func([]stream.Outcome) float64{
		"ttft.p90":      func(l []stream.Outcome) float64 { return stat.QuantileFloat(sorted(l, ttft), 90) },
		"e2e.p50":       func(l []stream.Outcome) float64 { return stat.QuantileFloat(sorted(l, e2e), 50) },
		"e2e.mean":      func(l []stream.Outcome) float64 { return stat.Mean(sorted(l, e2e)) },
		"e2e.count":     func(l []stream.Outcome) float64 { return float64(len(sorted(l, e2e))) },
		"goodput.ratio": func(l []stream.Outcome) float64 { return count(l, met) / float64(len(l)) },
		"requests.timed_out": func(l []stream.Outcome) float64 {
			return count(l, func(o *stream.Outcome) bool { return o.State == "timed_out" })
		},
		"kv.prefix_hit_ratio": func(l []stream.Outcome) float64 {
			sum := 0.0
			for i := range l {
				sum += float64(l[i].CachedTokens)
			}
			return sum / float64(100*len(l))
		},
		`tenants["t1"].ttft.mean`: func(l []stream.Outcome) float64 {
			return stat.Mean(sorted(l, func(o *stream.Outcome) (float64, bool) {
				v, _ := ttft(o)
				return v,
					o.Tenant == "t1"
			}))
		},
	} {
		lo, hi := slowInterval(a.outcomes, b.outcomes, d.Bootstrap.Blocks, 7, of)
		m := d.Metrics.at(path)
		if near := 0.005 * (hi - lo); m.CI == nil || math.Abs(m.CI.Lo-lo) > near || math.Abs(m.CI.Hi-hi) > near {
			t.Errorf("%s: %+v, want %v..%v", path, m.CI, lo, hi)
		}
		if *m.Diff < lo || *m.Diff > hi {
			t.Errorf("%s: %v is not between %v and %v", path, *m.Diff, lo, hi)
		}
	}
	for _, path := range []string{"ttft.max", "e2e.max", "fairness.jain"} {
		if m := d.Metrics.at(path); m.A == nil || m.CI != nil {
			t.Errorf("%s: %+v", path, m)
		}
	}
}

func show(x *float64) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprint(*x)
}

// Swapping the sides negates differences and intervals; a run compared with itself has
// only zeros.
func TestSwappedSidesNegateDifferences(t *testing.T) {
	for seed := range 20 {
		a, b := randomRuns(1+3*seed, uint64(seed))
		f := files{"a": a.stream(), "b": b.stream()}
		there := compareFiles(t, f, Options{})
		back := compareFiles(t, f, Options{Streams: []string{"b", "a"}})
		self := compareFiles(t, files{"a": f["a"], "b": f["a"]}, Options{})
		if self.Status != "same" || there.Requests.Changed != back.Requests.Changed ||
			there.Requests.Slower != back.Requests.Faster {
			t.Fatalf("%s; %+v; %+v", self.Status, there.Requests, back.Requests)
		}
		for _, m := range there.Metrics {
			o := back.Metrics.at(m.Path)
			if (m.CI == nil) != (o.CI == nil) || (m.Diff == nil) != (o.Diff == nil) {
				t.Fatalf("%s: %+v and %+v", m.Path, m, o)
			}
			if m.Diff != nil && *m.Diff != -*o.Diff {
				t.Fatalf("%s: %v and %v", m.Path, *m.Diff, *o.Diff)
			}
			if x, y := m.CI, o.CI; x != nil &&
				(math.Abs(x.Lo+y.Hi) > 1e-6 || math.Abs(x.Hi+y.Lo) > 1e-6 || x.Lo > x.Hi) {
				t.Fatalf("%s: %+v and %+v", m.Path, *x, *y)
			}
		}
		for _, m := range self.Metrics {
			if m.CI != nil && (m.CI.Lo != 0 || m.CI.Hi != 0) {
				t.Fatalf("%s: a run differs from itself: %+v", m.Path, *m.CI)
			}
		}
	}
}
