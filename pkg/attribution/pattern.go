package attribution

import (
	"cmp"
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
	// Part is the most frequent dominant part of its losing requests.
	Part     Part
	Averages Averages
	// NeverFired is an admission rule that never fired and might have helped, Admission what the
	// admission policy did; nil where there is none, or where the condition is not an overload.
	NeverFired *metrics.Rule
	Admission  *Admission

	worst   int32 // the request that lost most
	cluster cluster
}

// Support is how many requests match a condition, and how much more often these lose.
type Support struct {
	// Lost is the number of losing requests that match it and no earlier pattern, All the number
	// of all requests that do.
	Lost, All int64
	// Lift is the share of losing requests among those that match over that among those that do
	// not, of the requests that match no earlier pattern; half a request is added to each of the
	// four counts. Where more than half of all lose, shares say little: then it is the ratio of
	// the mean ms lost (see Loss.ExcessMS) if that is larger, and ByMS is true. Requests that lost
	// in other parts than the condition is about do not count.
	//
	// It is 0 without a control group: fewer than MinLost requests do not match, or at most 2 %
	// while 90 % of those that match lose. Then the pattern stands by its share of the loss alone.
	Lift float64
	ByMS bool
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
}

// populations are, for each set of parts that conditions are about, the totals of the requests
// whose loss they may explain and of those that lost nothing: the control group of a condition
// is in there.
type populations map[partSet]*totals

func newPopulations() populations {
	p := populations{}
	for _, c := range conditions {
		p[c.parts] = &totals{}
	}
	return p
}

func (p populations) add(r *request) {
	for parts, t := range p {
		if parts.covers(r) {
			t.add(r)
		}
	}
}

// findPatterns returns the patterns, the one with the largest loss first, and the index of the
// pattern that explains each request, -1 for none.
func (a *Analyzer) findPatterns(l *Loss) (found []Pattern, patternOf []int32) {
	patternOf = make([]int32, len(a.requests))
	for i := range patternOf {
		patternOf[i] = -1
	}
	if l.Little() {
		return nil, patternOf
	}
	for rank := range rankCount {
		for len(found) < maxPatterns {
			p, ok := a.bestPattern(l, rank, patternOf)
			if !ok {
				break
			}
			found = append(found, p)
			a.assign(&found[len(found)-1], patternOf, int32(len(found)-1))
		}
	}
	return sortByLoss(found, patternOf)
}

// sortByLoss sorts the patterns and renumbers patternOf.
func sortByLoss(found []Pattern, patternOf []int32) ([]Pattern, []int32) {
	order := make([]int, len(found))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(found[y].Loss, found[x].Loss) })
	sorted, index := make([]Pattern, len(found)), make([]int32, len(found))
	for to, from := range order {
		sorted[to], index[from] = found[from], int32(to)
	}
	for i, n := range patternOf {
		if n >= 0 {
			patternOf[i] = index[n]
		}
	}
	return sorted, patternOf
}

// bestPattern finds the cluster of that rank that explains most of the remaining loss: the one
// with the largest loss in excess of the rate of its control group.
func (a *Analyzer) bestPattern(l *Loss, rank rank, patternOf []int32) (best Pattern, ok bool) {
	all, clusters := a.countClusters(rank, patternOf)
	most := 0.0
	for _, t := range clusters {
		condition := conditions[t.condition]
		population := all[condition.parts]
		lift, byMS := t.lift(population)
		noControl := t.noControlGroup(population, lift)
		minLoss := MinSupport
		if rank == rankCapacity {
			minLoss = minCapacitySupport
		}
		switch {
		case t.loss < minLoss*l.Total || t.lost < MinLost/2,
			noControl && condition.Component == workloadComponent, // a kind of request explains nothing alone
			lift < MinLift && !noControl:
			continue
		case noControl:
			lift, byMS = 0, false
		}
		excess := t.loss
		if lift > 0 {
			excess *= 1 - 1/lift
		}
		if excess > most {
			most = excess
			best = a.pattern(t, l, Support{Lost: t.lost, All: t.all, Lift: lift, ByMS: byMS})
		}
	}
	return best, most > 0
}

// countClusters counts the requests that no pattern explains, in total and by cluster of
// conditions of that rank.
func (a *Analyzer) countClusters(rank rank, patternOf []int32) (all populations, clusters []*clusterTotals) {
	counted := map[cluster]*clusterTotals{}
	all = newPopulations()
	for i, r := range a.requests {
		if !r.verdict.judged || patternOf[i] >= 0 {
			continue
		}
		all.add(r)
		for c := range conditions {
			k, ok := a.clusterOf(c, rank, r)
			if !ok {
				continue
			}
			if counted[k] == nil {
				counted[k] = &clusterTotals{cluster: k}
				clusters = append(clusters, counted[k])
			}
			counted[k].add(r)
		}
	}
	slices.SortStableFunc(clusters, func(x, y *clusterTotals) int {
		return cmp.Or(cmp.Compare(x.condition, y.condition), cmp.Compare(x.value, y.value), cmp.Compare(x.rule, y.rule))
	})
	return all, clusters
}

// noControlGroup reports whether too few requests of the population do not match: fewer than
// MinLost, or at most 2 % where nearly all (90 %) of those that match lose.
func (t *clusterTotals) noControlGroup(population *totals, lift float64) bool {
	others := population.all - t.all
	return others < MinLost || lift < MinLift && 50*others <= population.all && 10*t.lost >= 9*t.all
}

// lift is that of the cluster within the population, and whether it is one of ms; see Support.Lift.
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

// clusterOf reports whether r matches condition c of that rank, and in which cluster.
func (a *Analyzer) clusterOf(c int, rank rank, r *request) (cluster, bool) {
	condition := conditions[c]
	if condition.rank != rank && (condition.rank != rankCapacity || rank != rankMechanism) {
		return cluster{}, false
	}
	value, ok := condition.matches(a, r)
	k := cluster{c, value, a.names.number("")}
	if condition.Component.rule != nil {
		k.rule = condition.Component.rule(r)
	}
	return k, ok
}

func (a *Analyzer) pattern(t *clusterTotals, l *Loss, s Support) Pattern {
	c := conditions[t.condition]
	p := Pattern{Condition: c, Value: c.value(a, t.value), Policy: a.policyNames(c.Component),
		Rule: a.names.list[t.rule], Support: s, Loss: t.loss / l.Total, cluster: t.cluster, worst: -1}
	if c.rank == rankOverload {
		p.NeverFired, p.Admission = a.admissionNeverFired(), a.admissionCounts()
	}
	return p
}

// assign marks the requests that pattern n explains, and fills in what is known about the losing
// ones.
func (a *Analyzer) assign(p *Pattern, patternOf []int32, n int32) {
	var averages averager
	var dominant [PartCount]int64
	for i, r := range a.requests {
		if !r.verdict.judged || patternOf[i] >= 0 {
			continue
		}
		if k, ok := a.clusterOf(p.cluster.condition, p.Condition.rank, r); !ok || k != p.cluster {
			continue
		}
		patternOf[i] = n
		if !r.lost() {
			continue
		}
		averages.add(r)
		dominant[r.verdict.dominant]++
		if p.worst < 0 || lostMore(r, a.requests[p.worst]) {
			p.worst = int32(i)
		}
	}
	p.Averages = averages.averages()
	for part, n := range dominant {
		if n > dominant[p.Part] {
			p.Part = Part(part)
		}
	}
}

// lostMore reports whether x lost more than y: by ms above the target, then by regret.
func lostMore(x, y *request) bool {
	if x.verdict.excessMS != y.verdict.excessMS {
		return x.verdict.excessMS > y.verdict.excessMS
	}
	if x.routing.hindsightMS != y.routing.hindsightMS {
		return x.routing.hindsightMS > y.routing.hindsightMS
	}
	return x.id < y.id
}
