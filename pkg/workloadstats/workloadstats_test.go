package workloadstats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// request returns a request with the given lengths.
func request(at stream.Micros, input, output int64, prompt ...stream.Segment) *stream.Arrival {
	return &stream.Arrival{Request: stream.Request{ID: fmt.Sprintf("r%d", at), ArrivalUS: at, InputTokens: input,
		OutputTokens: output, Prompt: prompt}}
}

// describeArrivals describes requests that arrive at the given times.
func describeArrivals(instants []stream.Micros) *Description {
	d := New()
	for _, us := range instants {
		d.Add(request(us, 10, 10))
	}
	return d.Description()
}

func approxEqual(got *float64, want float64) bool {
	return got != nil && math.Abs(*got-want) <= 1e-9*max(1, math.Abs(want))
}

// anyArrivals draws arrival times in order, with very different gaps.
var anyArrivals = rapid.Custom(func(t *rapid.T) []stream.Micros {
	gaps := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 2_000_000),
		rapid.Int64Range(0, 400_000_000)), 1, 80).Draw(t, "gaps")
	var list []stream.Micros
	sum := int64(0)
	for _, gap := range gaps {
		sum += gap
		list = append(list, stream.Micros(sum))
	}
	return list
})

// Gaps, minutes and timeline match their definitions.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		list := anyArrivals.Draw(rt, "arrivals")
		d := describeArrivals(list)
		first, last := list[0], list[len(list)-1]
		var gaps []float64
		for i := 1; i < len(list); i++ {
			gaps = append(gaps, float64(list[i]-list[i-1]))
		}
		if mean, deviation := moments(gaps); len(gaps) < 2 || mean == 0 {
			if d.CV != nil {
				rt.Fatalf("cv %g of %v", *d.CV, gaps)
			}
		} else if !approxEqual(d.CV, deviation/mean) {
			rt.Fatalf("cv %v, want %g", d.CV, deviation/mean)
		}

		var counts []float64
		for minute := first; minute+60_000_000 <= last; minute += 60_000_000 {
			n := 0.0
			for _, us := range list {
				if us >= minute && us < minute+60_000_000 {
					n++
				}
			}
			counts = append(counts, n)
		}
		if d.Minutes != int64(len(counts)) {
			rt.Fatalf("%d whole minutes, want %d", d.Minutes, len(counts))
		}
		if mean, deviation := moments(counts); len(counts) > 1 && !approxEqual(d.Fano, deviation*deviation/mean) {
			rt.Fatalf("fano %v, want %g", d.Fano, deviation*deviation/mean)
		}

		width := stream.Micros(d.Timeline.BucketS) * 1_000_000
		if n := int64(len(d.Timeline.Counts)); n > maxBuckets || n != int64((last-first)/width)+1 {
			rt.Fatalf("%d buckets of %d µs for %d µs", n, width, last-first)
		}
		for i, n := range d.Timeline.Counts {
			from := first + stream.Micros(i)*width
			for _, us := range list {
				if us >= from && us < from+width {
					n--
				}
			}
			if n != 0 {
				rt.Fatalf("bucket %d is wrong by %d", i, n)
			}
		}
	})
}

// moments returns the population mean and standard deviation.
func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}

// A timeline of centuries keeps its counts in wider buckets.
func TestLongTimeline(t *testing.T) {
	const day = 86_400_000_000
	d := describeArrivals([]stream.Micros{0, 1, 59_000_000, 61_000_000, 40 * 3_600_000_000, 100_000 * day})
	if got := d.Timeline.BucketS; got != 86400 {
		t.Errorf("buckets of %d s", got)
	}
	if c := d.Timeline.Counts; c[0] != 4 || c[1] != 1 || c[100_000] != 1 || len(c) != 100_001 {
		t.Errorf("%d buckets, %v", len(c), c[:3])
	}
}

func TestEmptyWorkload(t *testing.T) {
	want := &Description{FromUS: stream.Never, UntilUS: stream.Never, Timeline: Timeline{BucketS: 1, Counts: []int64{}}}
	if diff := cmp.Diff(want, New().Description()); diff != "" {
		t.Error(diff)
	}
	if us := New().OfferedUS(); us != 0 {
		t.Errorf("%d µs are offered", us)
	}
	one := describeArrivals([]stream.Micros{5})
	if one.Rate != nil || one.CV != nil || one.Fano != nil || one.Correlation != nil || one.FromUS != 5 ||
		one.UntilUS != 5 {
		t.Errorf("%+v", one)
	}
}

func TestLengths(t *testing.T) {
	d := New()
	for i := range int64(5) {
		d.Add(request(stream.Micros(i), 10+10*i, 100-20*i))
	}
	l := d.Description().Lengths
	// 10, 20, 30, 40, 50: deviation √200; p95 at 0.95·4 = 3.8.
	want := &Distribution{Count: 5, Mean: 30, CV: math.Sqrt(200) / 30, P50: 30, P90: 46, P95: 48, P99: 49.6, Max: 50}
	if diff := cmp.Diff(want, l.Input); diff != "" {
		t.Error(diff)
	}
	if !approxEqual(l.Correlation, -1) {
		t.Errorf("correlation %v, want -1", l.Correlation)
	}
	d = New()
	for i, pair := range [][2]int64{{1, 1}, {1, 3}, {3, 1}, {3, 3}} {
		d.Add(request(stream.Micros(i), pair[0], pair[1]))
	}
	if got := d.Description().Correlation; !approxEqual(got, 0) {
		t.Errorf("correlation %v, want 0", got)
	}
}

// Parts equal the descriptions of separate workloads.
func TestPartsEqualSeparateDescriptions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"", "x", "y"})
		all := New()
		alone := map[string]*Describer{}
		for i, us := range anyArrivals.Draw(rt, "arrivals") {
			a := request(us, rapid.Int64Range(1, 99).Draw(rt, "input"), rapid.Int64Range(1, 99).Draw(rt, "output"))
			a.Request.ID = fmt.Sprint(i)
			a.Request.SLOClass, a.Request.Tenant, a.Request.Model = name.Draw(rt, "class"), name.Draw(rt, "tenant"),
				name.Draw(rt, "model")
			all.Add(a)
			for dimension, n := range []string{a.Request.SLOClass, a.Request.Tenant, a.Request.Model} {
				key := fmt.Sprint(dimension, n)
				if alone[key] == nil {
					alone[key] = New()
				}
				alone[key].Add(a)
			}
		}
		d := all.Description()
		for dimension, parts := range []map[string]*Part{d.Cls, d.Tenant, d.Model} {
			sum := int64(0)
			for n, p := range parts {
				want := alone[fmt.Sprint(dimension, n)].Description()
				got := &Description{Arrivals: p.Arrivals, Calls: p.Calls, CV: p.CV, Lengths: p.Lengths}
				if diff := cmp.Diff(&Description{Arrivals: want.Arrivals, Calls: want.Calls, CV: want.CV,
					Lengths: want.Lengths}, got); diff != "" {
					rt.Fatalf("part %q: %s", n, diff)
				}
				sum += p.Arrivals
			}
			if none := alone[fmt.Sprint(dimension, "")]; none != nil {
				sum += none.Description().Arrivals
			}
			if sum != d.Arrivals {
				rt.Fatalf("the parts have %d arrivals of %d", sum, d.Arrivals)
			}
		}
	})
}

// anyPrompt draws segments of a few names, so that prompts often share prefixes.
var anyPrompt = rapid.Custom(func(t *rapid.T) []stream.Segment {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stream.Segment {
		return stream.Segment{ID: rapid.SampledFrom([]string{"a", "b", "r0.out", "r1.out", "ab"}).Draw(t, "id"),
			Tokens: rapid.Int64Range(1, 40).Draw(t, "tokens")}
	}), 0, 4).Draw(t, "prompt")
})

// Hits equal those of prompts compared token by token with all earlier ones.
func TestPrefixHits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := New()
		var before [][]string
		var tokens, hits, blocks, named int64
		for i := range rapid.IntRange(1, 12).Draw(rt, "requests") {
			prompt := anyPrompt.Draw(rt, "prompt")
			var written []string
			for _, s := range prompt {
				for k := range s.Tokens {
					written = append(written, fmt.Sprint(s.ID, ":", k))
				}
			}
			input := int64(len(written)) + rapid.Int64Range(0, 1).Draw(rt, "more")*17
			if input == 0 {
				input = 1
			}
			output := rapid.Int64Range(1, 30).Draw(rt, "output")
			hit := 0
			for _, b := range before {
				k := 0
				for k < min(len(b), len(written)) && b[k] == written[k] {
					k++
				}
				hit = max(hit, k)
			}
			tokens += input
			hits += int64(hit)
			named += int64(len(written))
			blocks += min(int64(hit), input-1) / 16 * 16
			d.Add(request(stream.Micros(i), input, output, prompt...))
			if int64(len(written)) == input {
				for k := range output - 1 {
					written = append(written, fmt.Sprintf("r%d.out:%d", i, k))
				}
			}
			before = append(before, slices.Clone(written))
		}
		p := d.Description().Prefix
		if !approxEqual(&p.Hit, float64(hits)/float64(tokens)) ||
			!approxEqual(&p.BlockHit, float64(blocks)/float64(tokens)) ||
			!approxEqual(&p.Identified, float64(named)/float64(tokens)) {
			rt.Fatalf("%+v, want %d, %d and %d of %d tokens", p, hits, blocks, named, tokens)
		}
	})
}

// TestTimelineOfDays: three days are kept in minutes, and 36 buckets of two hours are the most below 60.
func TestTimelineOfDays(t *testing.T) {
	const day = 86_400_000_000
	d := describeArrivals([]stream.Micros{0, 1, 3*day - 1})
	if got := d.Timeline; got.BucketS != 7200 || len(got.Counts) != 36 || got.Counts[0] != 2 || got.Counts[35] != 1 {
		t.Errorf("%+v", got)
	}
}

// TestRatesOfTimeline: the last bucket is not complete.
func TestRatesOfTimeline(t *testing.T) {
	low, high, ok := (&Timeline{BucketS: 2, Counts: []int64{4, 8, 6, 1}}).Rates()
	if low != 2 || high != 4 || !ok {
		t.Errorf("%v to %v, %v", low, high, ok)
	}
	for _, few := range [][]int64{nil, {7}} {
		if _, _, ok := (&Timeline{BucketS: 2, Counts: few}).Rates(); ok {
			t.Errorf("%v has rates", few)
		}
	}
}

// TestZerosDoNotVary: values that are all 0 have no variation.
func TestZerosDoNotVary(t *testing.T) {
	if d := distribution([]int64{0, 0}, 1); d.CV != 0 || d.Mean != 0 || d.Count != 2 {
		t.Errorf("%+v", d)
	}
}
