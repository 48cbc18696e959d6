package stat

import "slices"

// Ordered finds percentiles of n values of which the smallest come in ascending order, one at a time. It keeps
// only the values that the percentiles need.
type Ordered struct {
	n, seen int64
	// ranks are those of the needed values, ascending; values are those seen so far.
	ranks  []int64
	values []uint64
}

// NewOrdered returns an Ordered of n values for these percentiles. n is above 0.
func NewOrdered(n int64, percents ...int64) *Ordered {
	o := &Ordered{n: n}
	for _, p := range percents {
		lo, hi, _ := quantilePosition(n, p)
		o.ranks = append(o.ranks, lo, hi)
	}
	slices.Sort(o.ranks)
	o.ranks = slices.Compact(o.ranks)
	o.values = make([]uint64, 0, len(o.ranks))
	return o
}

// Add adds the next value.
func (o *Ordered) Add(value uint64) {
	if i := len(o.values); i < len(o.ranks) && o.ranks[i] == o.seen {
		o.values = append(o.values, value)
	}
	o.seen++
}

// Seen returns the number of values so far.
func (o *Ordered) Seen() int64 { return o.seen }

// neighbors returns the values next to a percentile and its position between them; ok is false if they were
// not added.
func (o *Ordered) neighbors(percent int64) (a, b uint64, hundredths int64, ok bool) {
	lo, hi, hundredths := quantilePosition(o.n, percent)
	i, _ := slices.BinarySearch(o.ranks, lo)
	j, _ := slices.BinarySearch(o.ranks, hi)
	if j >= len(o.values) {
		return 0, 0, 0, false
	}
	return o.values[i], o.values[j], hundredths, true
}

// Quantile is the function Quantile of all values.
func (o *Ordered) Quantile(percent, unit int64) float64 {
	a, b, hundredths, _ := o.neighbors(percent)
	return interpolate(a, b, hundredths, unit)
}

// QuantileAmong returns a percentile of the values that value makes of those added. ok is false if it depends
// on others.
func (o *Ordered) QuantileAmong(percent int64, value func(uint64) float64) (x float64, ok bool) {
	a, b, hundredths, ok := o.neighbors(percent)
	if !ok {
		return 0, false
	}
	return interpolateFloats(value(a), value(b), hundredths), true
}
