package attribution

import (
	"fmt"

	"blis/pkg/llmtext"
	"blis/pkg/stream"
)

// Conditions about replicas that fail, come and go, and about clients that send requests again.

var replicaLost = Condition{Name: "replica_lost", Component: engineComponent, rank: rankCapacity, parts: anyPart,
	Doc: "ended, or was sent elsewhere, because its replica failed or no replica was left; or came while at least a" +
		" fifth of the replicas of its deployment had failed and were not back",
	cause: func(p *Pattern) string {
		ended := 0
		for _, r := range p.losing {
			if r.evidence.lostReplica {
				ended++
			}
		}
		down := p.mean(func(r *request) float64 { return float64(r.evidence.fleet.down) })
		return fmt.Sprintf("%d ended or moved with their replica; %s were down, %s served (means)", ended, down,
			p.mean(serving))
	},
	Hint:       "notice failures sooner (control_plane.health_check), so that the router stops sending requests there",
	change:     (*proposal).soonerHealthCheck,
	others:     []remedy{{"have replicas to spare", (*proposal).moreReplicas}},
	isAbsolute: true,
	holds: when(func(r *request) bool {
		e, n := &r.evidence, r.evidence.fleet
		return e.lostReplica && !e.removedReplica || n.down > 0 && 5*n.down >= n.down+n.serving
	})}

var scaledIn = Condition{Name: "scaled_in", Component: scalingComponent, rank: rankCapacity, parts: anyPart,
	Doc: "ended, or was sent elsewhere, because the auto-scaler removed its replica before it was done",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("the auto-scaler removed their replica after %s ms, with %s of %s output tokens generated"+
			" (means)", p.mean(lifetimeMS), p.mean(generatedTokens), p.mean(outputTokens))
	},
	Hint:       "keep the replicas that the load needs (min_replicas)",
	change:     (*proposal).keepReplicas,
	others:     []remedy{{"let replicas complete their requests before they go (drain)", (*proposal).waitForDrain}},
	isAbsolute: true,
	holds: when(func(r *request) bool {
		return r.evidence.lostReplica && r.evidence.removedReplica
	})}

var coldStart = Condition{Name: "cold_start", Component: scalingComponent, rank: rankCapacity, parts: anyPart,
	Doc: "arrived while its deployment, which scales, had no replica that served and none that had failed; at least" +
		" half of the time to its first token, or of a lost request's time, passed in flow control",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("arrived while no replica served, and waited %s of %s ms to the first token for one to"+
			" start (means)", p.mean(flowMS), p.mean(ttftMS))
	},
	Hint:       "keep the replicas that the load needs (min_replicas), or start them sooner",
	change:     (*proposal).keepReplicas,
	others:     []remedy{{"keep one replica", (*proposal).keepOne}},
	isAbsolute: true,
	holds: when(func(r *request) bool {
		return r.evidence.noneServed && r.takesHalf(r.split()[PartFlow])
	})}

var scaledInEarly = Condition{Name: "scaled_in_early", Component: scalingComponent, rank: rankCapacity,
	parts: afterAdmitted,
	Doc: "came when at least a quarter fewer replicas served than at some time in the last 120 s, and than later; the" +
		" auto-scaler had removed them, none had failed",
	cause: func(p *Pattern) string {
		before := p.mean(func(r *request) float64 { return float64(r.evidence.servedBefore) })
		return fmt.Sprintf("%s replicas served, %s at most in the last 120 s: the auto-scaler had removed the others"+
			" (means)", p.mean(serving), before)
	},
	Hint:   "keep replicas for longer (stabilization.down), or those that the load needs (min_replicas)",
	change: (*proposal).keepLonger,
	others: []remedy{{"keep the replicas that the load needs (min_replicas)", (*proposal).keepReplicas}},
	holds: func(a *Analyzer, r *request) bool {
		n := r.evidence.fleet
		return a.topology.deploymentOf(r.replica).scales() && n.down == 0 &&
			4*r.evidence.servedBefore >= 5*n.serving && 4*n.later >= 5*n.serving && n.serving > 0
	}}

var scaledLate = Condition{Name: "scaled_late", Component: scalingComponent, rank: rankCapacity, parts: afterAdmitted,
	Doc: "came to a deployment that scales while replicas were being started, at least a quarter as many as served," +
		" or while at least a quarter more served later in the run, or when every queue held at least 8 requests, or" +
		" every replica 32 or too many for its TPOT target, and more replicas could be started",
	cause: func(p *Pattern) string {
		later := 0.0
		for _, r := range p.losing {
			later = max(later, float64(r.evidence.fleet.later))
		}
		starting := func(r *request) float64 { return float64(r.evidence.fleet.starting) }
		if mean(p.losing, starting) == 0 && later <= mean(p.losing, serving) {
			return fmt.Sprintf("%s replicas served, and the auto-scaler (%s) started none; the emptiest had %s"+
				" requests"+
				" (means)", p.mean(serving), p.Policy, p.mean(fewestResident))
		}
		return fmt.Sprintf("%s replicas served, %s were starting (means); at most %s later", p.mean(serving),
			p.mean(starting), llmtext.Number(later))
	},
	Hint:   "begin with the replicas that the load needs (min_replicas), or start them sooner",
	change: (*proposal).keepReplicas,
	others: append([]remedy{
		{"look more often, and start at once what the policy wants", (*proposal).sooner},
		{"have the auto-scaler want more replicas for this load (its target)", (*proposal).lowerTarget},
		{"scale by the requests that wait", (*proposal).scaleByQueues}}, shorterQueues...),
	holds: func(a *Analyzer, r *request) bool {
		n := r.evidence.fleet
		late := n.starting > 0 && 4*n.starting >= n.serving || n.later > n.serving && 4*n.later >= 5*n.serving
		most := a.topology.deploymentOf(r.replica).MaxReplicas
		isFull := r.allReplicasFull() || a.tooManyEverywhere(r)
		return most > 0 && (late || isFull && int64(n.serving+n.starting) < most) &&
			!scaledInEarly.holds(a, r)
	}}

var scaleLimit = Condition{Name: "scale_limit", Component: scalingComponent, rank: rankOverload, parts: afterAdmitted,
	Doc: "routed when every queue held at least 8 requests, or every replica 32 or too many for its TPOT target, and" +
		" the deployment had as many replicas as it may have (max_replicas)",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("all %s replicas that the auto-scaler may have served%s (means)", p.mean(serving),
			p.shortestQueueText())
	},
	Hint:   "raise max_replicas",
	change: (*proposal).moreReplicas,
	others: shorterQueues,
	holds: func(a *Analyzer, r *request) bool {
		n, most := r.evidence.fleet, a.topology.deploymentOf(r.replica).MaxReplicas
		isFull := r.allReplicasFull() || a.tooManyEverywhere(r)
		return most > 0 && isFull && int64(n.serving+n.starting) >= most
	}}

// allReplicasFull reports whether every queue held many requests when r was routed, or every replica did.
func (r *request) allReplicasFull() bool {
	return r.contention.shortest >= fullQueue || r.contention.fewestResident >= fullReplica
}

var warmingReplica = Condition{Name: "warming_replica", Component: engineComponent, rank: rankCapacity,
	parts: afterAdmitted,
	Doc:   "sent to a replica that warmed up",
	cause: func(p *Pattern) string {
		return fmt.Sprintf("sent to replicas that warmed up, whose steps are slower then; TPOT %s ms (mean)",
			p.mean(p.run.tpotMS))
	},
	Hint:   "warm up faster, or send requests only to warm replicas where these have room (route_while_warming: false)",
	change: (*proposal).routeToWarm,
	others: []remedy{{"keep the replicas that the load needs (min_replicas)", (*proposal).keepReplicas}},
	holds:  when(func(r *request) bool { return r.evidence.warming })}

var retryLoad = Condition{Name: "retry_load", Component: workloadComponent, rank: rankCapacity, parts: anyPart,
	Doc: "waited at least 100 ms or timed out, while at least 30 % of the requests that were sent to replicas in the" +
		" last 10 s were retries after a time-out",
	cause: func(p *Pattern) string {
		share := mean(p.losing, func(r *request) float64 { return r.evidence.retryShare })
		return fmt.Sprintf("%s of the requests sent in the last 10 s were retries after time-outs (mean): the same"+
			" work again", llmtext.Percent(share))
	},
	Hint: "have clients wait longer before they retry, and less often; reject what would time out anyway",
	others: append([]remedy{{"reject what would time out anyway (predictive-slo)", (*proposal).rejectLate}},
		shorterQueues...),
	holds: func(a *Analyzer, r *request) bool {
		timedOut := a.names.list[r.labels.state] == stream.StateTimedOut
		return r.evidence.retryShare >= 0.3 && (timedOut || r.waitedLong())
	}}

func serving(r *request) float64 { return float64(r.evidence.fleet.serving) }
