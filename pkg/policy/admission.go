package policy

// admissions are the admission policies.
func admissions() table[Admitter] {
	type kind = policyKind[Admitter]
	return table[Admitter]{
		{Name: "always-admit", Doc: "admits every request", Value: kind{build: newAlwaysAdmit}},
		{Name: "token-bucket", Doc: "a request takes tokens from a refilling bucket; rejected if there are too few",
			Value: kind{params: tokenBucketParams, build: newTokenBucket}},
		{Name: "rate-limit", Doc: "admits at most a given number of requests per sliding window",
			Value: kind{params: rateLimitParams, build: newRateLimit}},
		{Name: "tenant-quota",
			Doc:   "under load, rejects a tenant above its share of requests in flight, sheddable ones first",
			Value: kind{params: tenantQuotaParams, build: newTenantQuota}},
		{Name: "slo-gated", Doc: "admits a tier while the mean queue depth is below its threshold",
			Value: kind{params: sloGatedParams, build: newSLOGated}},
		{Name: "saturation", Doc: "rejects the sheddable tier while the cluster is saturated (llm-d)",
			Value: kind{params: saturationParams, build: newSaturation}},
		{Name: "probabilistic-admitter",
			Doc:   "rejects the sheddable tier with a probability that grows with the saturation (llm-d)",
			Value: kind{params: probabilisticParams, build: newProbabilisticAdmitter}},
		{Name: "predictive-slo", Doc: "rejects a request whose estimated TTFT exceeds its budget",
			Value: kind{params: predictiveSLOParams, build: newPredictiveSLO}},
		{Name: "expression", Doc: "CEL: admit is true or false, or \"admit\", \"reject\", \"delay\"",
			Value: kind{params: []Param{delayParam}, composed: true, build: newAdmitExpression}},
		{Name: "starlark", Doc: "program in Starlark: admit(…) returns True, False, \"admit\", \"reject\" or \"delay\"",
			Value: kind{params: []Param{delayParam}, composed: true, build: newAdmitProgram}},
		{Name: "tree", Doc: "decision tree (root) whose leaves are verdicts or policies",
			Value: kind{params: []Param{delayParam}, composed: true, build: newAdmitTree}},
		{Name: "chain",
			Doc:   "policies in turn (of); the first that does not admit decides, without refunds by earlier ones",
			Value: kind{composed: true, build: newChain}},
		{Name: "reject-all", Doc: "rejects every request", Value: kind{pathological: true, build: newRejectAll}},
	}
}

// verdict admits if ok, else rejects.
func verdict(ok bool) Verdict {
	if ok {
		return Verdict{Action: Admit}
	}
	return Verdict{Action: Reject}
}

// delayParam is a parameter of policies that can delay.
var delayParam = Param{Name: "delay_ms", Kind: Number, Unit: "ms", Min: 1e-3, Max: 1e7, Search: [2]float64{10, 5000},
	Default: 100.0, Doc: "time after which a delayed request is considered again"}

// delay is the verdict of a policy that delays, with its parameter in integer µs, at least 1.
func (b *builder) delay(v values) Verdict {
	b.delays = true
	return Verdict{Action: Delay, DelayUS: max(1, int64(v.number(delayParam.Name)*1000))}
}

type alwaysAdmit struct{ noNeeds }

func newAlwaysAdmit(*builder, *Spec) Admitter { return alwaysAdmit{} }

func (alwaysAdmit) Admit(*View) Verdict { return Verdict{} }
func (a alwaysAdmit) Clone() Admitter   { return a }

// IsAlwaysAdmit reports whether a admits every request.
func IsAlwaysAdmit(a Admitter) bool {
	_, ok := a.(alwaysAdmit)
	return ok
}

type rejectAll struct{ noNeeds }

func newRejectAll(*builder, *Spec) Admitter { return rejectAll{} }

func (rejectAll) Admit(*View) Verdict {
	return Verdict{Action: Reject, Reason: Reason{Quantity: "rejects all"}}
}
func (r rejectAll) Clone() Admitter { return r }

var saturationParams = []Param{
	{Name: "threshold", Kind: Number, Min: 0, Max: 1e6, Search: [2]float64{0.2, 5}, Default: 1.0,
		Doc: "cluster.saturation at and above which the sheddable tier is rejected"},
}

type saturation struct {
	needs
	threshold float64
}

func newSaturation(b *builder, s *Spec) Admitter {
	return saturation{needs(NeedRequest | NeedQueueDepth | needKVUtil),
		b.params(s, saturationParams).number("threshold")}
}

func (s saturation) Admit(v *View) Verdict {
	if v.Request.Tier != Sheddable {
		return exempt("not of the sheddable tier")
	}
	return admitBelow("saturation", v.Saturation(), s.threshold)
}

func (s saturation) Clone() Admitter { return s }
