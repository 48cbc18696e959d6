package calibrate

import (
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stat"
)

// Intervals: how sure they are meant to be, and of how many resamples.
const (
	level     = 0.90
	resamples = 400
)

// levelPercent is the level as texts say it.
const levelPercent = 100 * level

// ofLevel is how many standard deviations of a normal distribution an interval of the
// level reaches to either side: 1.645.
var ofLevel = stat.TQuantile(math.MaxInt32, level)

// Interval is where a coefficient lies with the probability level.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// blocks draws n of n numbered blocks, in stretches of neighbours since what one
// block missed by the next one misses by too: circular, of length ∛n.
type blocks struct {
	n, length int
	draw      func(int) int
}

func newBlocks(n int, seed uint64, name string) *blocks {
	return &blocks{n, max(1, int(math.Cbrt(float64(n)))), dist.NewStream(seed, name).IntN}
}

// counts is how often each block is drawn in one resample.
func (b *blocks) counts() []float64 {
	counts := make([]float64, b.n)
	for drawn := 0; drawn < b.n; {
		at := b.draw(b.n)
		for k := 0; k < b.length && drawn < b.n; k++ {
			counts[(at+k)%b.n]++
			drawn++
		}
	}
	return counts
}

// stretches is how many of them the draws are made of.
func (b *blocks) stretches() int { return b.n / b.length }

// intervalOf sorts draws and returns their middle part.
func intervalOf(draws []float64) Interval {
	slices.Sort(draws)
	at := func(p float64) float64 {
		x := p * float64(len(draws)-1)
		i := min(int(x), len(draws)-2)
		return draws[i] + (x-float64(i))*(draws[i+1]-draws[i])
	}
	return Interval{at((1 - level) / 2), at((1 + level) / 2)}
}

// widening is stat.Widening of intervals at the level; one stretch of blocks says
// nothing of how they scatter.
func widening(stretches int) float64 { return stat.TCorrection(max(2, stretches), level) }

// intervals of a regression's solution: those of fits of resampled blocks.
func (r *regression) intervals(x []float64, seed uint64) []Interval {
	at, n := r.drawn()
	source := newBlocks(n, seed, "blocks/regression")
	draws := make([][]float64, len(r.names))
	// Weights of rows are those of the whole fit: they hardly change.
	weights := make([]float64, len(r.rows))
	off := r.errors(x)
	spread, wider := max(1e-9, deviation(off)), widening(source.stretches())
	for range resamples {
		counts := source.counts()
		for i, e := range off {
			weights[i] = min(1, huber*spread/max(math.Abs(e), 1e-300))
			if at[i] >= 0 {
				weights[i] *= counts[at[i]]
			}
		}
		for k, v := range nnls(r.weighted(weights)) {
			draws[k] = append(draws[k], max(0, x[k]+wider*(v-x[k])))
		}
	}
	out := make([]Interval, len(r.names))
	for k := range out {
		out[k] = intervalOf(draws[k])
	}
	return out
}

// drawn numbers through the blocks that have rows, of which resamples are drawn: for each row
// the number of its own, -1 of a prior's. n is how many there are.
func (r *regression) drawn() (at []int, n int) {
	numbers := slices.Compact(slices.Sorted(slices.Values(r.blocks)))
	numbers = slices.DeleteFunc(numbers, func(block int) bool { return block == ofPrior })
	for _, block := range r.blocks {
		i, ok := slices.BinarySearch(numbers, block)
		if !ok {
			i = -1
		}
		at = append(at, i)
	}
	return at, len(numbers)
}
