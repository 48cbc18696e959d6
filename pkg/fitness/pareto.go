package fitness

import (
	"math"
	"slices"
)

// Ranking is the rank of a candidate among others.
type Ranking struct {
	// Rank is its Pareto front, 1 is the best: no candidate of its front or a later one is better in
	// one objective and not worse in any other.
	Rank int `json:"pareto_rank"`
	// Crowding is its crowding distance within the front; nil at the edges, where it is infinite.
	Crowding *float64 `json:"crowding"`
}

// Pareto ranks candidates by their objectives, which are the same for all; higher is better, and a
// missing one is worse than any number. Fronts and crowding are those of NSGA-II (Deb et al., IEEE
// Transactions on Evolutionary Computation 6, 2002).
func Pareto(candidates [][]Value) []Ranking {
	x := make([][]float64, len(candidates))
	for i, c := range candidates {
		for _, v := range c {
			if v.Value == nil {
				x[i] = append(x[i], math.Inf(-1))
			} else {
				x[i] = append(x[i], *v.Value)
			}
		}
	}
	places := make([]Ranking, len(x))
	var left []int
	for i := range x {
		left = append(left, i)
	}
	for rank := 1; len(left) > 0; rank++ {
		front := slices.DeleteFunc(slices.Clone(left), func(i int) bool {
			return slices.ContainsFunc(left, func(k int) bool { return dominates(x[k], x[i]) })
		})
		for _, i := range front {
			places[i].Rank = rank
		}
		setCrowding(x, front, places)
		left = slices.DeleteFunc(left, func(i int) bool { return places[i].Rank != 0 })
	}
	return places
}

// dominates reports whether a is better than b in some objective and worse in none.
func dominates(a, b []float64) bool {
	better := false
	for i := range a {
		if a[i] < b[i] {
			return false
		}
		better = better || a[i] > b[i]
	}
	return better
}

// setCrowding sets the crowding of a front's members: the sum over the objectives of the distance
// between their neighbors, as a share of the front's range. Members with equal values have the same
// neighbors, so that their order does not matter; an objective in which all are equal does not count.
func setCrowding(x [][]float64, front []int, places []Ranking) {
	sum := map[int]float64{}
	edge := map[int]bool{}
	for k := range x[front[0]] {
		var values []float64
		for _, i := range front {
			values = append(values, x[i][k])
		}
		slices.Sort(values)
		values = slices.Compact(values)
		last := len(values) - 1
		if last == 0 && len(front) > 1 {
			continue
		}
		for _, i := range front {
			at, _ := slices.BinarySearch(values, x[i][k])
			if at == 0 || at == last {
				edge[i] = true
			} else if gap := (values[at+1] - values[at-1]) / (values[last] - values[0]); finite(gap) {
				sum[i] += gap
			}
		}
	}
	for _, i := range front {
		if d := sum[i]; !edge[i] {
			places[i].Crowding = &d
		}
	}
}
