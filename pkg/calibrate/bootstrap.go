package calibrate

import (
	"math"
	"slices"

	"blis/pkg/dist"
	"blis/pkg/stat"

	"gonum.org/v1/gonum/mat"
)

// Intervals: how sure they are meant to be, and of how many resamples.
const (
	level     = 0.90
	resamples = 400
)

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

// intervals are those of all coefficients, by one step of Gauss and Newton for each
// resample of blocks of time: a fit anew would play thousands of runs, and ends at the
// same place but for what is not linear and for where a search happens to end, which
// is drawn beside. Those of the data lie about where these alone lead. Doubts lie about
// the solution; what step times are off a line is no scatter of blocks, and is drawn
// beside, as slope believes it.
func (f *clientFit) intervals(seed uint64) (data, doubts []Interval) {
	p := *f.problem
	p.parameters = slices.Clone(p.parameters)
	p.parameters[atBeta2].spread = 0 // as told by the data
	var sources []*blocks
	stretches := 0
	for _, r := range f.runs {
		b := newBlocks(len(r.blocks), seed, "blocks/"+r.file.Digest+"/"+r.of)
		sources = append(sources, b)
		stretches += b.stretches()
	}
	wider := widening(stretches)
	normal := dist.NewStream(seed, "slope")
	tries := dist.NewStream(seed, "ends of the search")
	along := p.along(f.told, atBeta2)
	own, drawn := make([][]float64, len(names)), make([][]float64, len(names))
	add := func(to [][]float64, x []float64) {
		for k, q := range p.parameters {
			x[k] = min(max(x[k], q.least), q.most)
		}
		c := f.coefficients(x)
		for k, v := range c.list() {
			to[k] = append(to[k], v)
		}
	}
	for range resamples {
		var counts []float64
		for _, b := range sources {
			counts = append(counts, b.counts()...)
		}
		h, g := p.normal(f.told, func(i int) float64 { return counts[i/features] })
		x := p.move(f.told.x, h, g, 0)
		end := f.told.wander[tries.IntN(len(f.told.wander))]
		side := float64(2*tries.IntN(2) - 1)
		for k := range x {
			x[k] = f.told.x[k] + wider*(x[k]-f.told.x[k]) + side*end[k]
		}
		add(own, slices.Clone(x))
		moved := x[atBeta2] - f.told.x[atBeta2]
		slope := f.trust*moved + f.slopeError*normal.NormFloat64()
		for k, v := range x {
			x[k] = f.solution.x[k] + v - f.told.x[k] + along[k]*(slope-moved)
		}
		add(drawn, x)
	}
	for k := range names {
		data, doubts = append(data, intervalOf(own[k])), append(doubts, intervalOf(drawn[k]))
	}
	return data, doubts
}

// widening is stat.Widening of intervals at the level; one stretch of blocks says
// nothing of how they scatter.
func widening(stretches int) float64 { return stat.Widening(max(2, stretches), level) }

// along is how the parameters move where one of them is moved by 1 and the others
// follow as the data want.
func (p *problem) along(s *solution, fixed int) []float64 {
	h, _ := p.normal(s, always)
	n := len(s.x)
	a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		for k := range n {
			if i != fixed && k != fixed {
				a.Set(i, k, h.At(i, k))
			}
		}
		b.SetVec(i, -h.At(i, fixed))
	}
	a.Set(fixed, fixed, 1)
	b.SetVec(fixed, 1)
	var d mat.VecDense
	out := make([]float64, n)
	if d.SolveVec(a, b) != nil {
		out[fixed] = 1 // the others are not told: they stay
		return out
	}
	for i := range n {
		out[i] = d.AtVec(i)
	}
	return out
}

// intervals of a regression's solution: those of fits of resampled blocks.
func (r *regression) intervals(x []float64, seed uint64) []Interval {
	n := slices.Max(r.blocks) + 1
	source := newBlocks(n, seed, "blocks/regression")
	draws := make([][]float64, len(r.names))
	// Weights of rows are those of the whole fit: they hardly change.
	weights := make([]float64, len(r.rows))
	off := r.errors(x)
	spread, wider := max(1e-9, deviation(off)), widening(source.stretches())
	for range resamples {
		counts := source.counts()
		for i, e := range off {
			weights[i] = counts[r.blocks[i]] * min(1, huber*spread/max(math.Abs(e), 1e-300))
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
