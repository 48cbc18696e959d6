package policy

// Admissions are the admission policies.
func Admissions() table[Admitter] {
	return table[Admitter]{
		{Name: "always-admit", Doc: "every request is admitted", Value: policyKind[Admitter]{build: newAlwaysAdmit}},
		{Name: "token-bucket", Doc: "a request takes tokens from a bucket that refills; rejected if there are too few", Value: policyKind[Admitter]{params: tokenBucketParams, build: newTokenBucket}},
		{Name: "rate-limit", Doc: "at most so many requests in a sliding window", Value: policyKind[Admitter]{params: rateLimitParams, build: newRateLimit}},
		{Name: "tenant-quota", Doc: "under load, a tenant above its share of the requests in flight is rejected, its sheddable ones first", Value: policyKind[Admitter]{params: tenantQuotaParams, build: newTenantQuota}},
		{Name: "slo-gated", Doc: "a tier is admitted while the mean queue is shorter than its threshold", Value: policyKind[Admitter]{params: sloGatedParams, build: newSLOGated}},
		{Name: "saturation", Doc: "the sheddable tier is rejected while the cluster is saturated (llm-d)", Value: policyKind[Admitter]{params: saturationParams, build: newSaturation}},
		{Name: "predictive-slo", Doc: "a request is rejected if its time to the first token is estimated above its budget", Value: policyKind[Admitter]{params: predictiveSLOParams, build: newPredictiveSLO}},
		{Name: "expression", Doc: "CEL: admit is true or false, or \"admit\", \"reject\", \"delay\"", Value: policyKind[Admitter]{params: []Param{delayParam}, composed: true, build: newAdmitExpression}},
		{Name: "tree", Doc: "a decision tree (root) with verdicts and policies at its leaves", Value: policyKind[Admitter]{params: []Param{delayParam}, composed: true, build: newAdmitTree}},
		{Name: "chain", Doc: "policies in turn (of); the first that does not admit decides; those before it keep what they took", Value: policyKind[Admitter]{composed: true, build: newChain}},
		{Name: "reject-all", Doc: "every request is rejected", Value: policyKind[Admitter]{pathological: true, build: newRejectAll}},
	}
}

// verdict admits if ok, else rejects.
func verdict(ok bool) Verdict {
	if ok {
		return Verdict{Action: Admit}
	}
	return Verdict{Action: Reject}
}

// delayParam is a parameter of policies that delay.
var delayParam = Param{Name: "delay_ms", Kind: Number, Unit: "ms", Min: 1e-3, Max: 1e7, Search: [2]float64{10, 5000}, Default: 100.0,
	Doc: "after which a delayed request comes again"}

// delay is the verdict of a policy that delays, by its parameter in whole µs, at
// least 1.
func (b *builder) delay(v values) Verdict {
	b.delays = true
	return Verdict{Action: Delay, DelayUS: max(1, int64(v.number(delayParam.Name)*1000))}
}
