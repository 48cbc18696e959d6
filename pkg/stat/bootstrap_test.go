package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

// Quantiles and sums of bootstrap samples are those of the observations, each repeated
// as often as its block was drawn.
func TestBootstrapSamplesMatchExpandedData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Int64Range(0, 50), n, n).Draw(t, "values")
		length := rapid.IntRange(1, 40).Draw(t, "length")
		missing := rapid.IntRange(0, 3).Draw(t, "missing") // every (missing+1)-th has no value
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r := NewResampling(len(values), length, 7, random.IntN)
		sums := make([]float64, r.Blocks())
		var samples []Keyed
		for i, v := range values {
			if missing > 0 && i%(missing+1) == 0 {
				continue
			}
			sums[r.Block(i)] += float64(v)
			samples = append(samples, Keyed{math.Float64bits(float64(v)), r.Block(i)})
		}
		percents := []int64{0, 37, 50, 99, 100}
		got := r.Quantiles(SortKeyed(samples, make([]Keyed, len(samples))), percents)
		total := r.Sums(sums)
		for d, w := range r.weights {
			var out []float64
			var sum int64
			for i, v := range values {
				if missing > 0 && i%(missing+1) == 0 {
					continue
				}
				for range w[r.Block(i)] {
					out, sum = append(out, float64(v)), sum+v
				}
			}
			slices.Sort(out)
			if total[d] != float64(sum) {
				t.Fatalf("sum of bootstrap sample %d is %v, want %d", d, total[d], sum)
			}
			for k, p := range percents {
				if len(out) == 0 {
					if !math.IsNaN(got[k][d]) {
						t.Fatalf("p%d of an empty sample is %v", p, got[k][d])
					}
				} else if want := QuantileFloat(out, p); got[k][d] != want {
					t.Fatalf("p%d of bootstrap sample %d is %v, want %v of %v", p, d, got[k][d], want, out)
				}
			}
		}
	})
}

// Blocks are contiguous and complete, and their lengths differ by at most one.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "n")
		r := NewResampling(n, rapid.IntRange(1, 6000).Draw(t, "length"), 1, func(int) int { return 0 })
		has := make([]int, r.Blocks())
		for i := range n {
			has[r.Block(i)]++
			if i > 0 && r.Block(i) < r.Block(i-1) {
				t.Fatal("blocks are not in order")
			}
		}
		if slices.Max(has)-slices.Min(has) > 1 {
			t.Fatalf("block lengths are %v", has)
		}
	})
}

// 1000 estimates 1, 2, … 1000 from ten blocks: t with 9 degrees of freedom is 2.2622,
// times √(10/9) 2.3845; the normal distribution has 0.0085508 beyond that.
func TestIntervalByHand(t *testing.T) {
	var estimates []float64
	for i := range 1000 {
		estimates = append(estimates, float64(1000-i))
	}
	r := NewResampling(100, 10, 1, func(int) int { return 0 })
	ci, ok := r.Interval(estimates)
	if !ok || math.Abs(ci.Lo-(1+999*0.00855)) > 0.01 || math.Abs(ci.Lo+ci.Hi-1001) > 1e-9 || ci.Level != 0.95 {
		t.Errorf("%+v, %v", ci, ok)
	}
	if p := tailProbability(1_000_000); math.Abs(p-0.025) > 1e-6 {
		t.Errorf("tail probability for a million blocks is %v, want 0.025", p)
	}
	if x := tQuantile(5, z975); math.Abs(x-2.5706) > 0.005 {
		t.Errorf("t quantile for 5 degrees of freedom is %v, want 2.5706", x)
	}
	for i := range 60 {
		estimates[i] = math.NaN()
	}
	if _, ok := r.Interval(estimates); ok {
		t.Error("there is an interval although 6 % of the estimates are missing")
	}
	if _, ok := NewResampling(9, 9, 1, func(int) int { return 0 }).Interval(estimates[60:]); ok {
		t.Error("there is an interval with one block")
	}
}

// autoregressive returns an AR(1) series with mean 0, variance 1 and lag-1 correlation
// phi.
func autoregressive(n int, phi float64, random *rand.Rand) []float64 {
	x := make([]float64, n)
	x[0] = random.NormFloat64()
	for i := 1; i < n; i++ {
		x[i] = phi*x[i-1] + math.Sqrt(1-phi*phi)*random.NormFloat64()
	}
	return x
}

// Two runs share the noise of their workload and each adds its own. Both parts are
// correlated over time, and the second run is slower by half a standard deviation. Over
// 300 such pairs the intervals for the differences of mean and p90 must contain the
// true value in about 95 % of the cases; with blocks that are too short they do not.
func TestIntervalsCover(t *testing.T) {
	const n, pairs, shift, phi = 2000, 300, 0.5, 0.9
	random := rand.New(rand.NewPCG(1, 2))
	covered := map[string]int{}
	var unpaired, paired float64 // widths
	for range pairs {
		both, a, b := autoregressive(n, phi, random), autoregressive(n, phi, random), autoregressive(n, phi, random)
		difference := make([]float64, n)
		for i := range both {
			a[i], b[i] = 20+both[i]+a[i]/2, 20+both[i]+b[i]/2+shift
			difference[i] = b[i] - a[i]
		}
		length, enough := BlockLength(difference)
		if !enough {
			t.Fatalf("blocks of %d are too short for 2000 requests", length)
		}
		short, blocks, other := NewResampling(n, 4, 400, random.IntN), NewResampling(n, length, 400, random.IntN),
			NewResampling(n, length, 400, random.IntN)
		for name, estimates := range map[string][]float64{
			"mean": minus(means(blocks, b), means(blocks, a)), "p90": minus(p90s(blocks, b), p90s(blocks, a)),
			"mean, blocks of four": minus(means(short, b), means(short, a)),
			"mean, unpaired":       minus(means(other, b), means(blocks, a)),
		} {
			ci, ok := blocks.Interval(estimates)
			if ok && ci.Lo <= shift && shift <= ci.Hi {
				covered[name]++
			}
			switch name {
			case "mean":
				paired += ci.Hi - ci.Lo
			case "mean, unpaired":
				unpaired += ci.Hi - ci.Lo
			}
		}
	}
	t.Logf("of %d intervals: %v; paired ones have %.0f %% of the width of unpaired ones", pairs, covered,
		100*paired/unpaired)
	for _, name := range []string{"mean", "p90"} {
		if share := float64(covered[name]) / pairs; share < 0.89 || share > 0.98 {
			t.Errorf("coverage of the %s intervals is %.3f, want 0.95", name, share)
		}
	}
	if share := float64(covered["mean, blocks of four"]) / pairs; share > 0.8 {
		t.Errorf("coverage with short blocks is %.3f: this test does not test blocks", share)
	}
	if paired > 0.6*unpaired {
		t.Errorf("paired intervals have %.2f of the width of unpaired ones, want at most 0.6", paired/unpaired)
	}
}

func TestRatios(t *testing.T) {
	got := Ratios([]float64{3, 0, 1, 0}, []float64{2, 4, 0, 0})
	if got[0] != 1.5 || got[1] != 0 || !math.IsNaN(got[2]) || !math.IsNaN(got[3]) {
		t.Errorf("ratios are %v, want 1.5, 0, NaN, NaN", got)
	}
}

func means(r *Resampling, x []float64) []float64 {
	sums, counts := make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for i, v := range x {
		sums[r.Block(i)] += v
		counts[r.Block(i)]++
	}
	return Ratios(r.Sums(sums), r.Sums(counts))
}

func p90s(r *Resampling, x []float64) []float64 {
	samples := make([]Keyed, len(x))
	for i, v := range x {
		samples[i] = Keyed{math.Float64bits(v), r.Block(i)} // all are positive
	}
	return r.Quantiles(SortKeyed(samples, make([]Keyed, len(x))), []int64{90})[0]
}

func minus(x, y []float64) []float64 {
	d := slices.Clone(x)
	for i := range d {
		d[i] -= y[i]
	}
	return d
}

// Blocks grow with the correlation of neighbors and with the cube root of the series
// length. For the mean of an AR(1) series G/D^(1/2) is known: G is 2·phi/(1−phi)², the
// sum of R is (1+phi)/(1−phi).
func TestBlockLength(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const n = 20_000
	for _, phi := range []float64{0, 0.5, 0.8} {
		got, enough := BlockLength(autoregressive(n, phi, random))
		g, d := 2*phi/((1-phi)*(1-phi)), (1+phi)/(1-phi)
		want := math.Cbrt(g * g / (d * d) * n)
		t.Logf("phi %v: %d, %.1f by the formula", phi, got, want)
		if !enough || float64(got) > 2*want+8 || float64(got) < want/1.5-3 {
			t.Errorf("phi %v: blocks of %d (%v), want about %.1f", phi, got, enough, want)
		}
	}
	var trend []float64
	for i := range 1000 {
		trend = append(trend, float64(i))
	}
	if length, enough := BlockLength(trend); enough || length != 100 {
		t.Errorf("blocks for a trend have length %d, enough %v", length, enough)
	}
	if length, enough := BlockLength(trend[:9]); enough || length != 1 {
		t.Errorf("blocks for nine values have length %d, enough %v", length, enough)
	}
	for _, x := range [][]float64{nil, {1}, {2, 2, 2, 2, 2, 2}, {1, 2, 1}, make([]float64, 1000)} {
		if length, enough := BlockLength(x); length != 1 || !enough {
			t.Errorf("%v: blocks have length %d, enough %v", x, length, enough)
		}
	}
	if length, _ := BlockLength(autoregressive(3*maxSeriesLength, 0.5, random)); length > 600 {
		t.Errorf("blocks for a long series have length %d", length)
	}
}

// TestMissingEstimates: an interval may lack 5 % of the estimates, and needs two blocks and one estimate.
func TestMissingEstimates(t *testing.T) {
	for _, c := range []struct {
		n, missing, blocks int
		want               bool
	}{{1000, 50, 2, true}, {1000, 51, 2, false}, {1000, 0, 1, false}, {1, 0, 2, true}, {0, 0, 2, false}} {
		estimates := make([]float64, c.n)
		for i := range c.missing {
			estimates[i] = math.NaN()
		}
		r := NewResampling(c.blocks, 1, 1, func(int) int { return 0 })
		if _, ok := r.Interval(estimates); ok != c.want {
			t.Errorf("%+v: %v", c, ok)
		}
	}
}

// TestLongSeriesAreAveraged: a series of maxSeriesLength values is analyzed as it is, and in groups of 4, 16, …; one of
// a value more in groups of 2, 8, …. That makes a difference for some series.
func TestLongSeriesAreAveraged(t *testing.T) {
	longest := func(series []float64, first int) (length int) {
		for size := first; len(series)/size >= minSeriesLength; size *= 4 {
			length = max(length, size*ruleLength(centeredMeans(series, size)))
		}
		return length
	}
	differ := map[int]bool{}
	for _, phi := range []float64{0.1, 0.2, 0.3, 0.4} {
		all := autoregressive(maxSeriesLength+1, phi, rand.New(rand.NewPCG(5, 6)))
		for first, series := range map[int][]float64{1: all[:maxSeriesLength], 2: all} {
			want := longest(series, first)
			if got, _ := BlockLength(series); got != want {
				t.Errorf("phi %g, %d values: blocks of %d, want %d", phi, len(series), got, want)
			}
			differ[first] = differ[first] || want != longest(series, 3-first)
		}
	}
	if !differ[1] || !differ[2] {
		t.Errorf("the groups make no difference: %v", differ)
	}
}
