package gen

import (
	"math/rand/v2"
	"slices"

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

// correlations returns the correlations of s; the zero value means none.
func (s *Spec) correlations() Correlations {
	if s.Correlations == nil {
		return Correlations{}
	}
	return *s.Correlations
}

// checkCorrelations validates the correlations of s.
func (s *Spec) checkCorrelations(at field) {
	c := s.correlations()
	between(at, "intra_tenant_prefix_correlation", c.PrefixCorrelation, 0, 1)
	between(at, "burst_size_correlation", c.BurstSizeCorrelation, 0, 1)
	s.checkSessionModel(c.SessionModel, at.at("session_model"))
	s.checkTenantLoop(at.at("closed_loop"))
}

// correlateLengths makes the prompts of a client longer in its bursts and shorter outside. rate is
// the rate outside.
func (s *Spec) correlateLengths(base, burstClient *Client, rate float64, at field) {
	rho := s.correlations().BurstSizeCorrelation
	if rho == 0 {
		return
	}
	if base.Arrival.IsTrace() {
		at.spec().fail("correlations.burst_size_correlation", "needs a rate, but the arrivals of client %q are a trace",
			base.ID)
	}
	regularShare := rate / (rate + burstClient.derived.bursts.rate())
	base.derived.correlateLength = func(l *dist.Length) *dist.Length { return l.Correlated(rho, 0, regularShare) }
	burstClient.derived.correlateLength = func(l *dist.Length) *dist.Length {
		return l.Correlated(rho, regularShare, 1)
	}
}

// reuseState decides which prompts repeat the prefix group of the previous one.
type reuseState struct {
	probability float64
	stream      *rand.Rand
	last        int // -1 before the first prompt
}

// choose returns the prefix group of a prompt: the drawn one or that of the previous prompt.
func (h *reuseState) choose(drawn int, reused bool) int {
	repeats := h.stream.Float64() < h.probability
	if !reused {
		return drawn
	}
	if !repeats || h.last < 0 {
		h.last = drawn
	}
	return h.last
}

// SessionModel changes lengths in the course of a conversation.
type SessionModel struct {
	PromptGrowthRate *float64 `yaml:"prompt_growth_rate" json:"prompt_growth_rate,omitempty"`
	DecodeVariation  float64  `yaml:"decode_variation" json:"decode_variation,omitempty"`
}

// maxGrowth bounds the factor from turn to turn and its variation.
const maxGrowth = 100

// checkSessionModel validates the session model of s; nil means none.
func (s *Spec) checkSessionModel(m *SessionModel, at field) {
	switch {
	case m == nil:
	case !slices.ContainsFunc(s.Clients, func(c Client) bool { return c.MultiTurn != nil }):
		at.fail("", "has no effect: no client has multi_turn")
	case m.PromptGrowthRate != nil && !(*m.PromptGrowthRate > 0 && *m.PromptGrowthRate <= maxGrowth):
		at.fail("prompt_growth_rate", "must be above 0 and at most %d, is %g", maxGrowth, *m.PromptGrowthRate)
	default:
		between(at, "decode_variation", m.DecodeVariation, 0, maxGrowth)
	}
}

// TenantLoop gives every tenant a closed loop, as if its only client had one.
type TenantLoop struct {
	Enabled              bool       `yaml:"enabled" json:"enabled"`
	ConcurrencyPerTenant int64      `yaml:"concurrency_per_tenant" json:"concurrency_per_tenant"`
	ThinkTime            *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// tenantLoop returns the enabled loop of s; nil if there is none.
func (s *Spec) tenantLoop() *TenantLoop {
	loop := s.correlations().ClosedLoop
	if loop == nil || !loop.Enabled {
		return nil
	}
	return loop
}

// checkTenantLoop checks that every tenant has exactly one client, and that it sends single
// requests.
func (s *Spec) checkTenantLoop(at field) {
	loop := s.tenantLoop()
	if loop == nil {
		return
	}
	between(at, "concurrency_per_tenant", loop.ConcurrencyPerTenant, 1, maxUsers)
	at.duration("think_time", loop.ThinkTime)
	var tenants []string
	for i := range s.Clients {
		c := &s.Clients[i]
		switch {
		case c.ClosedLoop != nil:
			continue
		case c.sends() != "":
			at.fail("", "is only for single requests, but client %q has %s; set closed_loop per client instead", c.ID,
				c.sends())
		case c.TenantID != "" && slices.Contains(tenants, c.TenantID):
			at.fail("concurrency_per_tenant", "tenant %q has several clients; set closed_loop per client instead",
				c.TenantID)
		}
		tenants = append(tenants, c.TenantID)
	}
}

// closedLoop returns the closed loop of c; nil if it has none.
func (s *Spec) closedLoop(c *Client) *ClosedLoop {
	loop := s.tenantLoop()
	switch {
	case c.sends() != "":
		return c.ClosedLoop
	case loop != nil:
		return &ClosedLoop{Concurrency: loop.ConcurrencyPerTenant, ThinkTime: loop.ThinkTime}
	}
	return nil
}
