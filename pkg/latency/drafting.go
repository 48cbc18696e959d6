package latency

import "blis/pkg/des"

// Drafting is how long a drafter takes to propose tokens after a step, one after the other.
type Drafting struct {
	// PassUS and SequenceUS are the time of a proposal: constant, and for each sequence of the step.
	PassUS, SequenceUS float64
	// Model, unless it is nil, replaces these. The first proposal takes Share of its time of the step's batch, and each
	// further one Share of its time of a batch that decodes the same sequences.
	Model Model
	Share float64
}

// Drafter returns a model whose steps end when the drafter has proposed their Batch.Proposals.
func Drafter(m Model, d Drafting) Model { return &drafter{m, d} }

type drafter struct {
	Model
	Drafting
}

func (d *drafter) Step(b Batch) des.Time {
	us := d.Model.Step(b)
	if b.Proposals == 0 {
		return us
	}
	sequences := b.Decode + b.Chunks
	if d.Drafting.Model == nil {
		each := d.PassUS + float64(d.SequenceUS*float64(sequences))
		return us + micros(float64(float64(b.Proposals)*each))
	}
	later := Batch{Decode: sequences, Context: b.Context + b.PriorContext + b.Prefill, LongestContext: b.LongestContext,
		WindowContext: b.WindowContext + b.WindowPriorContext}
	passes := float64(d.Drafting.Model.Step(b)) + float64(float64(b.Proposals-1)*float64(d.Drafting.Model.Step(later)))
	return us + micros(float64(d.Share*passes))
}
