package attribution

import (
	"cmp"
	"slices"
	"strings"

	"blis/pkg/metrics"
)

// RuleCount counts the requests that one routing rule sent.
type RuleCount struct {
	// Rule is its path, "" where the policy has no rules; Reason is that of the decisions.
	Rule, Reason string
	Requests     int64
	// Judged requests could have lost something, Lost did.
	Judged, Lost int64
	// Estimated decisions have an estimated regret; in Better of them another candidate was
	// better. HindsightMS and AvoidableMS are sums.
	Estimated, Better        int64
	HindsightMS, AvoidableMS float64
}

// countRules counts by rule and reason, those with the most losses first.
func (a *Analyzer) countRules() (all []RuleCount) {
	type ruleKey struct{ rule, reason int32 }
	counted := map[ruleKey]*RuleCount{}
	for _, r := range a.requests.all() {
		if begin, end := r.decisionParts(); begin+end == "" || r.verdict.excluded {
			continue
		}
		k := ruleKey{r.labels.rule, r.labels.routingReason}
		c := counted[k]
		if c == nil {
			c = &RuleCount{Rule: a.names.list[k.rule], Reason: a.names.list[k.reason]}
			counted[k] = c
		}
		c.Requests++
		if r.verdict.judged {
			c.Judged++
		}
		if r.lost() {
			c.Lost++
		}
		if e := r.estimate; e != nil {
			c.Estimated++
			c.HindsightMS += e.HindsightMS
			c.AvoidableMS += e.AvoidableMS
		}
		if r.hindsightMS() > 0 {
			c.Better++
		}
	}
	for _, c := range counted { // sorted below
		all = append(all, *c)
	}
	slices.SortFunc(all, func(x, y RuleCount) int {
		return cmp.Or(cmp.Compare(y.Lost, x.Lost), cmp.Compare(y.Requests, x.Requests),
			cmp.Compare(x.Rule+x.Reason, y.Rule+y.Reason), cmp.Compare(x.Rule, y.Rule))
	})
	return all
}

// neverFired are the rules that were evaluated and never fired.
func (a *Analyzer) neverFired() (all []metrics.Rule) {
	if a.metrics == nil || a.metrics.Control == nil {
		return nil
	}
	for _, r := range a.metrics.Control.Rules {
		if r.Evaluated > 0 && r.Hits == 0 {
			all = append(all, r)
		}
	}
	return all
}

// admissionNeverFired is the first admission rule that never fired, nil without one.
func (a *Analyzer) admissionNeverFired() *metrics.Rule {
	for _, r := range a.neverFired() {
		if strings.HasPrefix(r.Path, "admission") {
			return &r
		}
	}
	return nil
}

// admissionCounts counts the admission decisions, nil if there were none.
func (a *Analyzer) admissionCounts() *Admission {
	c := &Admission{Policy: a.topology.policy("admission"), Rejected: a.admissions[verdictReject],
		Delays: a.admissions[verdictDelay]}
	c.Decisions = a.admissions[verdictAdmit] + c.Rejected + c.Delays
	if c.Decisions == 0 {
		return nil
	}
	return c
}

// ConditionCount is how many requests match a condition, whatever else they match.
type ConditionCount struct {
	Condition *Condition
	Value     string // see Pattern.Value
	Support
}

// countConditions counts all conditions that any request matches, in their order.
func (a *Analyzer) countConditions() (all []ConditionCount) {
	populations, clusters := a.countClusters(a.judged(), conditionSet{^uint64(0), ^uint64(0)}, false)
	slices.SortStableFunc(clusters, func(x, y *clusterTotals) int {
		return cmp.Or(cmp.Compare(x.condition, y.condition), cmp.Compare(y.lost, x.lost))
	})
	for _, t := range clusters {
		c := conditions[t.condition]
		count := ConditionCount{c, a.valueName(t), Support{Lost: t.lost, All: t.all}}
		if whole := populations[c.parts]; whole.all-t.all >= MinLost {
			count.Lift, count.ByMS = t.lift(whole)
		}
		all = append(all, count)
	}
	return all
}

// Sample returns n routing decisions, evenly spaced in their order.
func (a *Analyzer) Sample(n int) (all []Example) {
	a.measure()
	var decided []*request
	for _, r := range a.requests.all() {
		if r.decision() != "" && !r.verdict.excluded {
			decided = append(decided, r)
		}
	}
	n = min(n, len(decided))
	for k := range n {
		all = append(all, a.example(decided[(2*k+1)*len(decided)/(2*n)]))
	}
	return all
}

// HighestRegrets returns the n decisions with the highest regret: those with exact counterfactuals first,
// then by estimated regret.
func (a *Analyzer) HighestRegrets(n int) (all []Example) {
	a.measure()
	var exact, estimated []*request
	for _, r := range a.requests.all() {
		switch {
		case r.verdict.excluded:
		case a.exact[r.decision()] != nil:
			exact = append(exact, r)
		case r.hindsightMS() > 0:
			estimated = append(estimated, r)
		}
	}
	for _, requests := range [][]*request{exact, estimated} {
		slices.SortStableFunc(requests, func(x, y *request) int {
			return cmp.Or(cmp.Compare(y.hindsightMS(), x.hindsightMS()), cmp.Compare(x.id(), y.id()))
		})
		for _, r := range requests[:min(n-len(all), len(requests))] {
			all = append(all, a.example(r))
		}
	}
	return all
}
