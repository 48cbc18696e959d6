package gen

import (
	"math/rand/v2"

	"blis/pkg/dist"
)

// Correlations describes which draws of a client are correlated. Clients stay independent of each
// other, including those of the same tenant.
type Correlations struct {
	PrefixCorrelation float64 `yaml:"intra_tenant_prefix_correlation" json:"intra_tenant_prefix_correlation,omitempty"`

	BurstSizeCorrelation float64       `yaml:"burst_size_correlation" json:"burst_size_correlation,omitempty"`
	SessionModel         *SessionModel `yaml:"session_model" json:"session_model,omitempty"`
	ClosedLoop           *TenantLoop   `yaml:"closed_loop" json:"closed_loop,omitempty"`
}

// applyPrefixCorrelation applies the prefix correlation of the spec to c.
func (c *Client) applyPrefixCorrelation(correlations *Correlations, errorf errorFunc) error {
	if correlations == nil {
		return nil
	}
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"intra_tenant_prefix_correlation", correlations.PrefixCorrelation},
		{"burst_size_correlation", correlations.BurstSizeCorrelation},
	} {
		if !(p.value >= 0 && p.value <= 1) {
			return errorf("correlations."+p.name, "must be between 0 and 1, is %g", p.value)
		}
	}
	c.derived.reuseProbability = correlations.PrefixCorrelation
	return nil
}

// correlateLengths makes the prompts of a client longer in its bursts and shorter outside. rate is
// the rate outside.
func (s *Spec) correlateLengths(base, burstClient *Client, rate float64, errorf errorFunc) error {
	if s.Correlations == nil || s.Correlations.BurstSizeCorrelation == 0 {
		return nil
	}
	if base.Arrival.IsTrace() {
		return errorf("correlations.burst_size_correlation", "needs a rate, but the arrivals of client %q are a trace",
			base.ID)
	}
	rho, regularShare := s.Correlations.BurstSizeCorrelation, rate/(rate+burstClient.derived.bursts.rate())
	base.derived.correlateLength = func(l *dist.Length) *dist.Length { return l.Correlated(rho, 0, regularShare) }
	burstClient.derived.correlateLength = func(l *dist.Length) *dist.Length {
		return l.Correlated(
			rho, regularShare, 1)
	}
	return nil
}

// reuseState decides which prompts repeat the prefix group of the previous one.
type reuseState struct {
	probability float64
	stream      *rand.Rand
	last        int // -1 before the first prompt
}

// newReuseState makes the state of c; nil if prompts are independent.
func newReuseState(seed uint64, c *Client) *reuseState {
	if c.derived.reuseProbability == 0 {
		return nil
	}
	return &reuseState{c.derived.reuseProbability, c.stream(seed, "prefix-habit"), -1}
}

// choose returns the prefix group of a prompt: the drawn one or that of the previous prompt.
func (h *reuseState) choose(drawn int, reused bool) int {
	if h == nil {
		return drawn
	}
	repeats := h.stream.Float64() < h.probability
	if !reused {
		return drawn
	}
	if !repeats || h.last < 0 {
		h.last = drawn
	}
	return h.last
}
