package latency

import (
	"errors"
	"fmt"
	"math"

	"blis/pkg/des"
	"blis/pkg/model"
)

// roofline computes a step from the model's work and the machine's peaks. Each part is limited by
// FLOPs and by bytes (Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009). The two
// limits are combined as the root of the sum of squares: the longer one if they differ much, 1.4
// times either if they are equal, as measured where matrix products pass from one limit to the
// other. On sums of measured kernels of eight GPUs (TestRooflineAgainstKernels) it has smaller errors
// than the longer limit alone on seven.
//
//	step = step_us + sequence_us·sequences
//	     + max(launch_us·layers,
//	           products + attention + collectives + layer_us·layers)
//
// Products are the dense weights, the head and the routed experts, each read once per step however
// many tokens share it. A GPU has 1/TP of the dense weights and of the head, and 1/(TP·DP) of the
// experts. n tokens activate E·(1−(1−k/E)ⁿ) of E experts when each goes to k of them with equal
// probability. The head counts one token for every sequence, also if its prompt continues in the
// next step, and each draft that speculative decoding verifies.
//
// Attention reads the keys and values of Context and PriorContext, handles those of the step's own
// tokens, and computes the pairs. A GPU has 1/TP of the heads, and at least one KV head. A chunked
// prompt computes the pairs of the whole prompt, and reads its prior context again for each chunk,
// at the fraction past of the memory bandwidth. That fraction was measured for one chunk and is too
// slow for several chunks with prior context. In a step with chunks one kernel serves all
// sequences, and reads for decode sequences at the fraction mixed.
//
// Collectives are, for each layer, two all-reduces over the TP group. With experts, the second one
// is over all TP·DP GPUs; with expert parallelism it is two all-to-alls, which send and return a
// token once for each of its experts.
// Over PCIe all GPUs share the path through the host.
//
// Data parallelism divides a batch: each of the DP ranks has its own sequences. Ranks are assumed to be
// balanced, and sequences and experts to be alike. With pipeline parallelism the time is that of all
// stages together, without the transfers between them.
//
// A step never takes less time for more work, with one exception: with DP, the same tokens in
// more sequences are spread over more groups.
//
// Also ignored: the embedding table; memory traffic of activations (proportional to tokens like
// FLOPs, so Compute contains it); overlap of collectives and products; and imbalance within
// attention, where one long context keeps one thread block busy after all others (up to 40 % of a
// step with one decode sequence of 16384 tokens and a small chunk), which totals over a batch
// cannot show.
type roofline struct {
	overhead

	// All times below are in µs, on the busiest GPU.
	dense, head  gemm
	experts      experts
	full, window attention
	// Collectives take tokenTransfer for each token of a group, and expertTransfer for each token of
	// the groups that share experts.
	tokenTransfer, expertTransfer float64
	// launch is the minimum time of the GPU work, limited by kernel launches; gpu is the fixed GPU time
	// of any step. step and sequence are the host time per step and per sequence.
	launch, gpu, step, sequence float64
	// The batch is divided over ranks = DP groups, which run at once.
	ranks float64
}

// gemm is a matrix product: the time to read its weights, and to compute one token.
type gemm struct{ read, token float64 }

func (p gemm) duration(tokens float64) float64 { return rootSumSquare(p.read, float64(p.token*tokens)) }

// experts is the product with one expert, summed over the layers that have experts; missProbability
// is the probability that a token does not go to a given one of count experts.
type experts struct {
	gemm
	count, missProbability float64
}

// duration returns the time for n tokens.
func (x experts) duration(n float64) float64 {
	if x.count == 0 {
		return 0
	}
	return rootSumSquare(float64(x.read*x.activated(n)), float64(x.token*n))
}

// activated returns how many experts n tokens activate.
func (x experts) activated(n float64) float64 {
	return x.count - float64(x.count*power(x.missProbability, int64(math.Ceil(n))))
}

// attention holds the times to read a token's keys and values (as a chunk's prior context, in a
// decode-only step, and in a mixed step), and to compute a pair of a chunk and one of a decode
// sequence.
type attention struct{ prior, read, mixed, pair, decodePair float64 }

// activationBytes is the size of a number passed between GPUs: servers keep activations in 16 bits
// whatever the weights are stored in.
const activationBytes = 2

// VectorUS is the time in µs to send a vector of this size over a link with this bandwidth in bytes/s.
func VectorUS(size int, bandwidth float64) float64 {
	return float64(size) * activationBytes * 1e6 / bandwidth
}

func newRoofline(c Coefficients) (Model, error) {
	if err := c.checkAlpha(); err != nil {
		return nil, err
	}
	if c.Replica == nil {
		return nil, errors.New("a roofline needs a model architecture and a GPU")
	}
	if err := c.Replica.check(); err != nil {
		return nil, err
	}
	m := compile(c.Replica.Work, c.Replica.Machine)
	m.overhead = newOverhead(c.Alpha)
	return m, nil
}

// checkWork returns an error for the first impossible value.
func checkWork(w model.Work) error {
	for _, q := range []struct {
		name  string
		value int64
	}{
		{"layers", int64(w.Layers)},
		{"hidden size", int64(w.Hidden)},
		{"KV heads", int64(w.KVHeads + w.WindowKVHeads)},
		{"dense weights", w.Dense.Bytes},
	} {
		if q.value < 1 {
			return fmt.Errorf("the model's %s must be at least 1, is %d", q.name, q.value)
		}
	}
	if w.ExpertLayers > 0 && (w.ExpertsPerToken < 1 || w.Experts < w.ExpertsPerToken) {
		return fmt.Errorf("experts per token must be between 1 and the number of experts, %d, is %d", w.Experts,
			w.ExpertsPerToken)
	}
	return nil
}

// compile turns work and machine into times.
func compile(w model.Work, g Machine) *roofline {
	e := g.Efficiency
	tp, layers := float64(g.TensorParallel), float64(w.Layers)
	memory := 1e6 / (g.Bandwidth * e.Memory) // µs per byte
	matrix := func(p model.Weights, perToken, gpus float64) gemm {
		return gemm{
			read:  float64(p.Bytes) * memory / gpus,
			token: 2 * float64(p.Params) * perToken * 1e6 / (g.FLOPS * e.Compute) / gpus,
		}
	}
	newAttention := func(kvBytes int64, heads int, pairFLOPs, decodePairFLOPs int64) attention {
		read := float64(kvBytes) * memory / min(tp, float64(max(1, heads)))
		flop := 1e6 / (g.AttentionFLOPS * e.Attention) / tp
		return attention{prior: read / e.PriorContext, read: read, mixed: read / e.Mixed,
			pair: float64(pairFLOPs) * flop, decodePair: float64(decodePairFLOPs) * flop}
	}
	m := &roofline{
		dense:  matrix(w.Dense, 1, tp),
		head:   matrix(w.Head, 1, tp),
		full:   newAttention(w.KVBytes, w.KVHeads, w.PairFLOPs, w.DecodePairFLOPs),
		window: newAttention(w.WindowKVBytes, w.WindowKVHeads, w.WindowPairFLOPs, w.WindowPairFLOPs),
		launch: layers * e.LaunchUS,
		gpu:    layers * e.LayerUS,
		step:   e.StepUS,
		// The states of a sequence are read and written once.
		sequence: e.SequenceUS + float64(2*float64(w.StateBytes)*memory)/tp,
		ranks:    float64(g.DataParallel),
	}
	if w.ExpertLayers > 0 {
		in := float64(w.ExpertLayers)
		one := matrix(w.Expert, float64(w.ExpertsPerToken), tp*float64(g.DataParallel))
		m.experts = experts{gemm: gemm{read: in * one.read, token: in * one.token}, count: float64(w.Experts),
			missProbability: 1 - float64(w.ExpertsPerToken)/float64(w.Experts)}
	}
	m.setCollectives(w, g)
	return m
}

// setCollectives sets the times of collectives.
func (m *roofline) setCollectives(w model.Work, g Machine) {
	e := g.Efficiency
	// vector is the time to send one token's hidden state from one GPU to another while n GPUs exchange data.
	vector := func(n float64) float64 {
		if g.Link == 0 {
			return 0
		}
		us := VectorUS(w.Hidden, g.Link*e.Link)
		if g.SharedLink {
			us *= max(1, n/2)
		}
		return us
	}
	tp, expertLayers := float64(g.TensorParallel), float64(w.ExpertLayers)
	if tp > 1 {
		reduces := float64(w.Reduces) - expertLayers
		m.gpu += float64(reduces * e.CollectiveUS)
		m.tokenTransfer += float64(reduces * 2 * (tp - 1) / tp * vector(tp))
	}
	if gpus := float64(tp * float64(g.DataParallel)); gpus > 1 && expertLayers > 0 {
		remote := (gpus - 1) / gpus
		if g.ExpertParallel {
			m.gpu += float64(expertLayers * 2 * e.CollectiveUS)
			m.expertTransfer += float64(expertLayers * 2 * float64(w.ExpertsPerToken) * remote / gpus * vector(gpus))
		} else {
			m.gpu += float64(expertLayers * e.CollectiveUS)
			m.expertTransfer += float64(expertLayers * 2 * remote * vector(gpus))
		}
	}
}

// group is the largest of the groups that a batch is divided into: its shares in the chunks and in the decode
// sequences, its tokens and sequences, the rows of which the head computes the next token, and the tokens of the groups
// that share experts.
type group struct{ chunkShare, decodeShare, tokens, sequences, rows, expertTokens float64 }

func (m *roofline) largestGroup(b Batch) (g group) {
	chunks := b.Chunks
	if b.Prefill > 0 {
		chunks = max(1, chunks)
	}
	ranks := m.ranks
	if b.RankTokens > 0 {
		ranks = 1
	}
	g.chunkShare = 1 / min(ranks, float64(max(1, chunks)))
	g.decodeShare = 1 / min(ranks, float64(max(1, b.Decode)))
	g.tokens = float64(g.chunkShare*float64(b.Prefill)) + float64(g.decodeShare*float64(b.Decode+b.Drafts))
	g.sequences = float64(g.chunkShare*float64(chunks)) + float64(g.decodeShare*float64(b.Decode))
	g.rows = g.sequences + float64(g.decodeShare*float64(b.Drafts))
	g.expertTokens = min(float64(g.tokens*m.ranks), float64(b.Prefill+b.Decode+b.Drafts))
	if b.RankTokens > 0 {
		g.expertTokens = float64(b.RankTokens)
	}
	return g
}

func (m *roofline) Step(b Batch) des.Time {
	g := m.largestGroup(b)
	us := m.dense.duration(g.tokens) + m.head.duration(g.rows) + m.experts.duration(g.expertTokens)
	us += float64(m.tokenTransfer*g.tokens) + float64(m.expertTransfer*g.expertTokens) + m.gpu
	us += m.attention(b, g.chunkShare, g.decodeShare)
	us = max(us, m.launch) + m.step + float64(m.sequence*g.sequences)
	return max(1, micros(us))
}

// attention returns the time of attention in the batch.
func (m *roofline) attention(b Batch, chunkShare, decodeShare float64) float64 {
	if b.Prefill == 0 {
		return float64(decodeShare * m.decode(b, m.full.read, m.window.read))
	}
	us := float64(chunkShare * m.chunks(b))
	if b.Decode > 0 {
		us += float64(decodeShare * m.decode(b, m.full.mixed, m.window.mixed))
	}
	return us
}

// decode returns the attention time of the decode sequences in one group, with the given times to
// read a token.
func (m *roofline) decode(b Batch, full, window float64) float64 {
	context, windowContext := float64(b.Context+b.Decode), float64(b.WindowContext+b.Decode)
	pairs := float64(m.full.decodePair*context) + float64(m.window.decodePair*windowContext)
	if b.Drafts > 0 && b.Decode > 0 { // each attends to the same tokens, which are read once
		pairs *= 1 + float64(b.Drafts)/float64(b.Decode)
	}
	return rootSumSquare(float64(full*context)+float64(window*windowContext), pairs)
}

// chunks returns the attention time of the chunks in one group.
func (m *roofline) chunks(b Batch) float64 {
	return rootSumSquare(
		float64(m.full.prior*float64(b.PriorContext))+float64(
			m.window.prior*float64(b.WindowPriorContext))+float64((m.full.read+m.window.read)*float64(b.Prefill)),
		float64(m.full.pair*float64(b.Pairs))+float64(m.window.pair*float64(b.WindowPairs)),
	)
}

// rootSumSquare combines two limits that partly overlap.
func rootSumSquare(a, b float64) float64 { return math.Sqrt(float64(a*a) + float64(b*b)) }

// power returns xⁿ for x between 0 and 1, with the same bits on every processor.
func power(x float64, n int64) float64 {
	p := 1.0
	for ; n > 0 && p > 0; n >>= 1 {
		if n&1 == 1 {
			p = float64(p * x)
		}
		x = float64(x * x)
	}
	return p
}
