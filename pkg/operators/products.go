package operators

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"blis/pkg/model"
	"blis/pkg/portable"
)

// gemmDType is the name of a format in the tables of products.
func (c *compiler) gemmDType(format string) string {
	switch format {
	case "":
		return "bfloat16"
	case "fp8":
		if c.arch.Precision.BlockScales {
			return "fp8_block"
		}
	case "mxfp8":
		return "fp8_block"
	case "int8":
		return "fp8"
	case "mxfp4":
		return "nvfp4"
	}
	return format
}

// weightBytes is the size of a weight in the formats of tables.
var weightBytes = map[string]float64{"bfloat16": 2, "fp8": 1, "fp8_block": 1, "nvfp4": 0.5625, "int4": 0.52,
	"awq":  0.52,
	"gptq": 0.52}

// gemm returns the time of a product of tokens with a matrix of n by k.
func (c *compiler) gemm(format string, n, k int) func(tokens float64) float64 {
	dtype := c.gemmDType(format)
	us := c.tabled(dtype, n, k)
	switch {
	case us == nil:
		return c.weightOnly(dtype, n, k)
	case dtype != "fp8_block":
		return us
	}
	// The tables of products with block scales were measured with the host launching each kernel, which
	// takes longer than small products. In CUDA graphs they take little more than plain ones in 8 bits,
	// and the quantization of their inputs.
	if plain := c.tabled("fp8", n, k); plain != nil {
		return func(tokens float64) float64 { return min(us(tokens), float64(1.05*plain(tokens))+2) }
	}
	return us
}

// weightOnly is a product whose kernel is in no table: one in 16 bits that reads fewer bytes of weights.
func (c *compiler) weightOnly(dtype string, n, k int) func(tokens float64) float64 {
	us := c.tabled("bfloat16", n, k)
	if us == nil {
		us = func(tokens float64) float64 {
			return c.small(float64(2*n*k) + float64(tokens*float64(activationBytes*(n+k))))
		}
		c.note("products in bfloat16: no table, limited by memory")
	}
	c.note("products in %s: those in bfloat16 with fewer bytes of weights", dtype)
	read := us(1)
	saved := float64(read * (1 - float64(weightBytes[dtype]/2)))
	return func(tokens float64) float64 { return max(read-saved, us(tokens)-saved) }
}

// tabled interpolates between the matrices of the table, whose grid of n and k is complete; nil if
// there is none of this format.
func (c *compiler) tabled(dtype string, n, k int) func(tokens float64) float64 {
	t := c.tables
	axes := t.gemmAxes(dtype)
	if len(axes[0]) == 0 {
		return nil
	}
	type corner struct {
		weight float64
		grid   *grid
	}
	var corners []corner
	total := 0.0
	i, wi := bracket(axes[0], float64(n))
	j, wj := bracket(axes[1], float64(k))
	for _, at := range []struct {
		i, j   int
		weight float64
	}{{i, j, (1 - wi) * (1 - wj)}, {i + 1, j, wi * (1 - wj)}, {i, j + 1, (1 - wi) * wj}, {i + 1, j + 1, wi * wj}} {
		if at.weight == 0 {
			continue
		}
		if g := t.series[key("gemm", dtype, int(axes[0][at.i]), int(axes[1][at.j]))]; g != nil {
			corners = append(corners, corner{at.weight, g})
			c.covers(g.x[len(g.x)-1])
			total += at.weight
		}
	}
	if total == 0 {
		return nil
	}
	factor := beyond(axes[0], float64(n)) * beyond(axes[1], float64(k)) / total
	if over := beyond(axes[1], float64(k)); over > 1 { // more columns, as of a head, are more of the same tiles
		c.note("products in %s of %d x %d: beyond the table by %.2g", dtype, n, k, over)
	}
	return func(tokens float64) float64 {
		us := 0.0
		for _, x := range corners {
			us += float64(x.weight * x.grid.interpolate(tokens, 0))
		}
		return us * factor
	}
}

// gemmAxes returns the n and k of the table of a format.
func (t *Tables) gemmAxes(dtype string) [2][]float64 {
	if axes, ok := t.axes[dtype]; ok {
		return axes
	}
	seen := [2]map[float64]bool{{}, {}}
	for _, f := range t.fields(key("gemm", dtype)) {
		for i := range seen {
			seen[i][float64(atoi(f[i]))] = true
		}
	}
	axes := [2][]float64{slices.Sorted(maps.Keys(seen[0])), slices.Sorted(maps.Keys(seen[1]))}
	t.axes[dtype] = axes
	return axes
}

// How tokens choose experts unless a setting says otherwise: unevenly, except for models with few experts.
// Those of Mixtral have nearly equal shares (Jiang and others, "Mixtral of Experts", arXiv 2401.04088, §5).
const (
	defaultDistribution = "power_law_1.2"
	evenDistribution    = "balanced"
	fewExperts          = 8
)

// moeDTypes are the names of a format in the tables of experts, the preferred one first.
func (c *compiler) moeDTypes(format string) []string {
	if c.machine.Experts != "" {
		return []string{c.machine.Experts}
	}
	switch format {
	case "":
		return []string{"bfloat16"}
	case "fp8", "mxfp8", "int8":
		if c.arch.Precision.BlockScales || format == "mxfp8" {
			return []string{"fp8_block", "fp8"}
		}
		return []string{"fp8", "fp8_block"}
	case "nvfp4":
		return []string{"nvfp4", "int4_wo"}
	case "mxfp4":
		return []string{"w4a16_mxfp4", "w4a8_mxfp4_mxfp8", "nvfp4", "int4_wo"}
	}
	return []string{"int4_wo"}
}

// experts identifies a kernel of experts.
type experts struct{ hidden, inner, topK, experts, tp, ep int }

// routed adds the products of routed experts in count layers.
func (c *compiler) routed(count float64, m *model.MLP) error {
	_, _, format := c.arch.Precision.Formats()
	want := experts{hidden: c.arch.Hidden, inner: m.ExpertIntermediate, topK: m.ExpertsPerToken, experts: m.Experts,
		tp: c.machine.TensorParallel * c.machine.DataParallel, ep: 1}
	if m.Latent > 0 {
		want.hidden = m.Latent
	}
	if c.machine.ExpertParallel {
		want.tp, want.ep = 1, want.tp
	}
	for _, dtype := range c.moeDTypes(format) {
		if us := c.tabledExperts(dtype, want); us != nil {
			c.experts = append(c.experts, kernel{count, c.balanced(us, want)})
			return nil
		}
	}
	c.note("experts: no table, as products of all experts' matrices")
	one := c.gemm(format, ceilDiv(3*want.inner, want.tp), want.hidden)
	share := float64(want.experts) / float64(want.ep)
	hit := 1 - float64(want.topK)/float64(want.experts)
	c.experts = append(c.experts, kernel{count, c.balanced(func(tokens float64) float64 {
		active := share * (1 - portable.Pow(hit, tokens))
		return active * max(1, one(tokens*float64(want.topK)/float64(want.experts))-launchUS)
	}, want)})
	return nil
}

// DistributionOf is how tokens choose experts by a setting, which may be "".
func DistributionOf(setting string, experts int) string {
	if setting == "" && experts <= fewExperts {
		return evenDistribution
	}
	return cmp.Or(setting, defaultDistribution)
}

// balanced returns the time of the busiest GPU with the load balancer of experts, where us is that without. The tables
// have the time of the GPU with most tokens (max_ep_idx in collector/helper.py of ai-dynamo/aiconfigurator), which by
// their distribution is Linear times the mean. With the balancer it has Balanced times the mean, as without it of fewer
// tokens.
func (c *compiler) balanced(us func(tokens float64) float64, want experts) func(tokens float64) float64 {
	if !c.machine.EPLB {
		return us
	}
	loads := LoadsOf(DistributionOf(c.machine.Distribution, want.experts), want.experts)
	factor := loads.Balanced(want.ep, c.machine.RedundantExperts) / loads.Linear(want.ep)
	return func(tokens float64) float64 { return us(tokens * factor) }
}

// tabledExperts returns the time of a kernel of experts, or of the nearest one in the table, scaled;
// nil if there is none of this format.
func (c *compiler) tabledExperts(dtype string, want experts) func(tokens float64) float64 {
	first := DistributionOf(c.machine.Distribution, want.experts)
	distributions := []string{first, defaultDistribution, "power_law_1.01", evenDistribution}
	for i, distribution := range distributions {
		if g := c.tables.series[want.key(dtype, distribution)]; g != nil {
			if i > 1 || i > 0 && first != defaultDistribution {
				c.note("experts in %s: loaded as %s", dtype, distribution)
			}
			c.covers(g.x[len(g.x)-1])
			g = want.sameLaw(g, distribution)
			return func(tokens float64) float64 { return g.interpolate(tokens, 0) }
		}
	}
	var best experts
	var found *grid
	nearest := math.Inf(1)
	for _, distribution := range distributions {
		for _, f := range c.tables.fields(key("moe", dtype, distribution)) {
			have := experts{atoi(f[0]), atoi(f[1]), atoi(f[2]), atoi(f[3]), atoi(f[4]), atoi(f[5])}
			if d := have.distance(want); d < nearest {
				nearest, best, found = d, have, c.tables.series[have.key(dtype, distribution)]
			}
		}
		if found != nil {
			found = best.sameLaw(found, distribution)
			break
		}
	}
	if found == nil {
		return nil
	}
	// The same load on each expert, with matrices of another size, and as many of them.
	load := float64(want.topK) / float64(want.experts) * float64(best.experts) / float64(best.topK)
	factor := want.weights() / best.weights()
	c.covers(found.x[len(found.x)-1] / load)
	c.note("experts in %s of %v: those of %v, times %.2g", dtype, want, best, factor)
	return func(tokens float64) float64 {
		us := found.interpolate(tokens*load, 0)
		return min(us, launchUS) + float64(factor*max(0, us-launchUS))
	}
}

func (x experts) key(dtype, distribution string) string {
	return key("moe", dtype, distribution, x.hidden, x.inner, x.topK, x.experts, x.tp, x.ep)
}

// weights is the size of the experts of a GPU.
func (x experts) weights() float64 {
	return float64(x.hidden) * float64(x.inner) / float64(x.tp) * float64(x.experts) / float64(x.ep)
}

// distance is how far a kernel is from the wanted one.
func (x experts) distance(want experts) float64 {
	ratio := func(a, b float64) float64 { return math.Abs(portable.Log(a / b)) }
	return ratio(x.weights(), want.weights()) + ratio(float64(x.hidden), float64(want.hidden)) +
		ratio(float64(x.topK)/float64(x.experts), float64(want.topK)/float64(want.experts)) +
		ratio(float64(x.inner)/float64(x.tp), float64(want.inner)/float64(want.tp)) + ratio(float64(x.ep),
		float64(want.ep))
}

// String names a kernel in notes.
func (x experts) String() string {
	n := strconv.Itoa
	return n(x.experts) + " x " + n(x.hidden) + " x " + n(x.inner) + ", top " + n(x.topK) + ", TP " + n(x.tp) +
		", EP " + n(x.ep)
}
