package trace

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
)

// empirical is a measured distribution of integers.
type empirical struct {
	values []int32
	// cumulative is the running sum of the weights, which need not end in 1.
	cumulative []float64
}

// parseEmpirical reads {value: weight, …}, a dictionary printed by Python.
func parseEmpirical(text string) (e empirical, err error) {
	inside, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	if ok {
		inside, ok = strings.CutSuffix(inside, "}")
	}
	if !ok {
		return e, fmt.Errorf("must be {value: weight, …}, is %.40q", text)
	}
	if inside = strings.TrimSpace(inside); inside == "" {
		return e, nil
	}
	sum := 0.0
	for entry := range strings.SplitSeq(inside, ",") {
		value, weight, _ := strings.Cut(entry, ":")
		v, bad := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
		if bad != nil || v < 0 {
			return e, fmt.Errorf("a value must be an integer of at least 0, is %.40q", strings.TrimSpace(value))
		}
		w, bad := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		if bad != nil || !(w >= 0 && w <= 1e9) {
			return e, fmt.Errorf("the weight of %d must be a number of at least 0, is %.40q", v,
				strings.TrimSpace(weight))
		}
		sum += w
		e.values, e.cumulative = append(e.values, int32(v)), append(e.cumulative, sum)
	}
	if sum == 0 {
		return e, fmt.Errorf("the weights add up to 0")
	}
	return e, nil
}

// draw draws a value; there must be one.
func (e *empirical) draw(r *rand.Rand) int64 {
	at := r.Float64() * e.cumulative[len(e.cumulative)-1]
	// Rounding may make at equal to the last sum.
	i := min(sort.Search(len(e.cumulative), func(i int) bool { return e.cumulative[i] > at }), len(e.values)-1)
	return int64(e.values[i])
}
