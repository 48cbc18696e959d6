package policy

import "slices"

var tokenBucketParams = []Param{
	{Name: "unit", Kind: Choose, Choices: []string{"requests", "input_tokens"}, Default: "requests", Doc: "what a token stands for"},
	{Name: "capacity", Kind: Number, Min: 1e-3, Max: 1e12, Search: [2]float64{10, 100000}, Default: 100.0, Doc: "what a full bucket holds; it begins full"},
	{Name: "refill_per_s", Kind: Number, Unit: "1/s", Min: 0, Max: 1e12, Search: [2]float64{1, 100000}, Default: 50.0, Doc: "what flows in"},
	{Name: "per_tenant", Kind: Flag, Default: false, Doc: "each tenant has its own bucket"},
}

// tokenBucket fills as simulated time passes.
type tokenBucket struct {
	reads
	inputTokens, perTenant bool
	capacity, perUS        float64
	buckets                []bucket
}

type bucket struct {
	tokens  float64
	filled  bool // it has been full once
	untilUS int64
}

func newTokenBucket(b *builder, s *Spec) Admitter {
	v := b.params(s, tokenBucketParams)
	t := &tokenBucket{inputTokens: v.choice("unit") == "input_tokens", perTenant: v.flag("per_tenant"),
		capacity: v.number("capacity"), perUS: v.number("refill_per_s") / 1e6}
	switch {
	case t.perTenant:
		t.reads = reads(NeedTenant | NeedRequest)
	case t.inputTokens:
		t.reads = reads(NeedRequest)
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
	if !b.filled {
		b.tokens, b.filled, b.untilUS = t.capacity, true, v.NowUS
	}
	b.tokens = min(t.capacity, b.tokens+float64(t.perUS*float64(v.NowUS-b.untilUS)))
	b.untilUS = v.NowUS
	price := 1.0
	if t.inputTokens {
		price = float64(v.Request.InputTokens)
	}
	have := b.tokens
	if have < price {
		return Verdict{Action: Reject, Reason: Reason{"tokens in the bucket", have, "<", price}}
	}
	b.tokens -= price
	return Verdict{Reason: Reason{"tokens in the bucket", have, ">=", price}}
}

func (t *tokenBucket) Clone() Admitter {
	c := *t
	c.buckets = slices.Clone(t.buckets)
	return &c
}
