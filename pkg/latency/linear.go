package latency

import "blis/pkg/des"

// linear is the model of straight lines that calibration fits.
type linear struct {
	alpha [3]float64
	beta  [4]float64
	// output is α2, rounded by itself.
	output des.Time
}

func newLinear(c Coefficients) (Model, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &linear{output: micros(c.Alpha[2])}
	copy(m.alpha[:], c.Alpha)
	copy(m.beta[:], c.Beta)
	return m, nil
}

// The conversions keep the compiler from fusing a product with the sum around
// it, which would give other bits on other processors.

func (m *linear) Queueing(input int64) des.Time {
	return micros(m.alpha[0] + float64(m.alpha[1]*float64(input)))
}

func (m *linear) Step(b Batch) des.Time {
	us := m.beta[0] + float64(m.beta[1]*float64(b.Prefill)) + float64(m.beta[2]*float64(b.Decode))
	if m.beta[3] > 0 {
		us += float64(m.beta[3] * float64(b.Context))
	}
	return max(1, micros(us))
}

func (m *linear) Output() des.Time { return m.output }
