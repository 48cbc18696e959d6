package latency

import "blis/pkg/des"

// Scale returns a model whose steps take factor times as long as those of m. Queueing and Output are those of m. If
// factor is 1 it returns m.
func Scale(m Model, factor float64) Model {
	if factor == 1 {
		return m
	}
	return &scaled{m, factor}
}

type scaled struct {
	Model
	factor float64
}

func (s *scaled) Step(b Batch) des.Time {
	return max(1, micros(float64(s.Model.Step(b))*s.factor))
}
