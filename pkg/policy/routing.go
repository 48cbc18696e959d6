package policy

// Routers are the routing policies.
func Routers() table[Router] {
	return table[Router]{
		{Name: "round-robin", Doc: "each replica in turn", Value: policyKind[Router]{build: newRoundRobin}},
		{Name: "random", Doc: "any replica", Value: policyKind[Router]{build: newRandom}},
		{Name: "least-loaded", Doc: "fewest requests in flight", Value: policyKind[Router]{params: loadParams, build: newLeastLoaded}},
		{Name: "power-of-two", Doc: "of two random replicas the one with fewer requests in flight", Value: policyKind[Router]{params: loadParams, build: newPowerOfTwo}},
		{Name: "weighted", Doc: "highest weighted sum of scores; a parameter for each scorer is its weight", Value: policyKind[Router]{params: weights(), build: newWeighted}},
		{Name: "prefix-affinity", Doc: "longest prefix the router sent there before, unless that replica is too busy; else least-loaded", Value: policyKind[Router]{params: prefixAffinityParams, build: newPrefixAffinity}},
		{Name: "session-affinity", Doc: "the replica of the session's last request; else least-loaded", Value: policyKind[Router]{build: newSessionAffinity}},
		{Name: "expression", Doc: "CEL: highest score of the candidates for which filter is true, of all if it is for none", Value: policyKind[Router]{composed: true, build: newRouteExpression}},
		{Name: "tree", Doc: "a decision tree (root), with policies at its leaves, or with numbers: each candidate's score", Value: policyKind[Router]{composed: true, build: newRouteTree}},
		{Name: "filter", Doc: "another policy (use) among the candidates for which filter is true, or all if it is for none", Value: policyKind[Router]{composed: true, build: newFilter}},
		{Name: "always-busiest", Doc: "most requests in flight", Value: policyKind[Router]{pathological: true, build: newAlwaysBusiest}},
	}
}

var loadParams = []Param{
	{Name: "load", Kind: Choose, Choices: []string{"inflight", "snapshot"}, Default: "inflight",
		Doc: "what is compared: the router's own count of requests in flight, or what replicas said of themselves (running and queued)"},
}

// load is what replicas are compared by.
type load struct {
	reads
	snapshot bool
}

func newLoad(b *builder, s *Spec) load {
	if b.params(s, loadParams).choice("load") == "snapshot" {
		return load{reads(NeedQueueDepth | NeedRunning), true}
	}
	return load{}
}

func (l *load) of(r *Replica) int32 {
	if l.snapshot {
		return r.Running + r.QueueDepth
	}
	return r.Inflight
}

// least returns the candidate with the least load.
func (l *load) least(v *View) Choice {
	best, least := 0, l.of(&v.Replicas[0])
	for i := range v.Replicas {
		x := l.of(&v.Replicas[i])
		if x < least {
			best, least = i, x
		}
		v.Account.Load(i, float64(x))
	}
	return Choice{Candidate: best, Score: float64(least), Why: "least load"}
}
