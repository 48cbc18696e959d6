package latency

import (
	"cmp"
	"errors"
	"fmt"

	"blis/pkg/des"
)

// Operators is the input of the operators model: the times of the kernels of a model's step on its
// GPUs, from tables of measured kernels (pkg/operators).
type Operators struct {
	// System is the one whose tables these are; Notes say what no table has and what was used for it.
	System string   `json:"system"`
	Notes  []string `json:"notes,omitempty"`
	// Reach is the largest step that all tables cover.
	Reach Reach `json:"reach"`
	// Tokens is the time of the products of all layers, of their short kernels and of the exchanges
	// between GPUs, by the tokens of a group; Experts that of the experts, by the tokens of the groups
	// that share them; Sequences that of head and sampling.
	Tokens    Curve `json:"tokens"`
	Experts   Curve `json:"experts,omitzero"`
	Sequences Curve `json:"sequences"`
	// Decode is attention of sequences that compute their newest token, by sequences and the context of
	// each, in layers with full attention or without keys; WindowDecode in those with a window.
	Decode       Grid `json:"decode,omitzero"`
	WindowDecode Grid `json:"window_decode,omitzero"`
	// Wave is the number of sequences up to which Decode ends with the longest one, because each has
	// multiprocessors of its own; of more it waits less for that one. 0: the work of all is divided evenly.
	Wave float64 `json:"wave,omitempty"`
	// Prefill is attention of chunks, WindowPrefill in layers with a window.
	Prefill       ChunkAttention `json:"prefill,omitzero"`
	WindowPrefill ChunkAttention `json:"window_prefill,omitzero"`
	// MixedFactor is how many times as long decode attention takes in a step with chunks; 0 is 1.
	MixedFactor float64 `json:"mixed_factor,omitempty"`
	Host        Host    `json:"host"`
	// Groups and Ranks are DP: the batch is divided into groups, and Ranks of them run at once.
	Groups int `json:"groups"`
	Ranks  int `json:"ranks"`
}

// Reach has the largest tokens of a step, sequences that decode, and context of one; 0 is unknown.
type Reach struct {
	Tokens    int64 `json:"tokens"`
	Sequences int64 `json:"sequences"`
	Context   int64 `json:"context"`
}

// ChunkAttention is the attention of chunks: by their tokens, and for each pair of a token and one it
// attends to.
type ChunkAttention struct {
	Tokens Curve   `json:"tokens,omitzero"`
	PairUS float64 `json:"pair_us,omitempty"`
}

// Host is the work of the server's processes, in µs.
type Host struct {
	// StepUS and SequenceUS are added to each step, and for each of its sequences.
	StepUS     float64 `json:"step_us"`
	SequenceUS float64 `json:"sequence_us"`
	// Steps of at most Captured tokens run as CUDA graphs, padded to the sizes of graphs. With chunks
	// these are pieces of a layer, and the step takes at least PiecesUS; steps of more tokens launch their
	// kernels one by one and take at least EagerUS, and with chunks EagerChunksUS more.
	Captured      int64   `json:"captured"`
	PiecesUS      float64 `json:"pieces_us"`
	EagerUS       float64 `json:"eager_us"`
	EagerChunksUS float64 `json:"eager_chunks_us"`
	// ExpertPiecesUS is by how much longer the pieces of layers with experts take for at least 512 tokens, in
	// proportion less for fewer.
	ExpertPiecesUS float64 `json:"expert_pieces_us,omitempty"`
	// DecodeInPieces: the graphs of steps without chunks are pieces, too. ChunksEager: there are no graphs
	// of steps with chunks.
	DecodeInPieces bool `json:"decode_in_pieces,omitempty"`
	ChunksEager    bool `json:"chunks_eager,omitempty"`
	// ChunkFactor is how much longer the kernels of a step with chunks of at least 512 tokens take than they
	// were measured alone, in proportion less with fewer tokens, except experts. A lower clock under long load is
	// a possible reason: products with 512 tokens are limited by FLOPs and not by memory, while each of many
	// experts computes few of the tokens.
	ChunkFactor float64 `json:"chunk_factor"`
}

// operators computes a step from curves of kernels.
//
//	step = max over groups of [tokens + experts + sequences + attention] + host
//
// Attention of a step with chunks and decode sequences is that of both, decode times MixedFactor, but for
// the time of the smallest decode batch, which is mostly that of starting the kernel. Decode attention of n
// sequences of mean context c, the longest of which has l, is that of n with c + (l − c)·min(1, Wave/n) each:
// the bound of scheduling pieces of work one after the other on equal machines, which is at most the work of a
// machine and the longest piece (Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM J. Appl. Math.
// 17(2), 1969), and exact for one wave. A step never takes less time
// for more tokens, for more context, or for more sequences with the same context each; data
// parallelism divides the batch, and pipeline parallelism does not, as in the roofline.
type operators struct {
	overhead
	tokens, experts, sequences *line
	decode, windowDecode       *surface
	prefill, windowPrefill     chunkAttention
	floor, windowFloor         float64 // of decode attention
	wave, mixed                float64
	host                       Host
	groups, ranks              float64
}

type chunkAttention struct {
	tokens *line
	pair   float64
}

func (c *chunkAttention) duration(tokens, pairs float64) float64 {
	return c.tokens.duration(tokens) + float64(c.pair*pairs)
}

// newOperators builds the model.
func newOperators(c Coefficients) (Model, error) {
	if err := c.checkAlpha(); err != nil {
		return nil, err
	}
	o := c.Operators
	if o == nil {
		return nil, errors.New("operators need a model architecture and a GPU with tables of measured kernels")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	m := &operators{
		overhead: newOverhead(c.Alpha), tokens: newLine(o.Tokens), experts: newLine(o.Experts),
		sequences: newLine(o.Sequences),
		decode:    newSurface(o.Decode), windowDecode: newSurface(o.WindowDecode),
		prefill:       chunkAttention{newLine(o.Prefill.Tokens), o.Prefill.PairUS},
		windowPrefill: chunkAttention{newLine(o.WindowPrefill.Tokens), o.WindowPrefill.PairUS},
		wave:          o.Wave,
		mixed:         cmp.Or(o.MixedFactor, 1),
		host:          o.Host, groups: float64(o.Groups), ranks: float64(o.Ranks),
	}
	m.floor = min(m.decode.duration(1, 0), m.prefill.duration(1, 1))
	m.windowFloor = min(m.windowDecode.duration(1, 0), m.windowPrefill.duration(1, 1))
	return m, nil
}

// check returns an error for the first impossible value.
func (o *Operators) check() error {
	for _, c := range []struct {
		name  string
		curve *Curve
	}{{"tokens", &o.Tokens}, {"experts", &o.Experts}, {"sequences", &o.Sequences}, {"prefill.tokens",
		&o.Prefill.Tokens},
		{"window_prefill.tokens", &o.WindowPrefill.Tokens}} {
		optional := c.name != "tokens" && c.name != "sequences" && len(c.curve.At) == 0
		if err := c.curve.check(); err != nil && !optional {
			return fmt.Errorf("operators.%s: %w", c.name, err)
		}
		if len(c.curve.At) > maxAxis {
			return fmt.Errorf("operators.%s: must have at most %d points", c.name, maxAxis)
		}
	}
	for _, g := range []struct {
		name string
		grid *Grid
	}{{"decode", &o.Decode}, {"window_decode", &o.WindowDecode}} {
		if err := g.grid.check(); err != nil {
			return fmt.Errorf("operators.%s: %w", g.name, err)
		}
		if max(len(g.grid.Sequences), len(g.grid.Context)) > maxAxis {
			return fmt.Errorf("operators.%s: must have at most %d points on an axis", g.name, maxAxis)
		}
	}
	h := &o.Host
	return cmp.Or(
		checkEach("operators.host", []float64{h.StepUS, h.SequenceUS, h.PiecesUS, h.EagerUS, h.ChunkFactor,
			h.ExpertPiecesUS, h.EagerChunksUS}),
		checkEach("operators wave", []float64{o.Wave}),
		checkMixed(o.MixedFactor),
		checkEach("operators pair_us", []float64{o.Prefill.PairUS, o.WindowPrefill.PairUS}),
		checkDegrees(o.Groups, o.Ranks),
	)
}

func checkMixed(factor float64) error {
	if factor != 0 && !(factor >= 1 && factor <= 1/minFraction) {
		return fmt.Errorf("operators.mixed_factor must be between 1 and %g, is %g", 1/minFraction, factor)
	}
	return nil
}

func checkDegrees(groups, ranks int) error {
	if ranks < 1 || groups < ranks || groups > maxDegree*maxDegree || groups%ranks != 0 {
		return fmt.Errorf("operators: %d groups cannot be divided over %d ranks", groups, ranks)
	}
	return nil
}

func (m *operators) Step(b Batch) des.Time {
	chunks := b.Chunks
	if b.Prefill > 0 {
		chunks = max(1, chunks)
	}
	chunkShare, decodeShare, sequences := 1.0, 1.0, float64(chunks+b.Decode)
	tokens, rows := float64(b.Prefill+b.Decode+b.Drafts), sequences+float64(b.Drafts)
	expertTokens, groups := tokens, m.groups
	if b.RankTokens > 0 {
		groups /= m.ranks
	}
	if groups > 1 {
		chunkShare = 1 / min(groups, float64(max(1, chunks)))
		decodeShare = 1 / min(groups, float64(max(1, b.Decode)))
		tokens = float64(chunkShare*float64(b.Prefill)) + float64(decodeShare*float64(b.Decode+b.Drafts))
		sequences = float64(chunkShare*float64(chunks)) + float64(decodeShare*float64(b.Decode))
		rows = sequences + float64(decodeShare*float64(b.Drafts))
		expertTokens = min(float64(tokens*m.ranks), expertTokens)
	}
	padded := 0.0
	if b.RankTokens > 0 {
		padded, expertTokens = m.joint(&b)
	} else if b.Prefill == 0 || !m.host.ChunksEager {
		padded = m.host.padded(int64(tokens + 0.999))
	}
	if padded > 0 {
		tokens, expertTokens = padded, max(padded, expertTokens)
	}
	us := m.tokens.duration(tokens) + m.sequences.duration(rows) + m.attention(b, chunkShare, decodeShare)
	if b.Prefill > 0 {
		share := min(1, float64(b.Prefill)/slowChunk)
		us = float64(us * (1 + float64((m.host.ChunkFactor-1)*share)))
	}
	us += m.experts.duration(expertTokens)
	if b.Prefill > 0 || m.host.DecodeInPieces {
		us = max(m.host.pieces(tokens), us)
	}
	if padded == 0 {
		if b.Prefill > 0 {
			us += m.host.EagerChunksUS
		}
		us = max(us, m.host.EagerUS) // the host launches kernels while the GPU computes those before
	}
	return max(1, micros(us+m.host.StepUS+float64(m.host.SequenceUS*sequences)))
}

// joint returns the size of the CUDA graph of a rank's step, 0 if there is none, and the tokens of all ranks that share
// experts. All ranks have a graph of the same size, or none has one (_synchronize_dp_ranks in
// vllm/v1/worker/dp_utils.py, v0.33.0).
func (m *operators) joint(b *Batch) (padded, expertTokens float64) {
	if b.RankChunks == 0 || !m.host.ChunksEager {
		padded = m.host.padded(b.WidestRank)
	}
	if padded == 0 {
		return 0, float64(b.RankTokens)
	}
	return padded, float64(m.ranks * padded)
}

// slowChunk is the number of tokens in chunks from which on Host.ChunkFactor counts in full, and that of tokens
// in a step for Host.ExpertPiecesUS.
const slowChunk = 512

// pieces returns the least time of a step of n tokens whose graphs are pieces of a layer.
func (h *Host) pieces(n float64) float64 {
	return h.PiecesUS + float64(h.ExpertPiecesUS*min(1, n/slowChunk))
}

// padded returns the size of the CUDA graph for n tokens; 0 if there is none.
func (h *Host) padded(n int64) float64 {
	if n > h.Captured {
		return 0
	}
	return float64(GraphSize(n))
}

// GraphSize returns the smallest size of CUDA graphs that holds n tokens: 1, 2, 4, then multiples of 8 up to 256
// and of 16 beyond (_set_cudagraph_sizes in vllm/config/vllm.py, v0.15.1 to v0.33.0).
func GraphSize(n int64) int64 {
	switch {
	case n > 256:
		return (n + 15) &^ 15
	case n > 4:
		return (n + 7) &^ 7
	case n == 3:
		return 4
	}
	return n
}

// attention returns the time of attention in the batch.
func (m *operators) attention(b Batch, chunkShare, decodeShare float64) float64 {
	us := 0.0
	if b.Prefill > 0 {
		tokens := float64(chunkShare * float64(b.Prefill))
		us = m.prefill.duration(tokens, float64(chunkShare*float64(b.Pairs))) +
			m.windowPrefill.duration(tokens, float64(chunkShare*float64(b.WindowPairs)))
	}
	if b.Decode == 0 {
		return us
	}
	n, each := float64(decodeShare*float64(b.Decode)), 1/float64(b.Decode)
	context := float64(float64(b.Context) * each)
	if longer := float64(b.LongestContext) - context; longer > 0 && m.wave > 0 {
		context += float64(longer * min(1, m.wave/n))
	}
	decode := m.decode.duration(n, context)
	if m.windowDecode != nil {
		decode += m.windowDecode.duration(n, float64(float64(b.WindowContext)*each))
	}
	if b.Prefill > 0 {
		decode = float64(decode*m.mixed) - m.floor - m.windowFloor
	}
	return us + decode
}
