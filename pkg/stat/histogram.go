package stat

import (
	"maps"
	"slices"
	"sort"
)

// Values below dense are counted in an array, which grows to what is met; those
// beyond it, which are rare, in a map.
const dense = 1 << 18

// Histogram counts integers that are not negative, each with a weight. It is
// exact: its quantiles are those of all values written out. The zero Histogram
// is empty.
type Histogram struct {
	small  []int64
	large  map[int64]int64
	n, sum int64
}

// Add counts value n times. The sum of all must stay below 2^63.
func (h *Histogram) Add(value, n int64) {
	if value < int64(len(h.small)) {
		h.small[value] += n
	} else {
		h.grow(value, n)
	}
	h.n += n
	h.sum += value * n
}

func (h *Histogram) grow(value, n int64) {
	if value >= dense {
		if h.large == nil {
			h.large = map[int64]int64{}
		}
		h.large[value] += n
		return
	}
	size := max(1024, len(h.small))
	for int64(size) <= value {
		size *= 2
	}
	h.small = append(h.small, make([]int64, size-len(h.small))...)
	h.small[value] += n
}

// N is how many values were counted.
func (h *Histogram) N() int64 { return h.n }

// Sum is the sum of all values.
func (h *Histogram) Sum() int64 { return h.sum }

// Sorted returns what was counted, in ascending order.
func (h *Histogram) Sorted() Sorted {
	var s Sorted
	upto := int64(0)
	add := func(value, n int64) {
		if n > 0 {
			upto += n
			s = append(s, step{value, upto})
		}
	}
	for value, n := range h.small {
		add(int64(value), n)
	}
	for _, value := range slices.Sorted(maps.Keys(h.large)) {
		add(value, h.large[value])
	}
	return s
}

// Sorted is a multiset of integers in ascending order, each value once.
type Sorted []step

// step says that values up to value were counted upto times.
type step struct{ value, upto int64 }

// Quantile is Quantile of all the values written out. s is not empty.
func (s Sorted) Quantile(percent, unit int64) float64 {
	lo, hi, part := place(s[len(s)-1].upto, percent)
	return between(s.at(lo), s.at(hi), part, unit)
}

// Max returns the largest value. s is not empty.
func (s Sorted) Max() int64 { return s[len(s)-1].value }

// at returns the i-th value, from 0.
func (s Sorted) at(i int64) int64 {
	return s[sort.Search(len(s), func(k int) bool { return s[k].upto > i })].value
}
