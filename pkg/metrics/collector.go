package metrics

import (
	"math"

	"blis/pkg/stat"
)

// collector receives values in ascending order of their keys. It keeps what a distribution needs of them: sums, and the
// values that percentiles depend on.
type collector struct {
	// of is the number of values, known that of those that exist; the others are greater.
	of, known int64
	// indices of the values that percentiles depend on, ascending, of which the first found are in keys. next is the
	// one that comes next.
	indices    []int64
	keys       []uint64
	seen, next int64
	sum        uint64
	toMS       func(key uint64) float64 // nil if ms is not needed
	ms         float64                  // sum of toMS in ascending order
}

// summarizedPercentiles are those of a distribution; 100 is the maximum.
var summarizedPercentiles = []int64{50, 90, 95, 99, 100}

// newCollector returns a collector of n values, of which the smallest known exist.
func newCollector(n, known int64) *collector {
	c := &collector{of: n, known: known}
	for _, percent := range summarizedPercentiles {
		lo, hi := stat.QuantileIndices(n, percent)
		for _, i := range []int64{lo, hi} {
			if last := len(c.indices) - 1; last < 0 || c.indices[last] < i {
				c.indices = append(c.indices, i)
			}
		}
	}
	c.next = c.indices[0]
	return c
}

// add adds the next value.
func (c *collector) add(key uint64) {
	if c.seen == c.next {
		c.keys = append(c.keys, key)
		c.next = math.MaxInt64
		if len(c.keys) < len(c.indices) {
			c.next = c.indices[len(c.keys)]
		}
	}
	c.seen++
	c.sum += key
	if c.toMS != nil {
		c.ms += c.toMS(key)
	}
}

// at returns the value with an index that a percentile depends on.
func (c *collector) at(i int64) uint64 {
	for k, index := range c.indices[:len(c.keys)] {
		if index == i {
			return c.keys[k]
		}
	}
	return 0 // after an error of a temporary file
}

// microsDistribution returns the distribution of times in µs.
func microsDistribution(c *collector) *Distribution {
	return newDistribution(c.of, float64(c.sum)/float64(1000*c.of), func(percent int64) float64 {
		return stat.QuantileAt(c.of, percent, 1000, c.at)
	})
}

// millisDistribution returns the distribution of times in ms.
func millisDistribution(c *collector) *Distribution {
	return newDistribution(c.of, c.ms/float64(c.of), func(percent int64) float64 { return *c.quantile(percent) })
}

// quantile returns a percentile in ms, nil if it depends on a value that does not exist.
func (c *collector) quantile(percent int64) *float64 {
	x, ok := stat.QuantileAmong(c.of, percent, c.known, func(i int64) float64 { return c.toMS(c.at(i)) })
	if !ok {
		return nil
	}
	return &x
}

// newDistribution has the quantiles q, by percent.
func newDistribution(n int64, mean float64, q func(percent int64) float64) *Distribution {
	return &Distribution{Count: n, Mean: mean, P50: q(50), P90: q(90), P95: q(95), P99: q(99), Max: q(100)}
}

// histogramDistribution returns the distribution of counted integers in multiples of unit, nil without any.
func histogramDistribution(h *stat.Histogram, unit int64) *Distribution {
	if h.N() == 0 {
		return nil
	}
	sorted := h.Sorted()
	return newDistribution(h.N(), float64(h.Sum())/float64(unit*h.N()), func(percent int64) float64 {
		return sorted.Quantile(percent, unit)
	})
}
