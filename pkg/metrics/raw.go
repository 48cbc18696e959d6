package metrics

import (
	"maps"

	"blis/pkg/stat"
)

// Raw returns the metrics of what was counted so far.
func (a *Accumulator) Raw() *Raw {
	r := &Raw{FromUS: a.from, UntilUS: a.until}
	us := span(a.from, a.until)
	if us > 0 {
		r.DurationS = float64(us) / 1e6
	}
	var all totals
	for i := range a.totals {
		all.add(&a.totals[i])
	}
	r.Group = *all.group(us)
	parts := []*part{
		a.part("cls", us, func(k *key) string { return k.class }),
		a.part("tenant", us, func(k *key) string { return k.tenant }),
		a.part("model", us, func(k *key) string { return k.model }),
	}
	if a.recorded {
		for _, g := range groupsOf(&r.Group, parts) {
			g.unsay(&all)
		}
	}
	a.distribute(&r.Group, &all, parts)
	if r.ITL = ofGaps(&a.gaps); r.ITL != nil {
		r.ITL.Coverage = all.gapsSeen(a.gaps.N())
	}
	if len(a.reasons) > 0 {
		r.Reasons = maps.Clone(a.reasons)
	}
	r.Cls, r.Tenant, r.Model = parts[0].named(), parts[1].named(), parts[2].named()
	r.Fairness = fairness(parts[1])
	a.addReplicas(r, &all)
	r.Control = a.control
	if a.expects || a.shadow.ExpectedTokens > 0 {
		r.Shadow = &a.shadow
	}
	r.Sessions, r.Regret, r.Anomalies = a.sessions.tree(), a.regret.tree(), a.anomalies
	r.Warnings = warnings(r, parts)
	return r
}

// add adds another group's totals.
func (t *totals) add(o *totals) {
	r, s := &t.requests, &o.requests
	r.Offered += s.Offered
	r.Completed += s.Completed
	r.Rejected += s.Rejected
	r.TimedOut += s.TimedOut
	r.Failed += s.Failed
	r.Unfinished += s.Unfinished
	r.Lost += s.Lost
	t.met += o.met
	t.judged += o.judged
	t.admitted += o.admitted
	t.scheduled += o.scheduled
	t.prompt += o.prompt
	t.cached += o.cached
	t.preemptions += o.preemptions
	t.doneInput += o.doneInput
	t.doneOutput += o.doneOutput
	t.askedOutput += o.askedOutput
	t.several += o.several
	t.missing += o.missing
}

// group returns all of a group that is no distribution. us is the duration.
func (t *totals) group(us int64) *Group {
	admitted, preemptions := t.admitted, t.preemptions
	g := &Group{
		Requests:       t.requests,
		AdmissionRate:  ratio(admitted, t.requests.Offered),
		KV:             KV{PrefixHitRatio: ratio(t.cached, t.prompt), Preemptions: &preemptions},
		PreemptionRate: ratio(preemptions, t.scheduled),
	}
	g.Requests.Admitted = &admitted
	perSecond := func(n int64) float64 { return float64(n) * 1e6 / float64(us) }
	if us > 0 {
		g.Throughput = &Throughput{perSecond(t.requests.Completed), perSecond(t.doneOutput), perSecond(t.doneInput + t.doneOutput)}
	}
	if all := t.judged + t.missing; all > 0 {
		g.Goodput = &Goodput{Ratio: float64(t.met) / float64(all), Met: t.met, Offered: t.judged, Lost: t.missing}
		if us > 0 {
			rps := perSecond(t.met)
			g.Goodput.RPS = &rps
		}
	}
	return g
}

// unsay takes out what a recording with these totals does not say.
func (g *Group) unsay(all *totals) {
	if all.admitted == 0 {
		g.Requests.Admitted, g.AdmissionRate = nil, nil
	}
	if all.cached == 0 {
		g.KV.PrefixHitRatio = nil
	}
	if all.preemptions == 0 {
		g.KV.Preemptions, g.PreemptionRate = nil, nil
	}
}

// gapsSeen is the share of the gaps between tokens that n are; the requests that are
// lost count as having as many as the others.
func (t *totals) gapsSeen(n int64) *float64 {
	share, offered := ratio(n, t.askedOutput-t.requests.Offered), ratio(t.requests.Offered, t.requests.Offered+t.requests.Lost)
	if share == nil || offered == nil {
		return nil
	}
	covered := min(*share, 1) * *offered
	return &covered
}

// ratio is a/b, nil if that is not defined.
func ratio(a, b int64) *float64 {
	if b <= 0 {
		return nil
	}
	q := float64(a) / float64(b)
	return &q
}

// fairness is that of tenants, in the order of their names.
func fairness(tenants *part) *Fairness {
	var shares []float64
	for i := range tenants.totals {
		if t := &tenants.totals[i]; t.askedOutput > 0 { // else of lost calls alone
			shares = append(shares, float64(t.doneOutput)/float64(t.askedOutput))
		}
	}
	jain, ok := stat.Jain(shares)
	if !ok {
		return nil
	}
	return &Fairness{jain}
}
