package gen

import (
	"slices"

	"blis/pkg/dist"
)

// TenantLoop is a closed loop of each tenant, as the closed_loop of its one
// client. Where Enabled is false there is none.
type TenantLoop struct {
	// Enabled must be true for the loop to be.
	Enabled bool `yaml:"enabled" json:"enabled"`
	// ConcurrencyPerTenant is the number of users of each tenant, ThinkTime is from an
	// answer to a user's next request, in µs; absent, no time.
	ConcurrencyPerTenant int64      `yaml:"concurrency_per_tenant" json:"concurrency_per_tenant"`
	ThinkTime            *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// tenantLoop is that of s; nil if there is none.
func (s *Spec) tenantLoop() *TenantLoop {
	if s.Correlations == nil || s.Correlations.ClosedLoop == nil || !s.Correlations.ClosedLoop.Enabled {
		return nil
	}
	return s.Correlations.ClosedLoop
}

// checkTenantLoop: every tenant has one client that can have the loop.
func (s *Spec) checkTenantLoop(fault fault) error {
	loop := s.tenantLoop()
	if loop == nil {
		return nil
	}
	const path = "correlations.closed_loop"
	if loop.ConcurrencyPerTenant < 1 || loop.ConcurrencyPerTenant > maxUsers {
		return fault(path+".concurrency_per_tenant", "must be between 1 and %d, is %d", maxUsers, loop.ConcurrencyPerTenant)
	}
	if loop.ThinkTime != nil {
		if _, err := durationAt(*loop.ThinkTime, path+".think_time", fault); err != nil {
			return err
		}
	}
	var tenants []string
	for i := range s.Clients {
		c := &s.Clients[i]
		switch {
		case c.ClosedLoop != nil:
			continue
		case c.sends() != "":
			return fault(path, "is for single requests, and client %q has %s; give a closed_loop to those that should have one", c.ID, c.sends())
		case c.TenantID != "" && slices.Contains(tenants, c.TenantID):
			return fault(path+".concurrency_per_tenant", "cannot be shared out: tenant %q has several clients; give each of them a closed_loop", c.TenantID)
		}
		tenants = append(tenants, c.TenantID)
	}
	return nil
}

// closedLoop is what c has of one, nil if nothing.
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
