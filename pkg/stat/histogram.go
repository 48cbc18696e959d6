package stat

import (
	"maps"
	"slices"
	"sort"
)

// Values below denseLimit are counted in arrays of pageLength counts, each made when one of its values occurs; the
// others, which are rare, in a map.
const (
	denseLimit = 1 << 18
	pageLength = 512
)

// Histogram counts non-negative integers. It is exact: its quantiles are those of the
// full list of values. The zero Histogram is empty.
type Histogram struct {
	small  []*[pageLength]int64 // nil: none of its values occurred
	large  map[int64]int64
	n, sum int64
}

// Add counts value n times. The total must stay below 2^63.
func (h *Histogram) Add(value, n int64) {
	h.n += n
	h.sum += value * n
	if page := uint64(value) / pageLength; page < uint64(len(h.small)) && h.small[page] != nil {
		h.small[page][uint64(value)%pageLength] += n
		return
	}
	h.addRare(value, n)
}

// addRare counts a value that has no array yet.
func (h *Histogram) addRare(value, n int64) {
	if value >= denseLimit {
		if h.large == nil {
			h.large = map[int64]int64{}
		}
		h.large[value] += n
		return
	}
	page := int(value / pageLength)
	for len(h.small) <= page {
		h.small = append(h.small, nil)
	}
	h.small[page] = new([pageLength]int64)
	h.small[page][value%pageLength] = n
}

// N returns the number of values.
func (h *Histogram) N() int64 { return h.n }

// Sum returns the sum of all values.
func (h *Histogram) Sum() int64 { return h.sum }

// Sorted returns the values in ascending order.
func (h *Histogram) Sorted() Multiset {
	var s Multiset
	upto := int64(0)
	for i, page := range h.small {
		if page == nil {
			continue
		}
		for at := 0; at < pageLength; at += runLength {
			run := (*[runLength]int64)(page[at:])
			if run[0]|run[1]|run[2]|run[3]|run[4]|run[5]|run[6]|run[7] == 0 {
				continue // most values do not occur
			}
			for k, n := range run {
				if n > 0 {
					upto += n
					s = append(s, cumulativeCount{int64(i*pageLength + at + k), upto})
				}
			}
		}
	}
	for _, value := range slices.Sorted(maps.Keys(h.large)) {
		if n := h.large[value]; n > 0 {
			upto += n
			s = append(s, cumulativeCount{value, upto})
		}
	}
	return s
}

// runLength divides pageLength.
const runLength = 8

// Multiset is a multiset of integers in ascending order, each value once.
type Multiset []cumulativeCount

// cumulativeCount says that upto values are at most value.
type cumulativeCount struct{ value, upto int64 }

// Quantile is the function Quantile applied to the full list. s is not empty.
func (s Multiset) Quantile(percent, unit int64) float64 {
	lo, hi, hundredths := quantilePosition(s[len(s)-1].upto, percent)
	return interpolate(s.at(lo), s.at(hi), hundredths, unit)
}

// Max returns the largest value. s is not empty.
func (s Multiset) Max() int64 { return s[len(s)-1].value }

// at returns the i-th value, from 0.
func (s Multiset) at(i int64) int64 {
	return s[sort.Search(len(s), func(k int) bool { return s[k].upto > i })].value
}
