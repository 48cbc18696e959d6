package operators

import (
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/portable"
)

// cleanProducts cleans the raw grids of matrix products. Kernels for some sizes are slower than those
// for larger ones in all matrices, and servers use them: this is kept, where it can be without times
// that fall. Single times that differ from the other matrices of the same size are noise.
func (t *Tables) cleanProducts() {
	byFormat := map[string][]*grid{}
	var formats []string
	for _, f := range t.fields("gemm") {
		if byFormat[f[0]] == nil {
			formats = append(formats, f[0])
		}
		byFormat[f[0]] = append(byFormat[f[0]], t.series["gemm|"+strings.Join(f, "|")])
	}
	for _, format := range formats {
		grids := byFormat[format]
		ratios := map[float64][]float64{}
		for _, g := range grids {
			raw := slices.Clone(g.us)
			g.clean()
			if slices.Max(raw) < largeProductUS || math.IsNaN(slices.Max(raw)) {
				continue
			}
			for i, m := range g.x {
				ratios[m] = append(ratios[m], raw[i]/g.us[i])
			}
		}
		factors := slowdowns(ratios)
		for _, g := range grids {
			for i, m := range g.x {
				g.us[i] *= max(1, factors[m])
			}
			rising(g.us)
		}
	}
}

// slowdowns returns for each size how much slower its kernels are than those of larger sizes, beyond
// what noise makes of the shortest of several times.
func slowdowns(ratios map[float64][]float64) map[float64]float64 {
	factors := map[float64]float64{}
	var all []float64
	for _, m := range slices.Sorted(maps.Keys(ratios)) {
		slices.Sort(ratios[m])
		factors[m] = ratios[m][len(ratios[m])/2]
		all = append(all, factors[m])
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	for m := range factors {
		factors[m] /= all[len(all)/2]
	}
	return factors
}

// largeProductUS is the time of the largest size from which on a matrix shows what its kernels do.
const largeProductUS = 200

// rising replaces times that fall by the nearest ones that do not, in the sum of squared ratios: the
// geometric mean of neighbors that are out of order (Ayer and others, "An Empirical Distribution Function
// for Sampling with Incomplete Information", Ann. Math. Statist. 26(4), 1955).
func rising(times []float64) {
	type pool struct {
		log float64 // mean
		n   int
	}
	var pools []pool
	for _, us := range times {
		pools = append(pools, pool{portable.Log(us), 1})
		for k := len(pools) - 1; k > 0 && pools[k].log < pools[k-1].log; k-- {
			a, b := pools[k-1], pools[k]
			pools[k-1] = pool{(float64(a.log*float64(a.n)) + float64(b.log*float64(b.n))) / float64(a.n+b.n), a.n + b.n}
			pools = pools[:k]
		}
	}
	i := 0
	for _, p := range pools {
		for range p.n {
			times[i] = portable.Exp(p.log)
			i++
		}
	}
}
