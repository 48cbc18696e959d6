package metrics

import (
	"maps"

	"blis/pkg/stat"
)

// Raw returns the metrics of everything counted so far.
func (a *Accumulator) Raw() *Raw {
	r := &Raw{FromUS: a.from, UntilUS: a.until}
	us := elapsed(a.from, a.until)
	if us > 0 {
		r.DurationS = float64(us) / 1e6
	}
	var all totals
	for i := range a.totals {
		all.add(&a.totals[i])
	}
	r.Group = *all.group(us)
	groupings := []*grouping{
		a.groupBy("cls", us, func(k *key) string { return k.class }),
		a.groupBy("tenants", us, func(k *key) string { return k.tenant }),
		a.groupBy("models", us, func(k *key) string { return k.model }),
	}
	if a.isRecording {
		for _, g := range allGroups(&r.Group, groupings) {
			g.clearUnrecorded(&all)
		}
	}
	a.fillDistributions(&r.Group, &all, groupings)
	if r.ITL = histogramDistribution(&a.gaps, 1000); r.ITL != nil {
		r.ITL.Coverage = all.gapCoverage(a.gaps.N())
	}
	if len(a.reasons) > 0 {
		r.Reasons = maps.Clone(a.reasons)
	}
	r.Cls, r.Tenants, r.Models = groupings[0].tree(), groupings[1].tree(), groupings[2].tree()
	r.Fairness = fairness(groupings[1])
	a.addReplicas(r, &all)
	r.Control, r.PD = a.control, a.pd.tree(a.replicas, &a.spilled)
	r.EncodePool = a.encoders.tree(&a.spilled)
	if a.hasPrefixPrediction || a.shadow.ExpectedTokens > 0 {
		r.Shadow = &a.shadow
	}
	r.Sessions, r.Regret, r.Anomalies = a.sessions.tree(&a.spilled), a.regret.tree(&a.prefillRegret), a.anomalies
	r.Warnings = warnings(r, groupings)
	return r
}

// add adds the totals of another group.
func (t *totals) add(o *totals) {
	r, s := &t.requests, &o.requests
	r.Offered += s.Offered
	r.Completed += s.Completed
	r.Rejected += s.Rejected
	r.TimedOut += s.TimedOut
	r.Failed += s.Failed
	r.Unfinished += s.Unfinished
	r.NotIssued += s.NotIssued
	r.Retries += s.Retries
	r.ServerRejected += s.ServerRejected
	t.met += o.met
	t.withTargets += o.withTargets
	t.admitted += o.admitted
	t.scheduled += o.scheduled
	t.promptTokens += o.promptTokens
	t.cachedTokens += o.cachedTokens
	t.preemptions += o.preemptions
	t.completedInput += o.completedInput
	t.metTokens += o.metTokens
	t.completedOutput += o.completedOutput
	t.requestedOutput += o.requestedOutput
	t.multiToken += o.multiToken
	t.notIssuedWithTargets += o.notIssuedWithTargets
}

// group returns the metrics of a group except its distributions. us is the duration.
func (t *totals) group(us int64) *Group {
	admitted, preemptions := t.admitted, t.preemptions
	g := &Group{
		Requests:       t.requests,
		AdmissionRate:  ratio(admitted, t.requests.Offered),
		KV:             KV{PrefixHitRatio: ratio(t.cachedTokens, t.promptTokens), Preemptions: &preemptions},
		PreemptionRate: ratio(preemptions, t.scheduled),
	}
	g.Requests.Admitted = &admitted
	perSecond := func(n int64) float64 { return float64(n) * 1e6 / float64(us) }
	if us > 0 {
		g.Throughput = &Throughput{perSecond(t.requests.Completed), perSecond(t.completedOutput),
			perSecond(t.completedInput + t.completedOutput)}
	}
	if all := t.withTargets + t.notIssuedWithTargets; all > 0 {
		g.Goodput = &Goodput{Ratio: float64(t.met) / float64(all), Met: t.met, Offered: t.withTargets,
			NotIssued: t.notIssuedWithTargets}
		if us > 0 {
			rps := perSecond(t.met)
			g.Goodput.RPS = &rps
		}
	}
	return g
}

// clearUnrecorded removes what a recording with these totals does not contain.
func (g *Group) clearUnrecorded(all *totals) {
	if all.admitted == 0 {
		g.Requests.Admitted, g.AdmissionRate = nil, nil
	}
	if all.cachedTokens == 0 {
		g.KV.PrefixHitRatio = nil
	}
	if all.preemptions == 0 {
		g.KV.Preemptions, g.PreemptionRate = nil, nil
	}
}

// gapCoverage returns n as a share of all inter-token gaps. Calls that were not issued
// count with as many gaps as the others.
func (t *totals) gapCoverage(n int64) *float64 {
	share, offered := ratio(n, t.requestedOutput-t.requests.Offered),
		ratio(t.requests.Offered, t.requests.Offered+t.requests.NotIssued)
	if share == nil || offered == nil {
		return nil
	}
	covered := min(*share, 1) * *offered
	return &covered
}

// ratio returns a/b, nil if b is not positive.
func ratio(a, b int64) *float64 {
	if b <= 0 {
		return nil
	}
	q := float64(a) / float64(b)
	return &q
}

// fairness returns the fairness over tenants, in the order of their names.
func fairness(tenants *grouping) *Fairness {
	var shares []float64
	for i := range tenants.totals {
		if t := &tenants.totals[i]; t.requestedOutput > 0 { // otherwise no call of the tenant was issued
			shares = append(shares, float64(t.completedOutput)/float64(t.requestedOutput))
		}
	}
	jain, ok := stat.Jain(shares)
	if !ok {
		return nil
	}
	return &Fairness{jain}
}

// addReplicas adds what only replicas report: their own branch, cost and cache occupancy.
func (a *Accumulator) addReplicas(r *Raw, all *totals) {
	if len(a.replicas) == 0 {
		return
	}
	var up, busy, gpu, price, blockUS, capacity, peak float64
	for i := range a.replicas {
		t := &a.replicas[i]
		x := t.tree()
		r.Replicas = append(r.Replicas, x)
		up += float64(t.UpUS)
		busy += float64(t.BusyUS)
		gpu += float64(float64(t.UpUS) * float64(t.GPUs))
		price += t.price()
		blockUS += t.BlockUS
		capacity += float64(float64(t.Blocks) * float64(t.UpUS))
		if x.KVUtilMax != nil {
			peak = max(peak, *x.KVUtilMax)
		}
	}
	replicaUS := up
	for i := range a.encoders.replicas {
		t := a.encoders.replicas[i].gpuTime()
		replicaUS += float64(t.UpUS)
		gpu += float64(float64(t.UpUS) * float64(t.GPUs))
		price += t.price()
	}
	r.KV.Tiers, r.KV.ThrashingRate, r.SpecDecode = tiers(a.replicas), thrashingRate(a.replicas), specDecode(a.replicas)
	r.LoRA, r.Encoder, r.DP = loras(a.replicas), encoders(a.replicas), lockstep(a.replicas)
	r.StructuredOutput = structuredOutput(a.replicas)
	r.Pipeline = pipelines(a.replicas)
	r.Cost = &Cost{GPUS: gpu / 1e6, ReplicaS: replicaUS / 1e6}
	if price > 0 {
		r.Cost.Total = &price
	}
	r.Scale = a.scale.averages(up, busy, elapsed(a.from, a.until))
	if a.scale != nil {
		r.Scale.addWait(a.capacityWaitUS, all.requests.Offered)
	}
	if a.scale != nil || a.metByDeployment != nil {
		r.Cost.PerMillionWithinSLO, r.Cost.TotalPerMillionWithinSLO = withinSLO(gpu, price, all.metTokens)
	}
	if a.metByDeployment != nil {
		r.Cost.Deployments = a.costs()
	}
	r.Energy = a.energyOfAll(all.completedOutput)
	r.Failures = a.failures
	if tokens := all.completedInput + all.completedOutput; tokens > 0 {
		perToken := gpu / float64(tokens) // µs per token are s per million tokens
		r.Cost.PerMillion = &perToken
	}
	if capacity > 0 {
		mean := blockUS / capacity
		r.KV.UtilMean, r.KV.UtilMax = &mean, &peak
	}
}

// specDecode adds up the speculative decoding of replicas; nil if they have verified nothing.
func specDecode(replicas []ReplicaTotals) *SpecDecode {
	var d SpecDecode
	var steps int64
	for i := range replicas {
		t := &replicas[i]
		steps += t.Verifications
		d.DraftTokens, d.AcceptedTokens = d.DraftTokens+t.DraftTokens, d.AcceptedTokens+t.AcceptedTokens
	}
	if steps == 0 {
		return nil
	}
	d.AcceptanceRate = float64(d.AcceptedTokens) / float64(d.DraftTokens)
	d.MeanAcceptanceLength = 1 + float64(d.AcceptedTokens)/float64(steps)
	return &d
}

// loras adds up the adapters that replicas loaded; nil if they loaded none.
func loras(replicas []ReplicaTotals) *LoRA {
	var l LoRA
	var us int64
	for i := range replicas {
		t := &replicas[i]
		l.Loads, l.Copies, us = l.Loads+t.AdapterLoads, l.Copies+t.AdapterCopies, us+t.AdapterUS
	}
	if l.Copies == 0 {
		return nil
	}
	l.LoadMS = float64(us) / 1000
	return &l
}

// structuredOutput adds up what grammars took; nil if no request had one.
func structuredOutput(replicas []ReplicaTotals) *StructuredOutput {
	var s StructuredOutput
	var wait, mask, steps int64
	for i := range replicas {
		t := &replicas[i]
		s.Requests, s.Compilations = s.Requests+t.GrammarRequests, s.Compilations+t.Compilations
		s.Waits, s.Masks = s.Waits+t.GrammarWaits, s.Masks+t.Masks
		wait, mask, steps = wait+t.GrammarWaitUS, mask+t.MaskUS, steps+t.MaskWaitUS
	}
	if s.Requests == 0 {
		return nil
	}
	s.WaitMS, s.MaskMS, s.StepWaitMS = float64(wait)/1000, float64(mask)/1000, float64(steps)/1000
	return &s
}

// pipelines adds up the times of pipeline stages; nil if none computed.
func pipelines(replicas []ReplicaTotals) *Pipeline {
	var computed, busy int64
	for i := range replicas {
		t := &replicas[i]
		computed += t.StageUS
		busy += t.Stages * t.BusyUS
	}
	if computed == 0 || busy == 0 {
		return nil
	}
	return &Pipeline{StageMS: float64(computed) / 1000, BubbleShare: max(0, 1-float64(computed)/float64(busy))}
}

// encoders adds up what replicas encoded; nil if no item ran.
func encoders(replicas []ReplicaTotals) *Encoder {
	var e Encoder
	var us int64
	for i := range replicas {
		t := &replicas[i]
		e.Items, e.Tokens, us = e.Items+t.EncodedItems, e.Tokens+t.EncodedTokens, us+t.EncoderUS
		e.CacheHits, e.PrefixHits, e.Cuts = e.CacheHits+t.EncoderHits, e.PrefixHits+t.PrefixItems, e.Cuts+t.EncoderCuts
		e.Loaded += t.LoadedItems
	}
	if e.Items+e.Loaded+e.CacheHits+e.PrefixHits == 0 {
		return nil
	}
	if n := e.Items + e.Loaded + e.CacheHits; n > 0 {
		e.CacheHitRatio = float64(e.CacheHits) / float64(n)
	}
	e.MS = float64(us) / 1000
	return &e
}

// addWait adds the mean wait for capacity of n requests, which is us µs in all.
func (s *Scale) addWait(us, n int64) {
	if n > 0 {
		mean := float64(us) / float64(n) / 1000
		s.WaitForCapacityMS = &mean
	}
}

// price is the price of a replica over its lifetime.
func (t *ReplicaTotals) price() float64 {
	return float64(float64(t.UpUS*t.GPUs) / 3.6e9 * t.PerGPUHour)
}

// costs are the costs of all deployments.
func (a *Accumulator) costs() map[string]*DeploymentCost {
	all := map[string]*DeploymentCost{}
	add := func(t *ReplicaTotals) {
		c := all[t.Deployment]
		if c == nil {
			c = &DeploymentCost{}
			all[t.Deployment] = c
		}
		c.ReplicaS += float64(t.UpUS) // µs so far
		c.GPUS += float64(t.UpUS * t.GPUs)
		if t.PerGPUHour > 0 {
			total := t.price()
			if c.Total != nil {
				total += *c.Total
			}
			c.Total = &total
		}
	}
	for i := range a.replicas {
		add(&a.replicas[i])
	}
	for i := range a.encoders.replicas {
		add(a.encoders.replicas[i].gpuTime())
	}
	for id, c := range all {
		price := 0.0
		if c.Total != nil {
			price = *c.Total
		}
		c.PerMillionWithinSLO, c.TotalPerMillionWithinSLO = withinSLO(c.GPUS, price, a.metByDeployment[id])
		c.ReplicaS, c.GPUS = c.ReplicaS/1e6, c.GPUS/1e6
	}
	return all
}

// withinSLO is the GPU time in s, of which gpuUS µs are known, and the price per million of these tokens.
func withinSLO(gpuUS, price float64, tokens int64) (gpuS, total *float64) {
	if tokens == 0 {
		return nil, nil
	}
	perMillion := gpuUS / float64(tokens) // µs per token are s per million tokens
	if price > 0 {
		perMillion := price / float64(tokens) * 1e6
		total = &perMillion
	}
	return &perMillion, total
}

// averages returns s with the averages of a run of us µs, in which replicas were up and busy for these times; nil if
// s is.
func (s *Scale) averages(up, busy float64, us int64) *Scale {
	if s == nil || us <= 0 || up <= 0 {
		return s
	}
	x, average, efficiency := *s, up/float64(us), busy/up
	x.AvgReplicas, x.Efficiency = &average, &efficiency
	return &x
}

func (t *ReplicaTotals) tree() Replica {
	var mean *float64
	if capacity := float64(t.Blocks) * float64(t.UpUS); capacity > 0 {
		share := t.BlockUS / capacity
		mean = &share
	}
	return Replica{
		Deployment: t.Deployment, Index: t.Index, Requests: t.Requests, Completed: t.Completed,
		Tokens: t.PrefillTokens + t.DecodeTokens, PrefillTokens: t.PrefillTokens, DecodeTokens: t.DecodeTokens,
		PrefixHitRatio: ratio(t.CachedTokens, t.QueriedTokens), Preemptions: t.Preemptions,
		PeakQueue: t.PeakQueue, PeakBatch: t.PeakBatch, Utilization: ratio(t.BusyUS, t.UpUS),
		KVUtilMean: mean, KVUtilMax: ratio(t.PeakBlocks, t.Blocks),
	}
}
