package stat

import (
	"math"
	"slices"
)

// Resampling is a block bootstrap. It divides n observations in order of time into
// blocks of nearly equal length. Each bootstrap sample draws as many blocks as there
// are, with replacement. The spread of a statistic over the bootstrap samples estimates
// its uncertainty. Blocks keep correlated neighbors together, such as requests that
// waited in the same queue; resampling single observations would make the intervals
// too narrow.
//
// Two series that share one Resampling are resampled in pairs: the noise that both
// share cancels in their difference.
//
// Blocks do not overlap (Carlstein, Annals of Statistics 14, 1986). A bootstrap sample
// is therefore a count for each block, and its sums and quantiles need no copy of the
// observations. BlockLength estimates the block length.
type Resampling struct {
	n, blocks int
	// weights[s][b] is how often bootstrap sample s contains block b.
	weights [][]uint16
}

// maxBlocks is the maximum number of blocks: more cost time, and longer blocks are
// only safer.
const maxBlocks = 500

// NewResampling draws bootstrap samples of n observations in blocks of the given length,
// longer if there would be more than MaxBlocks. pick returns a uniform random number
// below its argument.
func NewResampling(n, length, samples int, pick func(int) int) *Resampling {
	r := &Resampling{n: n, blocks: min(max(n/max(length, 1), 1), maxBlocks, max(n, 1))}
	for range samples {
		w := make([]uint16, r.blocks)
		for range w {
			w[pick(r.blocks)]++
		}
		r.weights = append(r.weights, w)
	}
	return r
}

// Blocks returns the number of blocks.
func (r *Resampling) Blocks() int { return r.blocks }

// Samples returns the number of bootstrap samples.
func (r *Resampling) Samples() int { return len(r.weights) }

// Block returns the block of the i-th observation, both from 0.
func (r *Resampling) Block(i int) uint32 { return uint32(int64(i) * int64(r.blocks) / int64(r.n)) }

// Sums returns the total of each bootstrap sample, given the totals of the blocks.
func (r *Resampling) Sums(of []float64) []float64 {
	sums := make([]float64, len(r.weights))
	if !slices.ContainsFunc(of, func(x float64) bool { return x != 0 }) {
		return sums
	}
	for d, w := range r.weights {
		for b, x := range of {
			sums[d] += float64(float64(w[b]) * x)
		}
	}
	return sums
}

// Quantiles returns the percentiles of each bootstrap sample: result[k][s] is
// percents[k] of sample s, NaN if the sample has no values. sorted are the values,
// ascending and not negative, each with its bits (math.Float64bits) as the key and its
// block as the tag; an observation may have any number of values. percents ascend.
func (r *Resampling) Quantiles(sorted []Keyed, percents []int64) [][]float64 {
	c := newPartitions(sorted, r.blocks)
	result := make([][]float64, len(percents))
	totals := make([]int64, c.count()+1)
	for _, w := range r.weights {
		n := c.totals(w, totals)
		for k, percent := range percents {
			x := math.NaN()
			if n > 0 {
				lo, hi, hundredths := quantilePosition(n, percent)
				a, b := c.neighbors(lo, hi-lo, w, totals)
				x = interpolateFloats(a, b, hundredths)
			}
			result[k] = append(result[k], x)
		}
	}
	return result
}

// Ratios returns x/y for each bootstrap sample, NaN where y is 0.
func Ratios(x, y []float64) []float64 {
	q := make([]float64, len(x))
	for i := range q {
		q[i] = math.NaN()
		if y[i] != 0 {
			q[i] = x[i] / y[i]
		}
	}
	return q
}

// partitions divides sorted values into pieces and counts the values of each block in
// each piece, so that a quantile of a bootstrap sample is found by a search over pieces
// and then within one.
type partitions struct {
	sorted []Keyed
	size   int
	// counts[p·blocks+b] is the number of values of block b in piece p.
	counts []int32
	blocks int
	// tags are those of sorted, in little memory.
	tags []uint16
}

func newPartitions(sorted []Keyed, blocks int) *partitions {
	// Each piece costs one operation per block; the piece that is found is scanned.
	pieces := min(64, 1+len(sorted)/(4*blocks))
	c := &partitions{sorted: sorted, size: max(1, (len(sorted)+pieces-1)/pieces), blocks: blocks}
	c.counts, c.tags = make([]int32, c.count()*blocks), make([]uint16, len(sorted))
	for p := range c.count() {
		counts := c.counts[p*blocks : (p+1)*blocks]
		for i := p * c.size; i < min((p+1)*c.size, len(sorted)); i++ {
			tag := sorted[i].Tag
			counts[tag]++
			c.tags[i] = uint16(tag) // there are at most maxBlocks
		}
	}
	return c
}

func (c *partitions) count() int { return (len(c.sorted) + c.size - 1) / c.size }

// totals sets totals to the number of values before each piece in the bootstrap sample
// with weights w and returns the number of values in the sample.
func (c *partitions) totals(w []uint16, totals []int64) int64 {
	var n int64
	for p := range c.count() {
		totals[p] = n
		for b, count := range c.counts[p*c.blocks : (p+1)*c.blocks] {
			n += int64(count) * int64(w[b])
		}
	}
	totals[c.count()] = n
	return n
}

// neighbors returns the i-th value, from 0, of the bootstrap sample with weights w, and the one that is further by
// next, 0 or 1.
func (c *partitions) neighbors(i, next int64, w []uint16, totals []int64) (x, y float64) {
	p, _ := slices.BinarySearch(totals, i+1)
	p-- // the last piece with at most i values before it
	upto, k := totals[p], p*c.size
	value := func(i int64) float64 {
		for ; ; k++ {
			if upto += int64(w[c.tags[k]]); upto > i {
				upto -= int64(w[c.tags[k]]) // the same value may be the next, too
				return math.Float64frombits(c.sorted[k].Key)
			}
		}
	}
	x = value(i)
	return x, value(i + next)
}

// Interval returns the 95 % confidence interval of a statistic, by the percentiles of
// its values in the bootstrap samples. With few blocks the percentiles are further out
// than 2.5 and 97.5, as Student's t is wider than the normal distribution (Hesterberg,
// American Statistician 69, 2015, "expanded percentile interval"). ok is false if there
// is only one block, or if more than 5 % of the estimates are missing (NaN).
func (r *Resampling) Interval(estimates []float64) (i Interval, ok bool) {
	sorted := slices.DeleteFunc(slices.Clone(estimates), math.IsNaN)
	if r.blocks < 2 || len(sorted) == 0 || 20*(len(estimates)-len(sorted)) > len(estimates) {
		return Interval{}, false
	}
	slices.Sort(sorted)
	at := func(p float64) float64 {
		position := float64(p * float64(len(sorted)-1))
		k := int(position)
		next := sorted[min(k+1, len(sorted)-1)]
		return sorted[k] + float64((position-float64(k))*(next-sorted[k]))
	}
	p := tailProbability(r.blocks)
	return Interval{at(p), at(1 - p), Level}, true
}

// Level is the confidence level of the intervals of a Resampling.
const Level = 0.95

// Interval is a confidence interval from Lo to Hi with a level between 0 and 1.
type Interval struct {
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	Level float64 `json:"level"`
}

// z975 is the 97.5th percentile of the normal distribution.
const z975 = 1.959963984540054

// tailProbability returns the share of bootstrap samples below a 95 % interval. A normal
// interval is too narrow for a small number of blocks, by tCorrection (Hesterberg, as above).
func tailProbability(blocks int) float64 {
	n, z := float64(blocks), math.Sqrt2*math.Erfinv(Level)
	tCorrection := math.Sqrt(n/(n-1)) * tQuantile(n-1, z) / z
	return math.Erfc(z975*tCorrection/math.Sqrt2) / 2
}

// tQuantile returns the quantile of Student's t distribution with v degrees of freedom
// at the probability where the normal distribution has z, by the Cornish-Fisher
// expansion. At 97.5 % it is accurate to three digits for v ≥ 5 and too small below.
func tQuantile(v, z float64) float64 {
	z3 := float64(z * z * z)
	z5 := float64(z3 * z * z)
	z7 := float64(z5 * z * z)
	return z + (z3+z)/(4*v) + (float64(5*z5)+float64(16*z3)+float64(3*z))/(96*v*v) +
		(float64(3*z7)+float64(19*z5)+float64(17*z3)-float64(15*z))/(384*v*v*v)
}
