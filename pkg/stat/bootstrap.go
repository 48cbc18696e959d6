package stat

import (
	"math"
	"slices"
)

// Resampling is a block bootstrap: n observations in order of time are cut into
// blocks of nearly equal length, and as many blocks as there are are drawn with
// replacement, again and again. A statistic of each draw says how far it could
// have come out otherwise. What neighbours have in common, such as the queue that
// they stood in, stays together, which draws of single observations tear apart:
// their intervals are too narrow.
//
// Two series that go through the same blocks and draws are resampled in pairs:
// their difference does not have the noise that both share.
//
// Blocks do not overlap (Carlstein, Annals of Statistics 14, 1986), so that a
// draw is how often each block is in it, and sums and quantiles of it need no
// copy of the observations. BlockLength says how long they should be.
type Resampling struct {
	n, blocks int
	// weights[d][b] is how often draw d has block b.
	weights [][]uint16
}

// MostBlocks is the most blocks that a Resampling has: more cost time, and
// longer ones are only safer.
const MostBlocks = 500

// NewResampling makes draws of n observations in blocks of that length, longer if
// there would be more than MostBlocks. pick returns a random number below its
// argument, each as likely as the other.
func NewResampling(n, length, draws int, pick func(int) int) *Resampling {
	r := &Resampling{n: n, blocks: min(max(n/max(length, 1), 1), MostBlocks, max(n, 1))}
	for range draws {
		w := make([]uint16, r.blocks)
		for range w {
			w[pick(r.blocks)]++
		}
		r.weights = append(r.weights, w)
	}
	return r
}

// Blocks is how many blocks there are.
func (r *Resampling) Blocks() int { return r.blocks }

// Draws is how often blocks were drawn.
func (r *Resampling) Draws() int { return len(r.weights) }

// Block is the block that the i-th observation is in, from 0.
func (r *Resampling) Block(i int) uint32 { return uint32(int64(i) * int64(r.blocks) / int64(r.n)) }

// Sums returns the sum in each draw of what has these sums in the blocks.
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

// Quantiles returns the percentiles of each draw: result[k][d] is percents[k] of
// draw d, NaN where nothing was drawn. sorted are the samples, ascending and not
// negative, each with its bits (math.Float64bits) as the key and its block as the
// tag; there may be more or fewer than observations. percents ascend.
func (r *Resampling) Quantiles(sorted []Tagged, percents []int64) [][]float64 {
	c := newChunks(sorted, r.blocks)
	result := make([][]float64, len(percents))
	totals := make([]int64, c.count()+1)
	for _, w := range r.weights {
		n := c.totals(w, totals)
		for k, percent := range percents {
			x := math.NaN()
			if n > 0 {
				lo, hi, part := place(n, percent)
				x = betweenFloats(c.at(lo, w, totals), c.at(hi, w, totals), part)
			}
			result[k] = append(result[k], x)
		}
	}
	return result
}

// Ratios returns x/y, draw by draw, NaN where y is 0.
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

// chunks are sorted samples in pieces, with how many of each piece each block has:
// where in a draw a quantile lies is found by pieces, and then within one.
type chunks struct {
	sorted []Tagged
	size   int
	// has[p·blocks+b] samples of piece p are of block b.
	has    []int32
	blocks int
}

func newChunks(sorted []Tagged, blocks int) *chunks {
	// A piece costs as many steps as there are blocks, and then one is walked through.
	pieces := min(64, 1+len(sorted)/(4*blocks))
	c := &chunks{sorted: sorted, size: max(1, (len(sorted)+pieces-1)/pieces), blocks: blocks}
	c.has = make([]int32, c.count()*blocks)
	for i := range sorted {
		c.has[i/c.size*blocks+int(sorted[i].Tag)]++
	}
	return c
}

func (c *chunks) count() int { return (len(c.sorted) + c.size - 1) / c.size }

// totals fills in how many samples a draw has before each piece and returns how
// many it has.
func (c *chunks) totals(w []uint16, totals []int64) int64 {
	var n int64
	for p := range c.count() {
		totals[p] = n
		for b, has := range c.has[p*c.blocks : (p+1)*c.blocks] {
			n += int64(has) * int64(w[b])
		}
	}
	totals[c.count()] = n
	return n
}

// at returns the key of the i-th sample of a draw, from 0.
func (c *chunks) at(i int64, w []uint16, totals []int64) float64 {
	p, _ := slices.BinarySearch(totals, i+1)
	p-- // the last piece before which there are at most i
	upto := totals[p]
	for k := p * c.size; ; k++ {
		if upto += int64(w[c.sorted[k].Tag]); upto > i {
			return math.Float64frombits(c.sorted[k].Key)
		}
	}
}

// Interval returns the range that 95 % of what a statistic comes out as lie in, by
// the percentiles of its draws. As there are few blocks these are further out than
// 2.5 and 97.5, as Student's t is than the normal distribution (Hesterberg, American
// Statistician 69, 2015, "expanded percentile interval"). ok is false where there
// is but one block or more than one draw in twenty has no value (NaN).
func (r *Resampling) Interval(draws []float64) (lo, hi float64, ok bool) {
	sorted := slices.DeleteFunc(slices.Clone(draws), math.IsNaN)
	if r.blocks < 2 || len(sorted) == 0 || 20*(len(draws)-len(sorted)) > len(draws) {
		return 0, 0, false
	}
	slices.Sort(sorted)
	at := func(p float64) float64 {
		place := p * float64(len(sorted)-1)
		k := int(place)
		next := sorted[min(k+1, len(sorted)-1)]
		return sorted[k] + float64((place-float64(k))*(next-sorted[k]))
	}
	p := tail(r.blocks)
	return at(p), at(1 - p), true
}

// tail is the share of draws below a 95 % interval of so many blocks.
func tail(blocks int) float64 {
	return math.Erfc(z975*Widening(blocks, 0.95)/math.Sqrt2) / 2
}

// z975 is the 97.5th percentile of the normal distribution.
const z975 = 1.959963984540054

// Widening is by what factor an interval that holds a level (0.95) of the draws of
// few blocks is to be wider, so that it holds what it is of as often (Hesterberg, as
// above).
func Widening(blocks int, level float64) float64 {
	n, z := float64(blocks), math.Sqrt2*math.Erfinv(level)
	return math.Sqrt(n/(n-1)) * student(n-1, z) / z
}

// Student is how many standard deviations, estimated with so many degrees of freedom, lie
// on either side within an interval of the level.
func Student(degrees int, level float64) float64 {
	return student(float64(degrees), math.Sqrt2*math.Erfinv(level))
}

// student is the percentile of Student's distribution with v degrees of freedom at
// which the normal distribution has z, by the expansion of Cornish and Fisher; at the
// 97.5th, from v = 5 on it is right to three digits, and below too small.
func student(v, z float64) float64 {
	z3, z5, z7 := z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}
