package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/metrics"
)

// RuleCount is what became of the requests that one rule of routing sent.
type RuleCount struct {
	// Rule is its path, "" where the policy has none; Why the words that decisions carry.
	Rule, Why string
	Requests  int64
	// Judged requests could lose, Lost did.
	Judged, Lost int64
	// Better is for how many decisions another candidate was estimated to be better, and
	// HindsightMS and AvoidableMS the sums, where Estimated were.
	Estimated, Better        int64
	HindsightMS, AvoidableMS float64
}

// rules counts by rule and reason, those with the most losses first.
func (in *Analyzer) rules() []RuleCount {
	counted := map[[2]int32]*RuleCount{}
	var order []*RuleCount
	for i := range in.rows {
		r := in.rows[i]
		if r.decision == "" || r.apart {
			continue
		}
		k := [2]int32{r.rule, r.why}
		c := counted[k]
		if c == nil {
			c = &RuleCount{Rule: in.names.list[r.rule], Why: in.names.list[r.why]}
			counted[k] = c
			order = append(order, c)
		}
		c.Requests++
		if r.judged {
			c.Judged++
		}
		if r.loss > 0 {
			c.Lost++
		}
		if r.estimated {
			c.Estimated++
			c.HindsightMS += r.hindsight
			c.AvoidableMS += r.avoidable
		}
		if r.hindsight > 0 {
			c.Better++
		}
	}
	var all []RuleCount
	for _, c := range order {
		all = append(all, *c)
	}
	slices.SortStableFunc(all, func(a, b RuleCount) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Rule+a.Why, b.Rule+b.Why))
	})
	return all
}

// Tally is how many requests meet a condition, whatever else they meet.
type Tally struct {
	Condition, Value string
	Component        string
	Lost, All        int64
	// Lift and ByMS are as in Pattern.
	Lift float64
	ByMS bool
}

// tallies counts all conditions that anybody meets, in their order.
func (in *Analyzer) tallies() (all []Tally) {
	type at struct {
		condition int
		value     int32
	}
	counted := map[at]*tally{}
	var order []at
	whole := newWholes()
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged {
			continue
		}
		whole.add(r)
		for c := range Conditions {
			value, ok := Conditions[c].Value.holds(in, r)
			if !ok {
				continue
			}
			k := at{c, value}
			if counted[k] == nil {
				counted[k] = &tally{key: key{condition: c, value: value}}
				order = append(order, k)
			}
			counted[k].add(r)
		}
	}
	slices.SortFunc(order, func(a, b at) int {
		return cmp.Or(cmp.Compare(a.condition, b.condition), cmp.Compare(counted[b].lost, counted[a].lost), cmp.Compare(a.value, b.value))
	})
	for _, k := range order {
		t, c := counted[k], Conditions[k.condition]
		one := Tally{Condition: c.Name, Value: in.value(k.condition, k.value), Component: c.Value.Component, Lost: t.lost, All: t.all}
		if among := whole[c.Value.about]; among.all-t.all >= MinLost {
			one.Lift, one.ByMS = t.lift(among)
		}
		all = append(all, one)
	}
	return all
}

// value is that of a condition in words, "" if it has none.
func (in *Analyzer) value(condition int, value int32) string {
	switch Conditions[condition].Name {
	case "hot_replica":
		return in.Replica(value)
	case "behind_tenant", "tenant", "class":
		return in.names.list[value]
	}
	return ""
}

// Sample is n routing decisions, evenly spaced in their order.
func (in *Analyzer) Sample(n int) (all []Example) {
	var decided []int32
	for i := range in.rows {
		if r := in.rows[i]; r.decision != "" && !r.apart {
			decided = append(decided, int32(i))
		}
	}
	for k := range min(n, len(decided)) {
		at := (2*k + 1) * len(decided) / (2 * min(n, len(decided)))
		all = append(all, in.exemplar(decided[at], -1))
	}
	return all
}

// Regretted are the n decisions with the most estimated regret, and all that were
// played otherwise, the most regretted first.
func (in *Analyzer) Regretted(n int) (all []Example) {
	var order []int32
	for i := range in.rows {
		r := in.rows[i]
		if !r.apart && (r.estimated && r.hindsight > 0 || in.exact[r.decision] != nil) {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := in.rows[a], in.rows[b]
		return cmp.Or(compareTrue(in.exact[x.decision] != nil, in.exact[y.decision] != nil), cmp.Compare(y.hindsight, x.hindsight), cmp.Compare(x.id, y.id))
	})
	for _, i := range order[:min(n, len(order))] {
		all = append(all, in.exemplar(i, -1))
	}
	return all
}

// compareTrue puts true before false.
func compareTrue(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// never are the rules that were evaluated and never fired.
func (in *Analyzer) never() (all []metrics.Rule) {
	if in.metrics == nil || in.metrics.Control == nil {
		return nil
	}
	for _, r := range in.metrics.Control.Rules {
		if r.Evaluated > 0 && r.Hits == 0 {
			all = append(all, r)
		}
	}
	return all
}
