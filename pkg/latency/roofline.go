package latency

import (
	"errors"
	"fmt"
	"math"

	"blis/pkg/des"
	"blis/pkg/model"
)

// roofline computes a step from what the model asks and what the machine
// gives. The limits of a part, its FLOPs over the machine's and its bytes over
// the memory's (Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009),
// combine as the root of the sum of their squares: that is the longer of two
// that differ much, and 1.4 of it where they are equal, as is measured where
// matrix products pass from one limit to the other.
//
//	step = step_us + sequence_us·sequences
//	     + max(launch_us·layers,
//	           products + attention + exchanges + layer_us·layers)
//
// Products are the dense weights, the head and the routed experts, each read
// once a step however many tokens share it. A GPU has 1/TP of the dense weights
// and of the head, and 1/(TP·DP) of the experts. n tokens touch E·(1−(1−k/E)ⁿ)
// of E experts when each goes to k of them, all equally likely. The head counts
// a token for every sequence, also where a prompt goes on in the next step.
//
// Attention reads the keys and values of Context and Past, handles those of the
// step's own tokens, and computes the pairs. A GPU has 1/TP of the heads, and at
// least one head of keys and values. A prompt cut in chunks computes the pairs
// of the whole prompt, and reads its past again for each chunk: at the fraction
// past of the memory's speed, as measured for one chunk (of several with a past
// each, that is too slow). In a step with chunks one kernel serves all, and reads
// for decode sequences at the fraction mixed.
//
// Exchanges are, for each layer, two all-reduces over the TP group. With
// experts, the second is over all their TP·DP GPUs; with expert parallelism it
// is two all-to-alls, which send and fetch a token once for each of its experts.
//
// Data and pipeline parallelism both divide a batch. Each of DP ranks has its
// sequences, and these go in PP equal groups one behind the other through the
// stages: a step is one round, in which each sequence takes part once, and lasts
// as long as one group needs through all stages and the PP−1 ways between them.
// The pipeline counts as full while there is a sequence for each group: bubbles
// within a round are left out; with fewer sequences the other groups are empty.
// Ranks count as balanced, sequences and experts as alike.
//
// No step takes less time for more of anything in the batch, but for one: with
// DP or PP, the same tokens in more sequences are in more groups.
//
// Left out, too: the table of inputs; activations in memory (proportional to
// the tokens, as FLOPs are: Compute contains them); that exchanges and products
// could overlap; and that one long past beside few others keeps one thread block
// busy after all others (up to 40 % of a step with one decode sequence of 16384
// tokens beside a small chunk), which sums over a batch do not show.
type roofline struct {
	outside

	// Everything below is in µs, on the busiest GPU.
	dense, head  product
	experts      experts
	full, window attention
	// Exchanges take token for each token of a group, and all for each token of
	// the groups that share experts.
	token, all float64
	// launch is the host's least time while the GPUs work, gpu what these take in
	// any step; step is what the host adds, sequence what it adds for each.
	launch, gpu, step, sequence float64
	// The batch is in groups = PP·DP parts, and ranks = DP of them work at once.
	groups, ranks float64
}

// product is a matrix product: the time to read its weights, and to compute for
// one token.
type product struct{ read, token float64 }

func (p product) of(tokens float64) float64 { return both(p.read, float64(p.token*tokens)) }

// experts is the product with one expert in each of the layers that have them;
// missed is the part of count experts that one token does not go to.
type experts struct {
	product
	count, missed float64
}

// of is the time for n tokens.
func (x experts) of(n float64) float64 {
	if x.count == 0 {
		return 0
	}
	touched := x.count - float64(x.count*power(x.missed, int64(math.Ceil(n))))
	return both(float64(x.read*touched), float64(x.token*n))
}

// attention is the time to read a token's keys and values, for a chunk's past, in
// a step of decode sequences alone and in one with chunks, and to compute a pair
// of a chunk and one of a decode sequence.
type attention struct{ past, read, mixed, pair, decodePair float64 }

// activationBytes is what one number that passes between GPUs takes: servers
// keep them in 16 bits, whatever the weights are stored in.
const activationBytes = 2

func newRoofline(c Coefficients) (Model, error) {
	if err := c.checkAlpha(); err != nil {
		return nil, err
	}
	if c.Replica == nil {
		return nil, errors.New("a roofline needs a model's architecture and a GPU")
	}
	if err := c.Replica.Machine.check(); err != nil {
		return nil, err
	}
	if err := checkWork(c.Replica.Work); err != nil {
		return nil, err
	}
	m := compile(c.Replica.Work, c.Replica.Machine)
	m.outside = newOutside(c.Alpha)
	return m, nil
}

// checkWork reports what no model can ask.
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
			return fmt.Errorf("a model's %s must be at least 1, are %d", q.name, q.value)
		}
	}
	if w.ExpertLayers > 0 && (w.ExpertsPerToken < 1 || w.Experts < w.ExpertsPerToken) {
		return fmt.Errorf("a token goes to between 1 and all of %d experts, not to %d", w.Experts, w.ExpertsPerToken)
	}
	return nil
}

// compile turns facts into times.
func compile(w model.Work, g Machine) *roofline {
	e := g.Efficiency
	tp, layers := float64(g.TensorParallel), float64(w.Layers)
	memory := 1e6 / (g.Bandwidth * e.Memory) // µs a byte
	matrix := func(p model.Weights, perToken, gpus float64) product {
		return product{
			read:  float64(p.Bytes) * memory / gpus,
			token: 2 * float64(p.Params) * perToken * 1e6 / (g.FLOPS * e.Compute) / gpus,
		}
	}
	see := func(kvBytes int64, heads int, pairFLOPs, decodePairFLOPs int64) attention {
		read := float64(kvBytes) * memory / min(tp, float64(max(1, heads)))
		flop := 1e6 / (g.AttentionFLOPS * e.Attention) / tp
		return attention{past: read / e.Past, read: read, mixed: read / e.Mixed, pair: float64(pairFLOPs) * flop, decodePair: float64(decodePairFLOPs) * flop}
	}
	m := &roofline{
		dense:    matrix(w.Dense, 1, tp),
		head:     matrix(w.Head, 1, tp),
		full:     see(w.KVBytes, w.KVHeads, w.PairFLOPs, w.DecodePairFLOPs),
		window:   see(w.WindowKVBytes, w.WindowKVHeads, w.WindowPairFLOPs, w.WindowPairFLOPs),
		launch:   layers * e.LaunchUS,
		gpu:      layers * e.LayerUS,
		step:     e.StepUS,
		sequence: e.SequenceUS,
		groups:   float64(g.PipelineParallel * g.DataParallel),
		ranks:    float64(g.DataParallel),
	}
	if w.ExpertLayers > 0 {
		in := float64(w.ExpertLayers)
		one := matrix(w.Expert, float64(w.ExpertsPerToken), tp*float64(g.DataParallel))
		m.experts = experts{
			product: product{read: in * one.read, token: in * one.token},
			count:   float64(w.Experts),
			missed:  1 - float64(w.ExpertsPerToken)/float64(w.Experts),
		}
	}
	m.exchanges(w, g)
	return m
}

// exchanges sets what GPUs send each other.
func (m *roofline) exchanges(w model.Work, g Machine) {
	e := g.Efficiency
	// vector is the time of what one token is between two layers.
	vector := 0.0
	if g.Link > 0 {
		vector = float64(w.Hidden) * activationBytes * 1e6 / (g.Link * e.Link)
	}
	tp, expertLayers := float64(g.TensorParallel), float64(w.ExpertLayers)
	if tp > 1 {
		reduces := 2*float64(w.Layers) - expertLayers
		m.gpu += float64(reduces * e.CollectiveUS)
		m.token += float64(reduces * 2 * (tp - 1) / tp * vector)
	}
	if gpus := tp * float64(g.DataParallel); gpus > 1 && expertLayers > 0 {
		apart := (gpus - 1) / gpus
		if g.ExpertParallel {
			m.gpu += float64(expertLayers * 2 * e.CollectiveUS)
			m.all += float64(expertLayers * 2 * float64(w.ExpertsPerToken) * apart / gpus * vector)
		} else {
			m.gpu += float64(expertLayers * e.CollectiveUS)
			m.all += float64(expertLayers * 2 * apart * vector)
		}
	}
	ways := float64(g.PipelineParallel - 1)
	m.gpu += float64(ways * e.CollectiveUS)
	m.token += float64(ways * vector)
}

func (m *roofline) Step(b Batch) des.Time {
	chunks := b.Chunks
	if b.Prefill > 0 {
		chunks = max(1, chunks)
	}
	// What the fullest group has of the chunks and of the decode sequences.
	ofChunks := 1 / min(m.groups, float64(max(1, chunks)))
	ofDecode := 1 / min(m.groups, float64(max(1, b.Decode)))
	tokens := float64(ofChunks*float64(b.Prefill)) + float64(ofDecode*float64(b.Decode))
	sequences := float64(ofChunks*float64(chunks)) + float64(ofDecode*float64(b.Decode))
	together := min(float64(tokens*m.ranks), float64(b.Prefill+b.Decode))

	us := m.dense.of(tokens) + m.head.of(sequences) + m.experts.of(together)
	us += float64(m.token*tokens) + float64(m.all*together) + m.gpu
	us += m.attention(b, ofChunks, ofDecode)
	us = max(us, m.launch) + m.step + float64(m.sequence*sequences)
	return max(1, micros(us))
}

// attention is the time of what the batch looks at.
func (m *roofline) attention(b Batch, ofChunks, ofDecode float64) float64 {
	if b.Prefill == 0 {
		return float64(ofDecode * m.decode(b, m.full.read, m.window.read))
	}
	us := float64(ofChunks * m.chunks(b))
	if b.Decode > 0 {
		us += float64(ofDecode * m.decode(b, m.full.mixed, m.window.mixed))
	}
	return us
}

// decode is the attention of the decode sequences, were they all in one group,
// with the times to read a token.
func (m *roofline) decode(b Batch, full, window float64) float64 {
	seen, seenInWindow := float64(b.Context+b.Decode), float64(b.WindowContext+b.Decode)
	return both(
		float64(full*seen)+float64(window*seenInWindow),
		float64(m.full.decodePair*seen)+float64(m.window.decodePair*seenInWindow),
	)
}

// chunks is the attention of the chunks, were they all in one group.
func (m *roofline) chunks(b Batch) float64 {
	return both(
		float64(m.full.past*float64(b.Past))+float64(m.window.past*float64(b.WindowPast))+float64((m.full.read+m.window.read)*float64(b.Prefill)),
		float64(m.full.pair*float64(b.Pairs))+float64(m.window.pair*float64(b.WindowPairs)),
	)
}

// both is the time of work with two limits that partly hide each other.
func both(a, b float64) float64 { return math.Sqrt(float64(a*a) + float64(b*b)) }

// power is x to the n for x between 0 and 1, the same on every processor.
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
