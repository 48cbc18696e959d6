package latency

import "blis/pkg/des"

// AdapterCost is what LoRA adapters add to a step with Batch.Adapters of them: its time is multiplied by Factor, and
// each adapter adds EachUS.
type AdapterCost struct{ Factor, EachUS float64 }

// WithAdapters returns a model whose steps have this cost of adapters.
func WithAdapters(m Model, c AdapterCost) Model { return &withAdapters{m, c} }

type withAdapters struct {
	Model
	AdapterCost
}

func (a *withAdapters) Step(b Batch) des.Time {
	us := a.Model.Step(b)
	if b.Adapters == 0 {
		return us
	}
	return micros(float64(float64(us)*a.Factor) + float64(a.EachUS*float64(b.Adapters)))
}
