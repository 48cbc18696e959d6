package operators

import (
	"slices"
	"strconv"
	"strings"

	"blis/pkg/portable"
)

// sameLaw corrects a size at which the tables' loads change. Tokens of experts are drawn in proportion to x
// of density x^-a: from 1 to 0.8 times the tokens where tokens choose more experts than there are, and else
// from 0.01 to 2, which leaves more experts without a token (_generate_power_law_distribution in
// collector/helper.py of ai-dynamo/aiconfigurator, 2025-11 to 2026-08). So kernels that read the weights of
// the chosen experts jump by a third between the size with as many choices as experts and the next one, on all
// GPUs. That size takes the time of the next one here, in proportion to the chosen experts by the first law.
func (x experts) sameLaw(g *grid, distribution string) *grid {
	exponent, isPower := strings.CutPrefix(distribution, "power_law_")
	a, err := strconv.ParseFloat(exponent, 64)
	if !isPower || err != nil || a <= 1 || a >= 2 {
		return g
	}
	i, found := slices.BinarySearch(g.x, float64(x.experts)/float64(x.topK))
	if !found || i+1 == len(g.x) {
		return g
	}
	us := g.us[i+1] * x.chosen(g.x[i], a) / x.chosen(g.x[i+1], a)
	corrected := &grid{x: g.x, y: g.y, us: slices.Clone(g.us)}
	corrected.us[i] = max(us, g.us[i])
	return corrected
}

// chosen is the share of experts with at least half a token, where x is from 1 to 0.8 times the tokens.
func (x experts) chosen(tokens, a float64) float64 {
	most := 0.8 * tokens
	tail := portable.Pow(most, 1-a)
	mean := (a - 1) / (2 - a) * (portable.Pow(most, 2-a) - 1) / (1 - tail)
	half := mean * float64(x.experts) / (2 * tokens * float64(x.topK))
	return (portable.Pow(max(1, half), 1-a) - tail) / (1 - tail)
}
