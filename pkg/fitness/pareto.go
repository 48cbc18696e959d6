package fitness

import (
	"math"
	"slices"
)

// Place is where a candidate stands among others.
type Place struct {
	// Rank is its front, 1 the best: nobody of its front or a later one is better in
	// one objective and not worse in any other.
	Rank int `json:"pareto_rank"`
	// Crowding is how much room it has in its front; nil at the edges, where there
	// is no end to it.
	Crowding *float64 `json:"crowding"`
}

// Pareto ranks candidates by their objectives, of which all have the same, larger
// the better; an absent one is worse than any number. Fronts and crowding are
// those of NSGA-II (Deb et al., IEEE Transactions on Evolutionary Computation 6,
// 2002).
func Pareto(candidates [][]Value) []Place {
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
	places := make([]Place, len(x))
	for rank, left := 1, indices(len(x)); len(left) > 0; rank++ {
		front := slices.DeleteFunc(slices.Clone(left), func(i int) bool {
			return slices.ContainsFunc(left, func(k int) bool { return dominates(x[k], x[i]) })
		})
		for _, i := range front {
			places[i].Rank = rank
		}
		crowd(x, front, places)
		left = slices.DeleteFunc(left, func(i int) bool { return places[i].Rank != 0 })
	}
	return places
}

func indices(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// dominates reports whether a is nowhere worse than b, and somewhere better.
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

// crowd gives the members of a front their crowding: the distance between their
// neighbours in each objective, as a share of the front's range, added up.
func crowd(x [][]float64, front []int, places []Place) {
	sum := map[int]float64{}
	edge := map[int]bool{}
	for k := range x[front[0]] {
		order := slices.Clone(front)
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case x[a][k] < x[b][k]:
				return -1
			case x[a][k] > x[b][k]:
				return 1
			}
			return 0
		})
		last := len(order) - 1
		lo, hi := x[order[0]][k], x[order[last]][k]
		edge[order[0]], edge[order[last]] = true, true
		for i := 1; i < last; i++ {
			if gap := (x[order[i+1]][k] - x[order[i-1]][k]) / (hi - lo); finite(gap) {
				sum[order[i]] += gap
			}
		}
	}
	for _, i := range front {
		if d := sum[i]; !edge[i] {
			places[i].Crowding = &d
		}
	}
}
