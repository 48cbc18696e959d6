package operators

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/registry"
)

// Machine is the part of a server that decides about kernels.
type Machine struct {
	TensorParallel, PipelineParallel, DataParallel int
	ExpertParallel                                 bool
	// Bandwidth is that of a GPU's memory in bytes/s, Link that to the other GPUs in one direction.
	Bandwidth, Link float64
	// Captured is the largest number of tokens of a CUDA graph, Graphs what is captured.
	Captured int64
	Graphs   Graphs
	// Sums over the tensor-parallel group of up to FusedBytes are one kernel with the norm after them. For
	// up to OneShotBytes, each GPU reads the data of all others at once.
	FusedBytes, OneShotBytes int64
	// Multiprocessors is their number where kernels of decode attention do not divide the work of sequences of
	// unequal context evenly; 0 means that they do.
	Multiprocessors int
	// Mixed is the fraction of its speed that decode attention reaches in a step with chunks; 0 is 1.
	Mixed float64
	// Experts is the format of the experts' kernel, as the tables call it; "" follows the weights.
	// Distribution is how tokens choose experts; "" is the default.
	Experts, Distribution string
	// EPLB balances the experts over the GPUs with RedundantExperts copies.
	EPLB             bool
	RedundantExperts int
	// TensorFloat32: products in 32 bits use tensor cores, which have fewer bits.
	TensorFloat32 bool
	// AsyncScheduling: the host prepares a step while the GPU computes the one before.
	AsyncScheduling bool
}

// Graphs is what CUDA graphs have, vLLM's cudagraph_mode (CUDAGraphMode in vllm/config/compilation.py,
// v0.33.0).
type Graphs string

// The modes. In pieces, attention is not in the graphs.
const (
	NoGraphs           Graphs = "NONE"
	PiecesOnly         Graphs = "PIECEWISE"
	WholeSteps         Graphs = "FULL"
	WholeDecodeOnly    Graphs = "FULL_DECODE_ONLY"   // steps with chunks run without graphs
	WholeDecodeAndRest Graphs = "FULL_AND_PIECEWISE" // steps with chunks in pieces
)

// AllGraphs lists the modes.
var AllGraphs = []Graphs{NoGraphs, PiecesOnly, WholeSteps, WholeDecodeOnly, WholeDecodeAndRest}

// compiler sums the kernels of a model's step.
type compiler struct {
	tables  *Tables
	arch    *model.Architecture
	machine Machine
	notes   []string
	reach   latency.Reach
	// tokens are the kernels that depend on the tokens of a group, experts those of tokens that share
	// experts.
	tokens, experts        []kernel
	decode, windowDecode   []surface
	prefill, windowPrefill []chunks
	// kvHeads is the most KV heads that attention of the whole context has on a GPU, 0 if it is in modules.
	kvHeads int
}

// kernel is the time of a kernel in µs for a number of tokens, in count layers.
type kernel struct {
	count float64
	us    func(tokens float64) float64
}

// surface is the time of decode attention by sequences and context each.
type surface struct {
	count float64
	us    func(sequences, context float64) float64
}

// chunks is the time of attention of chunks: by tokens, and µs for each pair.
type chunks struct {
	count  float64
	tokens func(tokens float64) float64
	pair   float64
}

// Compile sums the kernels of the model on the machine to the curves of the latency model.
func Compile(arch *model.Architecture, t *Tables, m Machine) (*latency.Operators, error) {
	c := &compiler{tables: t, arch: arch, machine: m, notes: slices.Clone(t.notes)}
	if err := c.checkChoices(); err != nil {
		return nil, err
	}
	if m.Bandwidth <= 0 {
		return nil, errors.New("operators: the GPU's memory bandwidth must be above 0")
	}
	for i := range arch.Layers {
		if err := c.layer(&arch.Layers[i]); err != nil {
			return nil, err
		}
	}
	sequences, err := c.head()
	if err != nil {
		return nil, err
	}
	o := &latency.Operators{
		System: t.System, Tokens: curve(c.tokens, tokenSizes), Experts: curve(c.experts, tokenSizes),
		Sequences: curve(sequences, sequenceSizes),
		Decode:    surfaceOf(c.decode), WindowDecode: surfaceOf(c.windowDecode),
		Prefill: chunksOf(c.prefill), WindowPrefill: chunksOf(c.windowPrefill),
		Reach: c.reach, Host: c.host(),
		Groups: m.DataParallel, Ranks: m.DataParallel,
	}
	if c.kvHeads > 0 { // a multiprocessor computes a sequence and a KV head
		o.Wave = round(float64(m.Multiprocessors) / float64(c.kvHeads))
	}
	if m.Mixed > 0 && m.Mixed < 1 {
		o.MixedFactor = round(1 / m.Mixed)
	}
	slices.Sort(c.notes)
	o.Notes = slices.Compact(c.notes)
	return o, nil
}

// checkChoices returns an error if the tables do not have what a setting names.
func (c *compiler) checkChoices() error {
	var formats, distributions []string
	for _, f := range c.tables.fields("moe") {
		formats, distributions = append(formats, f[0]), append(distributions, f[1])
	}
	for _, v := range []struct {
		name, value string
		have        []string
	}{{"experts", c.machine.Experts, formats}, {"expert_distribution", c.machine.Distribution, distributions}} {
		slices.Sort(v.have)
		if v.value != "" && len(v.have) > 0 && !slices.Contains(v.have, v.value) {
			return registry.Unknown(v.name, v.value, slices.Compact(v.have))
		}
	}
	return nil
}

// covers records the largest tokens of a table that is used.
func (c *compiler) covers(tokens float64) {
	if n := int64(tokens); c.reach.Tokens == 0 || n < c.reach.Tokens {
		c.reach.Tokens = n
	}
}

// coversDecode records the largest sequences and context of a table that is used, in which a sequence
// counts as share.
func (c *compiler) coversDecode(g *grid, share float64) {
	n, context := int64(g.x[len(g.x)-1]/share), int64(g.y[len(g.y)-1])
	if c.reach.Sequences == 0 || n < c.reach.Sequences {
		c.reach.Sequences = n
	}
	if c.reach.Context == 0 || context < c.reach.Context {
		c.reach.Context = context
	}
}

// note records once what no table has.
func (c *compiler) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// tokenSizes and sequenceSizes are the points of curves.
var (
	tokenSizes    = sizes(1 << 16)
	sequenceSizes = sizes(4096)
	contextSizes  = []int64{0, 15, 31, 63, 127, 255, 511, 767, 1023, 1535, 2047, 3071, 4095, 6143, 8191, 12287, 16383,
		24575,
		32767, 65535, 131071}
)

// sizes returns 1, 2, 4, 8 and then sixteenths to eighths of the power of two below, up to most.
func sizes(most int64) []int64 {
	list := []int64{1, 2, 3, 4, 6, 8, 12}
	for n := int64(16); n < most; n *= 2 {
		parts := int64(8)
		if n < 64 || n >= 4096 {
			parts = 4
		}
		for k := range parts {
			list = append(list, n+n*k/parts)
		}
	}
	return append(list, most)
}

// curve samples a sum of kernels. It does not fall.
func curve(kernels []kernel, at []int64) (c latency.Curve) {
	if len(kernels) == 0 {
		return c
	}
	longest := 0.0
	for _, n := range at {
		us := 0.0
		for _, k := range kernels {
			us += float64(k.count * k.us(float64(n)))
		}
		longest = max(longest, us)
		c.At, c.US = append(c.At, n), append(c.US, round(longest))
	}
	return c
}

// round keeps five digits: curves are printed.
func round(us float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(us, 'g', 5, 64), 64)
	if err != nil {
		panic("operators: " + err.Error()) // it is a number
	}
	return rounded
}

// surfaceOf samples a sum of surfaces. It does not fall along either axis.
func surfaceOf(list []surface) (g latency.Grid) {
	if len(list) == 0 {
		return g
	}
	for n := int64(1); n <= 2048; n *= 2 {
		g.Sequences = append(g.Sequences, n)
		if n >= 8 && n < 512 {
			g.Sequences = append(g.Sequences, n*3/2)
		}
	}
	g.Context = contextSizes
	for i, n := range g.Sequences {
		for j, context := range g.Context {
			us := 0.0
			for _, s := range list {
				us += float64(s.count * s.us(float64(n), float64(context)))
			}
			us = round(us)
			if at := i*len(g.Context) + j; j > 0 {
				us = max(us, g.US[at-1])
			}
			if at := (i-1)*len(g.Context) + j; i > 0 {
				us = max(us, g.US[at])
			}
			g.US = append(g.US, us)
		}
	}
	return g
}

func chunksOf(list []chunks) (a latency.ChunkAttention) {
	var kernels []kernel
	for _, x := range list {
		kernels = append(kernels, kernel{x.count, x.tokens})
		a.PairUS += float64(x.count * x.pair)
	}
	a.Tokens = curve(kernels, tokenSizes)
	return a
}

// small is the time of one short kernel that moves bytes, in µs.
func (c *compiler) small(bytes float64) float64 {
	return launchUS + bytes*1e6/(smallEfficiency*c.machine.Bandwidth)
}

// launchUS is the time of the shortest kernel in a CUDA graph; smallEfficiency is the fraction of the
// memory bandwidth that kernels without products reach (aiconfigurator's mem_bw_empirical_scaling_factor).
const (
	launchUS        = 2.0
	smallEfficiency = 0.8
)
