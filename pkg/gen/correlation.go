package gen

import (
	"math/rand/v2"

	"blis/pkg/dist"
)

// Correlations say which draws of a client have to do with each other. Clients
// stay independent of each other, also those of one tenant.
type Correlations struct {
	// IntraTenantPrefixCorrelation is the probability that a prompt with a prefix
	// takes the group that the client's last one took, 0 to 1. Groups keep their
	// popularity and come in longer runs.
	IntraTenantPrefixCorrelation float64 `yaml:"intra_tenant_prefix_correlation" json:"intra_tenant_prefix_correlation,omitempty"`
	// BurstSizeCorrelation, 0 to 1, is how much longer prompts are in the bursts of
	// a client: the correlation, in a Gaussian copula, of a prompt's length and of
	// whether it comes in a burst. All its prompts together keep
	// input_distribution, so that those outside of bursts are shorter; at 1 the
	// bursts have the longest of all. Clients without bursts are left alone.
	BurstSizeCorrelation float64 `yaml:"burst_size_correlation" json:"burst_size_correlation,omitempty"`
	// SessionModel is of all clients with multi_turn.
	SessionModel *SessionModel `yaml:"session_model" json:"session_model,omitempty"`
	// ClosedLoop is of all clients that send single requests.
	ClosedLoop *TenantLoop `yaml:"closed_loop" json:"closed_loop,omitempty"`
}

// correlate gives client c what the spec's correlations say of its prefixes.
func (c *Client) correlate(to *Correlations, fault fault) error {
	if to == nil {
		return nil
	}
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"intra_tenant_prefix_correlation", to.IntraTenantPrefixCorrelation},
		{"burst_size_correlation", to.BurstSizeCorrelation},
	} {
		if !(p.value >= 0 && p.value <= 1) {
			return fault("correlations."+p.name, "must be between 0 and 1, is %g", p.value)
		}
	}
	c.latent.sticky = to.IntraTenantPrefixCorrelation
	return nil
}

// leanOn correlates the lengths of a client's own prompts, which come at a rate,
// and of those in its bursts with being the one or the other.
func (s *Spec) leanOn(own, crowd *Client, rate float64, fault fault) error {
	if s.Correlations == nil || s.Correlations.BurstSizeCorrelation == 0 {
		return nil
	}
	if own.Arrival.IsTrace() {
		return fault("correlations.burst_size_correlation", "needs the rate of client %q, whose arrivals are a trace", own.ID)
	}
	rho, calm := s.Correlations.BurstSizeCorrelation, rate/(rate+crowd.latent.bursts.rate())
	own.latent.lean = func(l *dist.Length) *dist.Length { return l.Leaning(rho, 0, calm) }
	crowd.latent.lean = func(l *dist.Length) *dist.Length { return l.Leaning(rho, calm, 1) }
	return nil
}

// habit is which group prompts have taken.
type habit struct {
	prob   float64
	stream *rand.Rand
	last   int // -1 before the first
}

// newHabit makes the habit of c; nil if it has none.
func newHabit(seed uint64, c *Client) *habit {
	if c.latent.sticky == 0 {
		return nil
	}
	return &habit{c.latent.sticky, c.stream(seed, "prefix-habit"), -1}
}

// group returns the group that a prompt takes which would take another by itself.
func (h *habit) group(drawn int, reused bool) int {
	if h == nil {
		return drawn
	}
	again := h.stream.Float64() < h.prob
	if !reused {
		return drawn
	}
	if !again || h.last < 0 {
		h.last = drawn
	}
	return h.last
}
