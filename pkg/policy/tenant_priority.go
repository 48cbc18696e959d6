package policy

var tenantPriorityParams = []Param{
	{Name: "map", Kind: Table, Keys: "tenant", Min: -1e9, Max: 1e9, Search: [2]float64{0, 100}, Default: map[string]float64{}, Doc: "the priority of each tenant's requests; a tenant without one has 0"},
}

type tenantPriority struct {
	hintless
	of map[string]float64
}

func newTenantPriority(b *builder, s *Spec) Prioritizer {
	return tenantPriority{of: b.params(s, tenantPriorityParams).table("map")}
}

func (tenantPriority) Needs() Needs { return NeedRequest }

func (t tenantPriority) Priority(v *View, _ *[MaxHints]float64) (float64, string) {
	return t.of[v.Request.Tenant], ""
}

func (t tenantPriority) Clone() Prioritizer { return t }
