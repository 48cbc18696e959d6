package gen

import (
	"slices"

	"blis/pkg/dist"
)

// TenantLoop gives every tenant a closed loop, as if its only client had one.
type TenantLoop struct {
	Enabled              bool       `yaml:"enabled" json:"enabled"`
	ConcurrencyPerTenant int64      `yaml:"concurrency_per_tenant" json:"concurrency_per_tenant"`
	ThinkTime            *dist.Spec `yaml:"think_time" json:"think_time,omitempty"`
}

// tenantLoop returns the enabled loop of s; nil if there is none.
func (s *Spec) tenantLoop() *TenantLoop {
	if s.Correlations == nil || s.Correlations.ClosedLoop == nil || !s.Correlations.ClosedLoop.Enabled {
		return nil
	}
	return s.Correlations.ClosedLoop
}

// checkTenantLoop checks that every tenant has exactly one client, and that it sends single
// requests.
func (s *Spec) checkTenantLoop(errorf errorFunc) error {
	loop := s.tenantLoop()
	if loop == nil {
		return nil
	}
	const path = "correlations.closed_loop"
	if loop.ConcurrencyPerTenant < 1 || loop.ConcurrencyPerTenant > maxUsers {
		return errorf(path+".concurrency_per_tenant", "must be between 1 and %d, is %d", maxUsers,
			loop.ConcurrencyPerTenant)
	}
	if loop.ThinkTime != nil {
		if _, err := durationAt(*loop.ThinkTime, path+".think_time", errorf); err != nil {
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
			return errorf(path, "is only for single requests, but client %q has %s; set closed_loop per client instead",
				c.ID, c.sends())
		case c.TenantID != "" && slices.Contains(tenants, c.TenantID):
			return errorf(path+".concurrency_per_tenant",
				"tenant %q has several clients; set closed_loop per client instead", c.TenantID)
		}
		tenants = append(tenants, c.TenantID)
	}
	return nil
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
