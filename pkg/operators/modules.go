package operators

import (
	"math"
	"slices"
	"strings"

	"blis/pkg/model"
	"blis/pkg/portable"
)

// module adds attention blocks that the tables have as a whole, with their projections: MLA, and
// sparse attention of several kinds. It reports whether there is a table.
func (c *compiler) module(count float64, t *model.Attention) bool {
	heads := ceilDiv(t.Heads, c.machine.TensorParallel)
	decode, prefill := c.nearestModule("decode-module", t, heads), c.nearestModule("prefill-module", t, heads)
	if decode == nil || prefill == nil {
		return false
	}
	c.smalls(count, moduleKernels, c.arch.Hidden)
	c.coversDecode(decode, 1)
	decode, prefill = c.captured(decode, t), c.captured(prefill, t)
	rest, pair := split(prefill, 0)
	if t.Index.TopK > 0 || t.Compressed != nil { // a token attends to few others
		rest, pair = split(prefill, 1)
	}
	// The projections take the same for all tokens. What decode attention adds depends on the context.
	projections := shared(rest, func(tokens float64) float64 { return decode.interpolate(tokens, 0) })
	c.tokens = append(c.tokens, kernel{count, projections})
	c.decode = append(c.decode, surface{count, func(n, context float64) float64 {
		return max(0, decode.interpolate(n, context)-projections(n))
	}})
	c.prefill = append(c.prefill, chunks{count,
		func(tokens float64) float64 { return rest(tokens) - projections(tokens) }, pair})
	return true
}

// shared is what two times by tokens have in common: it grows by no more than either of them, so that what they
// have besides does not fall.
func shared(a, b func(tokens float64) float64) func(tokens float64) float64 {
	line := &grid{y: []float64{0}}
	us, lastA, lastB := 0.0, 0.0, 0.0
	for _, n := range tokenSizes {
		x := float64(n)
		nowA, nowB := a(x), b(x)
		us += max(0, min(nowA-lastA, nowB-lastB))
		line.x, line.us = append(line.x, x), append(line.us, us)
		lastA, lastB = nowA, nowB
	}
	return func(tokens float64) float64 { return line.interpolate(tokens, 0) }
}

// captured subtracts from a module that was measured without a CUDA graph what launching its kernels
// one by one adds: what it takes without context beyond reading its weights and moduleUS. In a graph it takes
// the same for up to capturedSequences.
func (c *compiler) captured(g *grid, t *model.Attention) *grid {
	weights := 0.0
	if m := t.MLA; m != nil {
		weights = float64(c.arch.Hidden) * float64(m.QRank+m.KVRank+m.RopeDim)
	}
	least := moduleUS + weights*2*1e6/(smallEfficiency*c.machine.Bandwidth)
	if slices.Min(g.us) <= least {
		return g
	}
	h := &grid{x: g.x, y: g.y, us: slices.Clone(g.us)}
	excess := 0.0
	for i, n := range h.x {
		if i == 0 || n <= capturedSequences {
			excess = *g.at(i, 0) - least
		}
		for j := range h.y {
			*h.at(i, j) -= excess
		}
	}
	return h
}

// capturedSequences is the number of sequences up to which a module in a CUDA graph takes the same: on B200 it
// takes 33 µs for one sequence and 36 for 16, where tables without graphs have 10 to 14 µs more for 16.
const capturedSequences = 16

// moduleUS is what the smallest MLA module takes in a CUDA graph besides reading its first matrices: 30
// µs on B200. That the other tables were measured without graphs is inferred: their least times are 60
// to 75 µs, also on faster GPUs. Other modules than MLA are assumed to have the same least time.
const moduleUS = 28

// nearestModule returns the table of a module for a number of heads of a GPU; nil if there is none.
func (c *compiler) nearestModule(operator string, t *model.Attention, heads int) *grid {
	format, _, _ := c.arch.Precision.Formats()
	gemm, kv := c.gemmDType(format), c.kvDType()
	var best *grid
	var of string
	nearest := math.Inf(1)
	for _, f := range c.tables.fields(operator) {
		distance, ok := c.moduleDistance(f, t)
		if !ok {
			continue
		}
		have := atoi(f[len(f)-1])
		distance += math.Abs(portable.Log(float64(have) / float64(heads)))
		if f[1] != kv {
			distance += 4
		}
		if f[2] != gemm {
			distance += 2
			if f[2] != "bfloat16" && !strings.HasPrefix(gemm, "fp8") {
				distance++
			}
		}
		if distance < nearest {
			nearest, of = distance, strings.Join(f, ", ")
			best = c.tables.series[operator+"|"+strings.Join(f, "|")]
		}
	}
	if best != nil && nearest > 0 {
		c.note("%s of %d heads, %s, cache in %s: that of %s", strings.Replace(operator, "-", " ", 1), heads, gemm, kv,
			of)
	}
	return best
}

// moduleDistance reports whether a module of the tables has attention of the kind t, and how far its
// sizes are.
func (c *compiler) moduleDistance(f []string, t *model.Attention) (float64, bool) {
	switch {
	case t.Compressed != nil:
		if len(f) != 5 || atoi(f[3]) != max(t.Compressed.Ratio, 4) {
			return 0, false
		}
		isPro := c.arch.Hidden > 4096
		return boolDistance(strings.Contains(f[0], "Pro") == isPro), true
	case len(f) != 4:
		return 0, false
	case t.MLA != nil && t.Index.TopK > 0:
		isGLM := t.MLA.NopeDim > 128
		return boolDistance(strings.HasPrefix(f[0], "Glm") == isGLM), f[0] == "DeepseekV32ForCausalLM" ||
			f[0] == "GlmMoeDsaForCausalLM"
	case t.MLA != nil:
		return boolDistance(c.arch.Hidden == 7168), f[0] == "DeepseekV3ForCausalLM"
	default:
		return 0, strings.HasPrefix(f[0], "MiniMaxM3")
	}
}

func boolDistance(same bool) float64 {
	if same {
		return 0
	}
	return 0.5
}

// linear adds layers with a state: projections, convolution and recurrence. The state of a sequence
// counts with decode sequences; a chunk counts by its tokens.
func (c *compiler) linear(count float64, l *model.Linear) {
	format, _, _ := c.arch.Precision.Formats()
	tp, hidden := c.machine.TensorParallel, c.arch.Hidden
	keys, values := ceilDiv(l.KeyHeads, tp), ceilDiv(l.ValueHeads, tp)
	width := 2*keys*l.KeyDim + 2*values*l.ValueDim + 2*values
	c.product(count, format, width, hidden)
	c.product(count, format, hidden, values*l.ValueDim)
	c.smalls(count, attentionKernels, hidden)
	operator := map[string]string{model.GatedDeltaNet: "gdn", model.KimiDelta: "kda"}[l.Kind]
	prefill, decode := c.nearestLinear(operator, "context", keys, values), c.nearestLinear(operator, "generation",
		keys, values)
	if prefill == nil || decode == nil {
		c.note("%s: no table, limited by the memory of its states", l.Kind)
		bytes := float64(l.StateBytes * l.KeyDim * values * l.ValueDim * 2)
		c.decode = append(c.decode, surface{count, func(n, _ float64) float64 { return launchUS + c.small(n*bytes) }})
		c.prefill = append(c.prefill, chunks{count, func(tokens float64) float64 {
			return 3*launchUS + c.small(tokens*float64(2*activationBytes*width))
		}, 0})
		return
	}
	c.decode = append(c.decode, surface{count, func(n, _ float64) float64 { return decode.interpolate(n, 1) }})
	tokens := &grid{x: prefill.y, y: []float64{0}, us: prefill.us[:len(prefill.y)]}
	c.prefill = append(c.prefill, chunks{count, func(n float64) float64 { return tokens.interpolate(n, 0) }, 0})
}

// nearestLinear returns the table of linear attention with these heads, or the nearest ones.
func (c *compiler) nearestLinear(operator, phase string, keys, values int) *grid {
	var best *grid
	nearest := math.Inf(1)
	for _, f := range c.tables.fields(key(operator, phase)) {
		k, v := float64(atoi(f[0])), float64(atoi(f[1]))
		keys, values := portable.Log(k/float64(keys)), portable.Log(v/float64(values))
		if d := math.Abs(values) + float64(0.1*math.Abs(keys)); d < nearest {
			nearest, best = d, c.tables.series[key(operator, phase, int(k), int(v))]
		}
	}
	if best != nil && nearest > 0 {
		c.note("%s of %d value heads: the nearest in the table", operator, values)
		best = &grid{x: best.x, y: best.y, us: slices.Clone(best.us)}
	}
	return best
}
