package operators

import (
	"slices"
	"strconv"
	"strings"

	"blis/pkg/portable"
)

// ExpertLoads are the shares that experts have of all tokens.
type ExpertLoads []float64

// loadTokens is the number of tokens whose loads ExpertLoads are.
const loadTokens = 1024

// LoadsOf returns the loads of experts by a distribution of the tables. Those of power_law_A are in proportion to the
// quantiles of the density x^-A from 1 to 0.8 times the tokens, of which the tables draw them (see sameLaw); all others
// are equal.
func LoadsOf(distribution string, experts int) ExpertLoads {
	loads := make(ExpertLoads, experts)
	exponent, isPower := strings.CutPrefix(distribution, "power_law_")
	a, err := strconv.ParseFloat(exponent, 64)
	tail, sum := portable.Pow(0.8*loadTokens, 1-a), 0.0
	for i := range loads {
		loads[i] = 1
		if isPower && err == nil && a > 1 {
			u := (float64(i) + 0.5) / float64(experts)
			loads[i] = portable.Pow(1-float64(u*(1-tail)), 1/(1-a))
		}
		sum += loads[i]
	}
	for i := range loads {
		loads[i] /= sum
	}
	return loads
}

// placements is the number of orders of experts over which Linear averages.
const placements = 64

// Linear returns the load of the busiest of some GPUs, divided by the mean, if each has as many experts that follow
// each other (expert_placement_strategy linear in vllm/config/parallel.py, v0.33.0). Experts are in random order: it is
// the mean over orders.
func (l ExpertLoads) Linear(gpus int) float64 {
	order, sum, state := slices.Clone(l), 0.0, uint64(1)
	for range placements {
		for i := len(order) - 1; i > 0; i-- {
			state = state*6364136223846793005 + 1442695040888963407
			k := int(state>>33) % (i + 1)
			order[i], order[k] = order[k], order[i]
		}
		sum += busiest(order, gpus)
	}
	return sum / placements
}

// busiest is the load of the GPU with most, divided by the mean.
func busiest(order []float64, gpus int) float64 {
	most, total := 0.0, 0.0
	for g := range gpus {
		load := 0.0
		for _, x := range order[g*len(order)/gpus : (g+1)*len(order)/gpus] {
			load += x
		}
		most, total = max(most, load), total+load
	}
	return most * float64(gpus) / total
}

// Balanced returns the same with the expert parallel load balancer, which knows the loads: each redundant expert is
// another copy of the one whose copies have the highest load, and each copy, the one with the highest load first, goes
// to the GPU with the lowest load among those with room (DefaultEplbPolicy in vllm/distributed/eplb/policy/default.py,
// v0.33.0, after github.com/deepseek-ai/EPLB; all GPUs are one node).
func (l ExpertLoads) Balanced(gpus, redundant int) float64 {
	copies := make([]int, len(l))
	for i := range copies {
		copies[i] = 1
	}
	for range redundant {
		most := 0
		for i := range l {
			if l[i]/float64(copies[i]) > l[most]/float64(copies[most]) {
				most = i
			}
		}
		copies[most]++
	}
	var all []float64
	for i, n := range copies {
		for range n {
			all = append(all, l[i]/float64(n))
		}
	}
	slices.Sort(all)
	slices.Reverse(all)
	loads, counts := make([]float64, gpus), make([]int, gpus)
	for _, x := range all {
		at := -1
		for g := range loads {
			if counts[g] < len(all)/gpus && (at < 0 || loads[g] < loads[at]) {
				at = g
			}
		}
		loads[at], counts[at] = loads[at]+x, counts[at]+1
	}
	return busiest(loads, gpus)
}
