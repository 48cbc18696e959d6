package attribution

import (
	"fmt"

	"blis/pkg/llmtext"
)

// Thresholds of conditions about admission.
const (
	fullQueue     = 8  // in every queue: overload
	fullReplica   = 32 // requests at every replica: saturated
	maxRuleLength = 60
	maxNameLength = 24
)

// alwaysAdmit is the policy that admits every request.
const alwaysAdmit = "always-admit"

var rejected = Condition{Name: "rejected", Component: admissionComponent, rank: rankMechanism, parts: inAdmission,
	Doc:    "rejected by admission",
	cause:  always("rejected by admission"),
	Hint:   "admit more, or reject classes that can wait first",
	change: (*proposal).admitMore,
	holds:  when(func(r *request) bool { return r.admission.rejected })}

var delayed = Condition{Name: "delayed", Component: admissionComponent, rank: rankMechanism, parts: inAdmission,
	Doc: "delayed by admission; most time lost there",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("delayed %s times by admission, %s ms in total (means)",
			p.mean(delays), p.mean(admissionMS))
	},
	Hint:       "delay fewer requests, for a shorter time, or only classes that can wait",
	change:     (*proposal).admitMore,
	isAbsolute: true,
	holds:      when(func(r *request) bool { return r.delays > 0 })}

var behindTenant = Condition{Name: "behind_tenant", Component: admissionComponent, rank: rankCapacity,
	parts: afterAdmitted,
	Doc: "at least 2000 tokens of others started during its wait, at least 30 % of them from the tenant with the most" +
		" work: at least 30 %, and three times that of any other, twice its share of the requests, or 1.4 times that" +
		" and 1.25 times an even share; less than 25 % of them joined the queue later; without these it would have" +
		" met its TTFT target (or waited half as long); no queue was much shorter; other tenants miss their targets" +
		" at least half as often as that one; or missed its TPOT target, which it would have met without that" +
		" tenant's requests in its batches",
	cause: func(p *Pattern) string {
		if crowded := mean(p.losing, heavyConcurrent); 2*crowded >= mean(p.losing, concurrent) &&
			mean(p.losing, heavyTenantAhead) < manyTokensAhead {
			return fmt.Sprintf("decoded with %s requests in the batch, %s of them from tenant %s (means)",
				p.mean(concurrent), llmtext.Number(crowded), llmtext.Short(p.Value, maxNameLength))
		}
		return startedMeanwhile(p, heavyTenantAhead, "tenant "+llmtext.Short(p.Value, maxNameLength)) + p.ofLowerClass()
	},
	Hint: "serve the other tenants first (tenant-priority, or slo-based if their class is higher), or limit that" +
		" tenant (rate-limit, tenant-quota)",
	change: (*proposal).boundTenant,
	others: append(shorterQueues[:len(shorterQueues):len(shorterQueues)],
		remedy{"limit that tenant to what the others leave (rate-limit)", (*proposal).limitTenant},
		remedy{"bound that tenant's share of the requests in flight (tenant-quota)", (*proposal).boundShare},
		remedy{"send that tenant to replicas of its own (pools)", (*proposal).heavyTenantApart},
		remedy{"bound each tenant's rate of prompt tokens (token-bucket)", (*proposal).equalRates}),
	holds: func(a *Analyzer, r *request) bool {
		cameFirst := 4*r.evidence.overtaken < r.contention.ahead.total
		return a.stats.heavyTenant != missing && a.stats.othersLose && !r.longerQueue() && cameFirst &&
			r.mostlyBehind(r.contention.ahead.heavyTenant) && a.mattersToWait(r, r.contention.ahead.heavyTenant) ||
			a.crowdedByTenant(r)
	},
	value:     func(a *Analyzer, _ *request) int32 { return a.stats.heavyTenant },
	valueName: nameOf}

// ofLowerClass says that most of what started while the losing requests waited has a lower priority and is not served
// later, "" if that is not so.
func (p *Pattern) ofLowerClass() string {
	if 2*mean(p.losing, lowerPriorityAhead) < mean(p.losing, allAhead) {
		return ""
	}
	return fmt.Sprintf("; %s of them of classes with a lower priority, which the scheduler %s does not serve later",
		p.mean(lowerPriorityAhead), p.run.topology.policy("scheduler"))
}

func heavyConcurrent(r *request) float64 { return r.contention.heavyTenant }

// crowdedByTenant reports whether r, of another tenant, missed its TPOT target and would have met it without the
// requests of the heavy tenant that decoded with it, which were at least half of its batches.
func (a *Analyzer) crowdedByTenant(r *request) bool {
	c, tenant := &r.contention, a.stats.heavyTenant
	if tenant == missing || r.labels.tenant == tenant || r.replica == missing || 2*c.heavyTenant < c.concurrent ||
		r.verdict.missed != missedTPOT || !a.stats.othersLose {
		return false
	}
	steps, known := a.stats.steps[a.topology.deploymentOf(r.replica).ID]
	if slowed, tooMany := a.decodesAmidPrompts(r); slowed && !tooMany {
		return false // prompts that come evenly would not slow it down as much
	}
	prompts := float64(steps.token*a.stats.heavyPrompts*float64(c.interfering)) / float64(max(1, r.tokens.output-1))
	return known && a.tpotMS(r)-(float64(steps.sequence*c.heavyTenant)+prompts)/1000 <= a.targetTPOT(r)
}

var overload = Condition{Name: "overload", Component: admissionComponent, rank: rankOverload, parts: afterAdmitted,
	Doc: "routed when every queue held at least 8 requests",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("routed when the shortest queue%s held %s requests%s; outputs of %s tokens"+
			" (means)", p.where(),
			p.mean(shortestQueue), p.rise(), p.mean(outputTokens)) + admissionNote(p)
	},
	Hint:   "reject or delay what can wait before queues grow, or add replicas",
	change: (*proposal).moreReplicas,
	others: append([]remedy{moveReplicas, shardOtherwise}, shorterQueues...),
	took:   inPart(PartQueue),
	holds:  when(func(r *request) bool { return r.contention.shortest >= fullQueue })}

var replicasSaturated = Condition{Name: "replicas_saturated", Component: admissionComponent, rank: rankOverload,
	parts: inDecode,
	Doc: "routed when every replica had at least 32 requests, or about as many as its own one, and would have met" +
		" its TPOT target without the others in its batches, 8 or more; most time lost in decode",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("routed when the emptiest replica%s had %s requests%s; outputs of %s tokens"+
			" (means)", p.where(),
			p.mean(fewestResident), p.rise(), p.mean(outputTokens)) + p.stages() + admissionNote(p)
	},
	Hint:   "reject or delay what can wait, bound the batch (max_num_seqs), or add replicas",
	change: (*proposal).moreOrOtherReplicas,
	others: append([]remedy{moveReplicas, shardOtherwise, {"use a GPU with more memory" +
		" bandwidth", (*proposal).fasterGPU},
		{"bound the batch (max_num_seqs): requests wait for a slot" +
			" instead", (*proposal).fewerSlots}},
		shorterQueues...),
	holds: func(a *Analyzer, r *request) bool {
		return r.contention.fewestResident >= fullReplica || a.tooManyEverywhere(r)
	}}

// tooManyEverywhere reports whether r missed its TPOT target, would have met it without the requests and prompts in its
// batches but not without the prompts alone, and no replica had clearly fewer requests when it was routed.
func (a *Analyzer) tooManyEverywhere(r *request) bool {
	c := &r.contention
	if r.verdict.missed&missedTPOT == 0 || r.replica == missing || c.concurrent < fullQueue ||
		float64(c.resident) > float64(blindFactor*float64(c.fewestResident))+blindBy {
		return false
	}
	if slowed, _ := a.decodesAmidPrompts(r); slowed {
		return false
	}
	steps, known := a.stats.steps[a.topology.deploymentOf(r.replica).ID]
	tokens := float64(max(1, r.tokens.output-1))
	others := float64(steps.sequence*(c.concurrent-1)) + float64(steps.token*float64(c.interfering))/tokens
	return known && a.tpotMS(r)-others/1000 <= a.targetTPOT(r)
}

// rise says how much faster than in the whole run requests arrived, "" if they hardly did.
func (p *Pattern) rise() string {
	peak := func(r *request) float64 { return r.evidence.peak }
	if mean(p.losing, peak) < minRise {
		return ""
	}
	return fmt.Sprintf(", while requests arrived at %s times the mean rate", p.mean(peak))
}

// stages says through how many pipeline stages each token of the losing requests passed, "" for one.
func (p *Pattern) stages() string {
	if len(p.losing) == 0 {
		return ""
	}
	n := p.run.topology.deploymentOf(p.losing[0].replica).Engine.PipelineParallel
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("; each token passes %d pipeline stages (pipeline_parallel_size)", n)
}

// where names the deployment of all losing requests, "" if there is only one.
func (p *Pattern) where() string {
	t := &p.run.topology
	if len(t.Deployments) < 2 || len(p.losing) == 0 || p.losing[0].replica == missing {
		return ""
	}
	id := t.replicas[p.losing[0].replica].deployment
	for _, r := range p.losing {
		if r.replica == missing || t.replicas[r.replica].deployment != id {
			return ""
		}
	}
	return " of deployment " + id
}

// minRise times the mean rate is clearly more.
const minRise = 1.5

// admissionNote says what admission did against an overload.
func admissionNote(p *Pattern) string {
	switch counts := p.Admission; {
	case p.NeverFired != nil:
		return fmt.Sprintf("; admission rule %s NEVER fired, 0 of %d", llmtext.Short(p.NeverFired.Rule, maxRuleLength),
			p.NeverFired.Evaluated)
	case counts != nil && counts.Rejected+counts.Delays == 0:
		return fmt.Sprintf("; admission NEVER rejected or delayed, 0 of %d", counts.Decisions)
	case counts != nil:
		return fmt.Sprintf("; admission rejected %d and delayed %d of %d", counts.Rejected, counts.Delays,
			counts.Decisions)
	case p.Policy == alwaysAdmit:
		return "; admission admits all"
	}
	return ""
}
