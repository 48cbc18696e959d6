package gen

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"blis/pkg/portable"
)

// popularity draws one of several things by Zipf's law: it has the running sums of their weights.
type popularity []float64

// newPopularity gives the k-th of count things a probability in proportion to 1/k^zipf.
func newPopularity(count int64, zipf float64) popularity {
	sums, sum := make(popularity, count), 0.0
	for k := range sums {
		sum += portable.Pow(float64(k+1), -zipf)
		sums[k] = sum
	}
	return sums
}

// draw returns the number of one of them, from 0 on.
func (p popularity) draw(r *rand.Rand) int {
	last := len(p) - 1
	k, _ := slices.BinarySearch(p[:last], float64(r.Float64()*p[last]))
	return k
}

// popular returns a function that draws one of count names, by Zipf's law.
func popular(at field, name string, count int64, zipf float64) func(*rand.Rand) string {
	if name == "" {
		at.fail("name", "must not be empty")
	}
	between(at, "count", count, 1, maxNames)
	between(at, "zipf", zipf, 0, maxZipf)
	if at.err != nil {
		return nil
	}
	names := newPopularity(count, zipf)
	return func(r *rand.Rand) string { return name + "-" + strconv.Itoa(names.draw(r)+1) }
}
