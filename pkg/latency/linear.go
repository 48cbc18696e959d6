package latency

import "blis/pkg/des"

// linear is the linear model that calibration fits.
type linear struct {
	overhead
	beta [4]float64
}

func newLinear(c Coefficients) (Model, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	m := &linear{overhead: newOverhead(c.Alpha)}
	copy(m.beta[:], c.Beta)
	return m, nil
}

func (m *linear) Step(b Batch) des.Time {
	us := m.beta[0] + float64(m.beta[1]*float64(b.Prefill+b.Drafts)) + float64(m.beta[2]*float64(b.Decode))
	if m.beta[3] > 0 {
		us += float64(m.beta[3] * float64(b.Context))
	}
	return max(1, micros(us))
}
