package attribution

import (
	"cmp"
	"math/bits"
	"slices"

	"blis/pkg/metrics"
)

// Pattern is a condition that explains a good part of the loss.
type Pattern struct {
	Condition *Condition
	// Value is the tenant, class or replica that it is about, "" if there is none.
	Value string
	// Policy is the type of the policy that decides there, Rule the path of the deciding rule or
	// expression in it; "" where there is none.
	Policy, Rule string
	Support
	// Loss is the share of the total loss that it explains, from 0 to 1.
	Loss float64
	// Sources divide it where the loss is fitness, the largest first.
	Sources []SourceLoss
	// Part is the most frequent dominant part of its losing requests.
	Part Part
	// Cause says what happened, by means over its losing requests.
	Cause string
	// NeverFired is an admission rule that never fired and might have helped, Admission what the
	// admission policy did; nil where there is none, or where the condition is not an overload.
	NeverFired *metrics.Rule
	Admission  *Admission

	run     *Analyzer // of the run that it is found in
	cluster cluster
	// explained are its requests, losing those of them that lost something.
	explained, losing []*request
}

// Support is how many requests match a condition, and how much more often these lose.
type Support struct {
	// Lost is the number of losing requests that match it and no earlier pattern, All the number
	// of all requests that do.
	Lost, All int64
	// Lift is the share of losing requests among those that match over that among those that do
	// not, among the requests that match no earlier pattern; half a request is added to each of the
	// four counts. Where more than half of all lose, shares say little: then it is the ratio of
	// the mean ms lost (see Loss.ExcessMS) if that is larger, and ByMS is true. Requests that lost
	// in other parts than the condition is about do not count.
	//
	// It is 0 without a control group: fewer than MinLost requests do not match, or at most 2 %
	// while 90 % of those that match lose, or 95 % of all lose. Then the pattern stands by its share of the loss alone.
	Lift float64
	ByMS bool
	// MetWithout are the losing requests that would have met their targets without the time that the condition took,
	// where Lift is too low and they are at least half: others may take this time and still meet their targets. Then
	// Lift is 0.
	MetWithout int64
}

// cluster is what decisions are grouped by: a condition (an index of conditions), its value, and
// the rule that decided.
type cluster struct {
	condition   int
	value, rule int32
}

// totals are over several requests; excessMS is the sum of ms lost.
type totals struct {
	lost, all      int64
	loss, excessMS float64
}

func (t *totals) add(r *request) {
	t.all++
	if r.lost() {
		t.lost++
		t.loss += r.verdict.loss
		t.excessMS += r.verdict.excessMS
	}
}

// clusterTotals are the totals of one cluster.
type clusterTotals struct {
	cluster
	totals
	metWithout int64 // see Support.MetWithout
}

// findPatterns returns the patterns, the one with the largest loss first, and sets the pattern of
// each request.
func (a *Analyzer) findPatterns(l *Loss) (found []Pattern) {
	if l.TooSmall() {
		return nil
	}
	left := a.judged()
	for rank := range rankCount {
		for len(found) < maxPatterns {
			p, ok := a.bestPattern(l, rank, left)
			if !ok {
				break
			}
			left = a.explain(&p, left)
			p.Sources = a.sumSources(l, p.losing)
			found = append(found, p)
		}
	}
	slices.SortStableFunc(found, func(x, y Pattern) int { return cmp.Compare(y.Loss, x.Loss) })
	for n, p := range found {
		for _, r := range p.explained {
			r.verdict.pattern = int8(n)
		}
	}
	return found
}

// judged are the requests that could have lost something.
func (a *Analyzer) judged() []*request {
	return slices.DeleteFunc(a.requests.list(), func(r *request) bool { return !r.verdict.judged })
}

// bestPattern finds the cluster of that rank that explains most of the remaining loss: the one
// with the largest loss in excess of the rate of its control group.
func (a *Analyzer) bestPattern(l *Loss, rank rank, left []*request) (best Pattern, ok bool) {
	populations, clusters := a.countClusters(left, rank.conditions(), true)
	most, minLoss := 0.0, MinSupport
	if rank == rankCapacity {
		minLoss = minCapacitySupport
	}
	for _, t := range clusters {
		condition := conditions[t.condition]
		population := populations[condition.parts]
		lift, byMS := t.lift(population)
		metWithout := int64(0)
		noControl := t.noControlGroup(population, lift) || l.standsAlone(t, population)
		switch {
		case t.loss < minLoss*l.Total || t.lost < MinLost/2,
			condition.isTrait() && 2*t.all > population.all, // what most requests have explains nothing
			lift < MinLift && !noControl && !l.decides(t):
			continue
		case noControl:
			lift, byMS = 0, false
		case lift < MinLift:
			lift, byMS, metWithout = 0, false, t.metWithout
		}
		excess := t.loss
		if lift > 0 {
			excess *= 1 - 1/lift
		}
		if condition.isWrong {
			excess *= 2
		}
		if excess > most && (most == 0 || excess >= clearlyMore*most || condition == best.Condition) {
			most = excess
			best = a.pattern(t, l, Support{Lost: t.lost, All: t.all, Lift: lift, ByMS: byMS,
				MetWithout: metWithout})
		}
	}
	return best, most > 0
}

// standsAlone reports whether a cluster that explains most of the loss needs no control group: its condition says where
// the time went, and all requests may lose by a latency what has no limit, so that those with another cause lose too;
// or nearly all lose (95 %).
func (l *Loss) standsAlone(t *clusterTotals, population *totals) bool {
	c, nearlyAll := conditions[t.condition], 20*population.lost >= 19*population.all
	return t.loss >= minCapacitySupport*l.Total &&
		(l.Kind == LossFitness && c.isAbsolute || nearlyAll && !c.isTrait())
}

// decides reports whether a cluster explains most of the loss, and most of its losing requests would have met their
// targets without the time that its condition took.
func (l *Loss) decides(t *clusterTotals) bool {
	return t.loss >= minCapacitySupport*l.Total && t.metWithout > 0 && 2*t.metWithout >= t.lost
}

// conditions are the conditions that are tried at that rank.
func (k rank) conditions() (set conditionSet) {
	for i, c := range conditions {
		if c.rank == k || c.rank == rankCapacity && k == rankMechanism {
			set.add(i)
		}
	}
	return set
}

// countClusters counts requests by cluster of the conditions in the set, by their rules too or not.
// The populations are, for each set of parts that conditions are about, the totals of the requests
// whose loss they may explain and of those that lost nothing: a condition's control group is in there.
func (a *Analyzer) countClusters(requests []*request, set conditionSet, byRule bool) (
	populations map[partSet]*totals, clusters []*clusterTotals) {
	counted := map[cluster]*clusterTotals{}
	for _, r := range requests {
		for word := range set {
			for matched := r.verdict.conditions[word] & set[word]; matched != 0; matched &= matched - 1 {
				i := 64*word + bits.TrailingZeros64(matched)
				k := a.clusterOf(i, r, byRule)
				t := counted[k]
				if t == nil {
					t = &clusterTotals{cluster: k}
					counted[k], clusters = t, append(clusters, t)
				}
				t.add(r)
				if r.verdict.metWithout.has(i) {
					t.metWithout++
				}
			}
		}
	}
	slices.SortFunc(clusters, func(x, y *clusterTotals) int {
		return cmp.Or(cmp.Compare(x.condition, y.condition), cmp.Compare(x.value, y.value), cmp.Compare(x.rule, y.rule))
	})
	return countPopulations(requests), clusters
}

// countPopulations finds the populations of countClusters.
func countPopulations(requests []*request) map[partSet]*totals {
	populations, met := map[partSet]*totals{}, int64(0)
	var sets []partSet
	for _, c := range conditions {
		if populations[c.parts] == nil {
			populations[c.parts], sets = &totals{}, append(sets, c.parts)
		}
	}
	for _, r := range requests {
		if !r.lost() {
			met++
			continue
		}
		for _, parts := range sets {
			if parts.has(r.verdict.dominant) {
				populations[parts].add(r)
			}
		}
	}
	for _, parts := range sets {
		populations[parts].all += met
	}
	return populations
}

// clusterOf is the cluster of r for a condition that it matches.
func (a *Analyzer) clusterOf(c int, r *request, byRule bool) cluster {
	k, condition := cluster{condition: c}, conditions[c]
	if condition.value != nil {
		k.value = condition.value(a, r)
	}
	if byRule {
		k.rule = a.names.number("")
		if condition.Component.rule != nil {
			k.rule = condition.Component.rule(r)
		}
	}
	return k
}

// noControlGroup reports whether too few requests of the population do not match: fewer than
// MinLost, or at most 2 % where nearly all (90 %) of those that match lose.
func (t *clusterTotals) noControlGroup(population *totals, lift float64) bool {
	others := population.all - t.all
	return others < MinLost || lift < MinLift && 50*others <= population.all && 10*t.lost >= 9*t.all
}

// lift returns the lift of the cluster within the population, and whether it is a ratio of mean ms
// lost; see Support.Lift.
func (t *clusterTotals) lift(population *totals) (lift float64, byMS bool) {
	rate := func(lost, all int64) float64 { return (float64(lost) + 0.5) / (float64(all) + 1) }
	lift = rate(t.lost, t.all) / rate(population.lost-t.lost, population.all-t.all)
	fewLose := 2*population.lost <= population.all
	if fewLose || t.all == 0 || population.all == t.all || population.excessMS <= t.excessMS {
		return lift, false
	}
	with := t.excessMS / float64(t.all)
	without := (population.excessMS - t.excessMS) / float64(population.all-t.all)
	if with/without > lift {
		return with / without, true
	}
	return lift, false
}

func (a *Analyzer) pattern(t *clusterTotals, l *Loss, s Support) Pattern {
	c := conditions[t.condition]
	p := Pattern{run: a, Condition: c, Value: a.valueName(t), Policy: a.policyNames(c.Component),
		Rule:    a.names.list[t.rule],
		Support: s, Loss: t.loss / l.Total, cluster: t.cluster}
	if c.rank == rankOverload {
		p.NeverFired, p.Admission = a.admissionNeverFired(), a.admissionCounts()
	}
	return p
}

// valueName is the name of the value of a cluster, "" where its condition has none.
func (a *Analyzer) valueName(t *clusterTotals) string {
	if name := conditions[t.condition].valueName; name != nil {
		return name(a, t.value)
	}
	return ""
}

// explain fills in what is known about the requests that match the pattern, and returns those that
// do not match.
func (a *Analyzer) explain(p *Pattern, requests []*request) (left []*request) {
	var dominant [PartCount]int64
	left = slices.DeleteFunc(requests, func(r *request) bool {
		c := p.cluster.condition
		if !r.verdict.conditions.has(c) || a.clusterOf(c, r, true) != p.cluster {
			return false
		}
		p.explained = append(p.explained, r)
		if r.lost() {
			p.losing = append(p.losing, r)
			dominant[r.verdict.dominant]++
		}
		return true
	})
	p.Cause = p.Condition.cause(p)
	p.Part = mostFrequent(&dominant)
	return left
}

// compareLoss orders the request first that lost more: by ms above the target, then by regret.
func compareLoss(x, y *request) int {
	return cmp.Or(cmp.Compare(y.verdict.excessMS, x.verdict.excessMS),
		cmp.Compare(y.hindsightMS(), x.hindsightMS()), cmp.Compare(x.id(), y.id()))
}
