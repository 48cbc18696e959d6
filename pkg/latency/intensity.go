package latency

import "errors"

// Intensity says how compute-bound the steps of a replica are. It is that of the roofline, whatever model gives the
// times of the steps.
type Intensity struct {
	m *roofline
	// rank: it is that of one data-parallel rank.
	rank bool
}

// NewIntensity returns the intensity of a replica.
func NewIntensity(r *Replica) (*Intensity, error) {
	if r == nil {
		return nil, errors.New("an intensity needs a model architecture and a GPU")
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &Intensity{m: compile(r.Work, r.Machine)}, nil
}

// check returns an error for the first impossible value.
func (r *Replica) check() error {
	if err := r.Machine.check(); err != nil {
		return err
	}
	return checkWork(r.Work)
}

// Of returns the time that the FLOPs of a step take, divided by the time that its bytes take, at most 1: near 0 for a
// few sequences that decode, 1 for a long chunk of a prompt. Both times are at the fractions of the peaks that servers
// reach. FLOPs are those of matrix products and attention. Bytes are the weights, each read once, and the keys and
// values. Collectives and times of the host are in neither.
func (x *Intensity) Of(b Batch) float64 {
	if x.rank {
		b = b.alone()
	}
	m, g := x.m, x.m.largestGroup(b)
	context, windowContext := float64(b.Context+b.Decode), float64(b.WindowContext+b.Decode)
	verified := 1.0 // tokens of each sequence that decodes, which attend to the same keys
	if b.Drafts > 0 && b.Decode > 0 {
		verified += float64(b.Drafts) / float64(b.Decode)
	}
	compute := float64(m.dense.token*g.tokens) + float64(m.head.token*g.rows) +
		float64(m.experts.token*g.expertTokens) +
		float64(g.chunkShare*(float64(m.full.pair*float64(b.Pairs))+float64(m.window.pair*float64(b.WindowPairs)))) +
		float64(g.decodeShare*verified*(float64(m.full.decodePair*context)+float64(m.window.decodePair*windowContext)))
	memory := m.dense.read + m.head.read + float64(m.experts.read*m.experts.activated(g.expertTokens)) +
		float64(g.chunkShare*(float64(m.full.read*float64(b.PriorContext+b.Prefill))+
			float64(m.window.read*float64(b.WindowPriorContext+b.Prefill)))) +
		float64(g.decodeShare*(float64(m.full.read*context)+float64(m.window.read*windowContext)))
	return min(1, compute/memory)
}
