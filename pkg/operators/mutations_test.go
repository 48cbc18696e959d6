package operators

import (
	"testing"

	"blis/pkg/internal/mutation"
)

var broken = []mutation.Mutation{
	{Rule: "before the first size a kernel takes its time", File: "operators/tables.go",
		Old: "\t\treturn 0, 0\n\tcase x >= axis[n-1]:", New: "\t\treturn 1, 0\n\tcase x >= axis[n-1]:"},
	{Rule: "beyond the last size time is in proportion", File: "operators/tables.go",
		Old: "return us * beyond(g.x, x) * beyond(g.y, y)", New: "return us"},
	{Rule: "from large to small sizes the shortest time counts", File: "operators/tables.go",
		Old: "*c = min(*c, *g.at(i+1, j))", New: "*c = max(*c, *g.at(i+1, j))"},
	{Rule: "slow kernels that servers use are kept", File: "operators/clean.go",
		Old: "g.us[i] *= max(1, factors[m])", New: "g.us[i] *= max(1, min(1, factors[m]))"},
	{Rule: "times that fall become their geometric mean", File: "operators/clean.go",
		Old: "rising(g.us)", New: "rising(nil)"},
	{Rule: "a product is between the four matrices around it", File: "operators/products.go",
		Old: "{i + 1, j, wi * (1 - wj)}, {i, j + 1, (1 - wi) * wj}",
		New: "{i + 1, j, (1 - wi) * wj}, {i, j + 1, wi * (1 - wj)}"},
	{Rule: "few experts have equal shares of the tokens", File: "operators/products.go",
		Old: "want.experts <= fewExperts", New: "want.experts < 0"},
	{Rule: "as many choices as experts are loaded by the law of more choices", File: "operators/products.go",
		Old: "\t\t\tg = want.sameLaw(g, distribution)\n", New: ""},
	{Rule: "chosen experts are those with half a token", File: "operators/loads.go",
		Old: "/ (2 * tokens * float64(x.topK))", New: "/ (tokens * float64(x.topK))"},
	{Rule: "tensor parallelism divides experts", File: "operators/products.go",
		Old: "tp: c.machine.TensorParallel * c.machine.DataParallel, ep: 1}", New: "tp: 1, ep: 1}"},
	{Rule: "a gated MLP has two matrices up", File: "operators/layers.go",
		Old: "\t\tup := 2\n", New: "\t\tup := 1\n"},
	{Rule: "the MLP has its short kernels", File: "operators/layers.go",
		Old: "c.smalls(count, denseKernels, up*inner)", New: "c.smalls(count, 0, up*inner)"},
	{Rule: "a layer of a dense model ends with an exchange", File: "operators/layers.go",
		Old: "\tif m.Experts == 0 {\n\t\treturn c.allReduce(count, &c.tokens)",
		New: "\tif m.Experts == 0 {\n\t\treturn nil"},
	{Rule: "a layer of experts ends with an exchange", File: "operators/layers.go",
		Old: "\treturn c.expertExchange(count)", New: "\treturn nil"},
	{Rule: "attention ends with an exchange", File: "operators/attention.go",
		Old: "\treturn c.allReduce(count, &c.tokens)", New: "\treturn nil"},
	{Rule: "a fused exchange saves the norm", File: "operators/layers.go",
		Old: "return max(launchUS, time-c.small(2*bytes))", New: "return time"},
	{Rule: "small sums read all data at once", File: "operators/layers.go",
		Old: "if bytes <= float64(c.machine.OneShotBytes)", New: "if bytes < 0"},
	{Rule: "larger exchanges are not fused", File: "operators/layers.go",
		Old: "if activationBytes*elements <= float64(c.machine.FusedBytes) {",
		New: "if c.machine.FusedBytes > 0 {"},
	{Rule: "the logits of all GPUs are gathered", File: "operators/layers.go",
		Old: "return us(n * float64(vocab)) }})", New: "return us(n) }})"},
	{Rule: "tensor parallelism divides the head", File: "operators/layers.go",
		Old: "c.gemm(\"\", ceilDiv(vocab, tp), hidden)", New: "c.gemm(\"\", vocab, hidden)"},
	{Rule: "the sampler reads the logits several times", File: "operators/layers.go",
		Old: "*4*samplerPasses*1e6/", New: "*4*1e6/"},
	{Rule: "a chunk takes time for each pair", File: "operators/attention.go",
		Old: "\t\tpair = max(0, pair)\n", New: "\t\tpair = 0\n"},
	{Rule: "a chunk takes time for its tokens, too", File: "operators/attention.go",
		Old: "rest[j] = max(rest[j], rest[j-1])", New: "rest[j] = 0"},
	{Rule: "blocks of latent attention were launched one by one", File: "operators/modules.go",
		Old: "*h.at(i, j) -= excess", New: "*h.at(i, j) -= 0 * excess"},
	{Rule: "up to 16 sequences a captured block takes the same", File: "operators/modules.go",
		Old: "i == 0 || n <= capturedSequences", New: "i == 0 && n > 0"},
	{Rule: "more than 16 sequences take longer in a captured block", File: "operators/modules.go",
		Old: "i == 0 || n <= capturedSequences", New: "n > 0"},
	{Rule: "the first matrices of a block are read", File: "operators/modules.go",
		Old: "m.QRank+m.KVRank+m.RopeDim", New: "m.QRank"},
	{Rule: "projections grow by no more than decode and chunks", File: "operators/modules.go",
		Old: "min(nowA-lastA, nowB-lastB)", New: "max(nowA-lastA, nowB-lastB)"},
	{Rule: "decode attention is what a block takes besides projections", File: "operators/modules.go",
		Old: "return max(0, decode.interpolate(n, context)-projections(n))",
		New: "return decode.interpolate(n, context)"},
	{Rule: "attention of chunks is what a block takes besides projections", File: "operators/modules.go",
		Old: "return rest(tokens) - projections(tokens) }, pair})", New: "return rest(tokens) }, pair})"},
	{Rule: "a block has short kernels besides", File: "operators/modules.go",
		Old: "c.smalls(count, moduleKernels, c.arch.Hidden)", New: "c.smalls(count, 0, c.arch.Hidden)"},
	{Rule: "tensor parallelism divides the heads of latent attention", File: "operators/modules.go",
		Old: "heads := ceilDiv(t.Heads, c.machine.TensorParallel)", New: "heads := t.Heads"},
	{Rule: "a multiprocessor computes a sequence and a KV head", File: "operators/compile.go",
		Old: "float64(m.Multiprocessors) / float64(c.kvHeads)", New: "float64(m.Multiprocessors)"},
	{Rule: "tensor parallelism divides KV heads over multiprocessors, too", File: "operators/attention.go",
		Old: "c.kvHeads = max(c.kvHeads, kv)", New: "c.kvHeads = max(c.kvHeads, t.KVHeads)"},
	{Rule: "keys and values are read from memory", File: "operators/attention.go",
		Old: "context), launch+read)", New: "context), 0*(launch+read))"},
	{Rule: "a kernel that reads from memory is launched", File: "operators/attention.go",
		Old: "context), launch+read)", New: "context), 0*launch+read)"},
	{Rule: "keys and values of a query head are shared", File: "operators/attention.go",
		Old: "heads, kv := ceilDiv(t.Heads, tp), ceilDiv(t.KVHeads, tp)",
		New: "heads, kv := ceilDiv(t.Heads, tp), ceilDiv(t.Heads, tp)"},
}

// TestMutations breaks the rules of kernels one at a time and expects a plain computation to notice each.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("builds tests with broken rules; run without -short")
	}
	mutation.Run(t, broken, func(int) []string {
		return []string{"^(TestGrid|TestCleanProducts)$", "^TestPlain(Step|MLA)$"}
	})
}
