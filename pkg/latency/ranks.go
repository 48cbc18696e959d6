package latency

import "blis/pkg/des"

// Tokens returns how many tokens the batch computes.
func (b *Batch) Tokens() int64 { return b.Prefill + b.Decode + b.Drafts }

// JoinRanks makes the batches those of the data-parallel ranks that run one step together. Their layers with experts
// exchange tokens at each layer, so that all wait for each other.
func JoinRanks(ranks []Batch) {
	var sum Batch
	for i := range ranks {
		b := &ranks[i]
		sum.RankTokens += b.Tokens()
		sum.WidestRank = max(sum.WidestRank, b.Tokens())
		sum.RankChunks += b.Chunks
	}
	for i := range ranks {
		b := &ranks[i]
		b.RankTokens, b.WidestRank, b.RankChunks = sum.RankTokens, sum.WidestRank, sum.RankChunks
	}
}

// OneRank returns the model of the steps of one data-parallel rank. A batch that says nothing of the others is computed
// as if they had none.
func OneRank(m Model) Model { return &oneRank{m} }

type oneRank struct{ Model }

func (m *oneRank) Step(b Batch) des.Time { return m.Model.Step(b.alone()) }

// alone returns the batch of a rank. If it says nothing of the others they have none.
func (b Batch) alone() Batch {
	if b.RankTokens == 0 {
		b.RankTokens, b.WidestRank, b.RankChunks = b.Tokens(), b.Tokens(), b.Chunks
	}
	return b
}

// OneRank returns the intensity of one data-parallel rank, whose batches say nothing of the others.
func (x *Intensity) OneRank() *Intensity { return &Intensity{m: x.m, rank: true} }
