package policy

import "slices"

var tokenBucketParams = []Param{
	{Name: "unit", Kind: Choose, Choices: []string{"requests", "input_tokens"}, Default: "requests",
		Doc: "what one token pays for"},
	{Name: "capacity", Kind: Number, Min: 1e-3, Max: 1e12, Search: [2]float64{10, 100000}, Default: 100.0,
		Doc: "tokens in a full bucket; it starts full"},
	{Name: "refill_per_s", Kind: Number, Unit: "1/s", Min: 0, Max: 1e12, Search: [2]float64{1, 100000}, Default: 50.0,
		Doc: "tokens added per second"},
	{Name: "per_tenant", Kind: Flag, Default: false, Doc: "each tenant has its own bucket"},
	{Name: "capacities", Kind: Table, Keys: "tenant", Min: 1e-3, Max: 1e12, Search: [2]float64{10, 100000},
		Default: map[string]float64{}, Doc: "capacity of the buckets of single tenants, with per_tenant"},
	{Name: "refills_per_s", Kind: Table, Unit: "1/s", Keys: "tenant", Min: 0, Max: 1e12,
		Search: [2]float64{1, 100000}, Default: map[string]float64{},
		Doc: "refill_per_s of the buckets of single tenants, with per_tenant"},
}

// tokenBucket refills in simulated time.
type tokenBucket struct {
	needs
	inputTokens, perTenant bool
	capacity, perSecond    float64
	// capacities and perSeconds are those of single tenants.
	capacities, perSeconds map[string]float64
	buckets                []bucket
}

type bucket struct {
	tokens, capacity, perUS float64
	initialized             bool
	updatedUS               int64
}

func newTokenBucket(b *builder, s *Spec) Admitter {
	v := b.params(s, tokenBucketParams)
	t := &tokenBucket{inputTokens: v.choice("unit") == "input_tokens", perTenant: v.flag("per_tenant"),
		capacity: v.number("capacity"), perSecond: v.number("refill_per_s"),
		capacities: v.table("capacities"), perSeconds: v.table("refills_per_s")}
	b.markUnusedTables(v, !t.perTenant, "all tenants share one bucket; set per_tenant: true", "capacities",
		"refills_per_s")
	switch {
	case t.perTenant:
		b.tenants = append(append(b.tenants, sortedKeys(t.capacities)...), sortedKeys(t.perSeconds)...)
		t.needs = needs(NeedTenant | NeedRequest)
	case t.inputTokens:
		t.needs = needs(NeedRequest)
	}
	return t
}

func (t *tokenBucket) Admit(v *View) Verdict {
	tenant := int32(0)
	if t.perTenant {
		tenant = v.Request.TenantID
	}
	for int(tenant) >= len(t.buckets) {
		t.buckets = append(t.buckets, bucket{})
	}
	b := &t.buckets[tenant]
	if !b.initialized {
		b.capacity, b.perUS = t.capacity, t.perSecond/1e6
		if t.perTenant {
			b.capacity = limitOf(t.capacities, v.Request.Tenant, t.capacity)
			b.perUS = limitOf(t.perSeconds, v.Request.Tenant, t.perSecond) / 1e6
		}
		b.tokens, b.initialized, b.updatedUS = b.capacity, true, v.NowUS
	}
	b.tokens = min(b.capacity, b.tokens+float64(b.perUS*float64(v.NowUS-b.updatedUS)))
	b.updatedUS = v.NowUS
	cost := 1.0
	if t.inputTokens {
		cost = float64(v.Request.InputTokens)
	}
	have := b.tokens
	if have < cost {
		return Verdict{Action: Reject, Reason: Reason{"tokens in the bucket", have, "<", cost}}
	}
	b.tokens -= cost
	return Verdict{Reason: Reason{"tokens in the bucket", have, ">=", cost}}
}

func (t *tokenBucket) Clone() Admitter {
	c := *t
	c.buckets = slices.Clone(t.buckets)
	return &c
}
