package operators

import (
	"math"

	"blis/pkg/model"
	"blis/pkg/portable"
)

// attention adds the attention block of a group of layers: projections, attention, and the sum over
// the tensor-parallel group.
func (c *compiler) attention(l *model.Layers) error {
	t, count := &l.Attention, float64(l.Count)
	switch {
	case t.Linear != nil:
		c.linear(count, t.Linear)
	case t.Heads == 0:
		return nil
	case t.MLA != nil, t.Compressed != nil, t.Index.TopK > 0:
		if !c.module(count, t) {
			c.note("attention of %s: no table, as dense attention of the same sizes", c.arch.Type)
			c.dense(count, t)
		}
	default:
		c.dense(count, t)
	}
	return c.allReduce(count, &c.tokens)
}

// dense adds projections and attention of layers with keys and values for each head.
func (c *compiler) dense(count float64, t *model.Attention) {
	format, _, _ := c.arch.Precision.Formats()
	tp, hidden := c.machine.TensorParallel, c.arch.Hidden
	heads, kv := ceilDiv(t.Heads, tp), ceilDiv(t.KVHeads, tp)
	dim, value := t.HeadDim, t.ValueDim
	if t.MLA != nil {
		kv, dim, value = 1, t.MLA.KVRank+t.MLA.RopeDim, t.MLA.VDim
	}
	if value == 0 {
		value = dim
	}
	width := heads*dim + kv*(dim+value)
	if t.Gate {
		width += heads * value
	}
	c.fusedProduct(count, format, width, hidden)
	c.product(count, format, hidden, heads*value)
	c.smalls(count, attentionKernels, hidden)
	if t.QKNormAcross && tp > 1 {
		c.acrossNorms(count)
	}
	c.kernels(count, t, heads, kv, dim)
}

// acrossKernels are the short kernels of a norm over the heads of all GPUs besides its exchange: the
// sums of squares of queries and of keys before it, and the scaling of queries, of keys and of the sums
// after it (MiniMaxText01RMSNormTP.forward_qk in vllm/model_executor/layers/mamba/linear_attn.py, v0.19.1;
// v0.33.0 can fuse them). The compiler cannot fuse what is before and after the exchange.
const acrossKernels = 5

// acrossNorms adds the exchange of two sums for each token.
func (c *compiler) acrossNorms(count float64) {
	us, err := c.sumOver(c.machine.TensorParallel)
	if err != nil {
		return // the same error as for the hidden state
	}
	c.tokens = append(c.tokens, kernel{count, func(tokens float64) float64 {
		return us(4*tokens) + acrossKernels*launchUS
	}})
}

// kvDType is the name of the cache's format in the tables.
func (c *compiler) kvDType() string {
	if c.arch.Precision.KVBytes() == 1 {
		return "fp8"
	}
	return "bfloat16"
}

// cacheBytes is what a layer keeps of a token for kv KV heads of dim numbers, in bytes.
func (c *compiler) cacheBytes(t *model.Attention, kv, dim int) float64 {
	numbers := 2 * dim
	switch {
	case t.MLA != nil: // values are part of the keys
		numbers = dim
	case t.ValueDim > 0:
		numbers = dim + t.ValueDim
	}
	return float64(kv*numbers) * c.arch.Precision.KVBytes()
}

// kernels adds the attention kernels of heads query and kv KV heads of dim numbers.
//
// Decode attention takes at least the time of its smallest batch and of reading keys and values from memory at its
// peak bandwidth. The tables were measured by calling a kernel several times with the same keys and values
// (collector/vllm/collect_attn.py of ai-dynamo/aiconfigurator), which stay in the L2 cache if they fit: of
// measurements with 0.4 to 0.7 times the cache, 20 % on an H100 and 83 % on an L40S are faster than memory is, and of
// those with more than 1.5 times the cache none is on any of eight GPUs. In a server the weights and the keys and
// values of all other layers are read in between.
func (c *compiler) kernels(count float64, t *model.Attention, heads, kv, dim int) {
	decode, of := c.nearestAttention("decode", t.Window, heads, kv, dim)
	prefill, prefillOf := c.nearestAttention("prefill", t.Window, heads, kv, dim)
	toDecode, toPrefill := &c.decode, &c.prefill
	if t.Window > 0 {
		toDecode, toPrefill = &c.windowDecode, &c.windowPrefill
	}
	if decode == nil || prefill == nil {
		c.note("attention: no table, limited by memory")
		bytes := float64(kv * 2 * dim * 2)
		*toDecode = append(*toDecode, surface{count, func(n, context float64) float64 {
			return c.small(n * (context +
				1) * bytes)
		}})
		*toPrefill = append(*toPrefill, chunks{count, func(tokens float64) float64 { return c.small(tokens * bytes) },
			0})
		return
	}
	// As many pairs of a sequence and a KV head are as much work, and keep as much of the GPU busy.
	share, width := float64(kv)/float64(of.kv), float64(dim)/float64(of.dim)
	c.coversDecode(decode, share)
	if t.Window == 0 {
		c.kvHeads = max(c.kvHeads, kv)
	}
	bytes := c.cacheBytes(t, kv, dim)
	launch := width * decode.interpolate(0, 0)
	*toDecode = append(*toDecode, surface{count, func(n, context float64) float64 {
		read := float64(n*context*bytes) * 1e6 / c.machine.Bandwidth
		return max(width*decode.interpolate(share*n, context), launch+read)
	}})
	factor := float64(heads*dim) / float64(prefillOf.heads*prefillOf.dim)
	tokens, pair := split(prefill, float64(t.Window))
	*toPrefill = append(*toPrefill, chunks{count, func(n float64) float64 { return factor * tokens(n) }, factor * pair})
}

// attentionSizes are the query heads of a kernel, its KV heads, and their width.
type attentionSizes struct{ heads, kv, dim int }

// nearestAttention returns the table of attention of these sizes, or of the nearest ones, and its sizes.
func (c *compiler) nearestAttention(operator string, window, heads, kv, dim int) (best *grid, of attentionSizes) {
	dtype := c.kvDType()
	for _, dtype := range []string{dtype, "bfloat16", "fp8"} {
		for _, w := range []int{window, 0} {
			if g := c.tables.series[key(operator, dtype, dim, w, kv, heads)]; g != nil {
				return g, attentionSizes{heads, kv, dim}
			}
		}
	}
	nearest := math.Inf(1)
	ratio := func(a, b int) float64 { return math.Abs(portable.Log(float64(a) / float64(b))) }
	for _, f := range c.tables.fields(operator) {
		d, w, k, h := atoi(f[1]), atoi(f[2]), atoi(f[3]), atoi(f[4])
		if w != window && w != 0 {
			continue
		}
		distance := float64(4*ratio(k*d, kv*dim)) + ratio(h/k, heads/kv)
		if operator == "prefill" { // decode attention does not scale with query heads
			distance += float64(2 * ratio(h*d, heads*dim))
		}
		if f[0] != dtype {
			distance += 8
		}
		if w != window {
			distance++
		}
		if distance < nearest {
			nearest, best, of = distance, c.tables.series[key(operator, f[0], d, w, k, h)], attentionSizes{h, k, d}
		}
	}
	if best != nil {
		c.note("%s attention of %d heads, %d KV heads of %d: that of %d, %d of %d", operator, heads, kv, dim, of.heads,
			of.kv, of.dim)
	}
	return best, of
}

// split divides the time of chunks without tokens before them into one for each pair of a token and
// one it attends to, and the rest by tokens. A window of few tokens has no cost for pairs: their number
// is in proportion to the tokens.
func split(g *grid, window float64) (tokens func(tokens float64) float64, pair float64) {
	pairs := func(n float64) float64 {
		if w := window; w > 0 && n > w {
			return float64(w*(w+1)/2) + float64((n-w)*w)
		}
		return n * (n + 1) / 2
	}
	n := len(g.y)
	const longWindow = 2048
	if n > 1 && (window == 0 || window >= longWindow) {
		// The least time for a pair of long chunks is free of what goes on aside.
		pair = math.Inf(1)
		for j := 1; j < n; j++ {
			if g.y[j] >= longChunk {
				pair = min(pair, (*g.at(0, j)-*g.at(0, j-1))/(pairs(g.y[j])-pairs(g.y[j-1])))
			}
		}
		if math.IsInf(pair, 1) {
			pair = (*g.at(0, n-1) - *g.at(0, n-2)) / (pairs(g.y[n-1]) - pairs(g.y[n-2]))
		}
		pair = max(0, pair)
	}
	rest := make([]float64, n)
	for j := range rest {
		rest[j] = max(0, *g.at(0, j)-float64(pair*pairs(g.y[j])))
		if j > 0 {
			rest[j] = max(rest[j], rest[j-1])
		}
	}
	line := &grid{x: g.y, y: []float64{0}, us: rest}
	return func(n float64) float64 { return line.interpolate(n, 0) }, pair
}

// longChunk is the length from which on the pairs of a chunk take most of its time.
const longChunk = 8192
