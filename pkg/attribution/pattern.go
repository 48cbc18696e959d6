package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/metrics"
)

// Pattern is a condition that a good part of the loss meets.
type Pattern struct {
	// Condition is its name in Conditions; Value the tenant, class or replica that it is
	// about, "" if it has none.
	Condition, Value string
	Component        string
	// Policy is the type of the policy that decides there, Rule the path of the leaf or
	// expression in it that did; "" where it has none.
	Policy, Rule string
	// Lost are the losing requests that meet it and none of the patterns before it, All
	// all requests that meet it and none of those before.
	Lost, All int64
	// Loss is their part of the total loss, from 0 to 1.
	Loss float64
	// Lift is the share of losing requests among those that meet it over that among those
	// that do not, of those that meet no pattern before; half a request is added on either
	// side of both. Where more than half of all lose, shares say little: then it may be the
	// ratio of the mean ms lost (see Loss.OverMS), if that is larger, and ByMS is true. It is 0 if
	// there is nobody to compare with: fewer than LeastLost requests do not meet it, or 2 %,
	// where 90 % of those that meet it lose. Then what went wrong is a pattern by its support
	// alone. Those that lost in other parts of the time than the condition is about do not
	// count.
	Lift float64
	ByMS bool
	// Never is a rule of the policy that never fired and might have helped, Refusals what
	// the policy of admission did; nil where there is none, or where it is not about that.
	Never    *metrics.Rule
	Refusals *Admission
	// Part is the part of the time in which most of them lost most, a place in Parts.
	Part int
	// Means over the losing ones.
	Means Means
	// worst is the one that lost most.
	worst int32
	key   key
}

// Means are over the losing requests of a pattern.
type Means struct {
	// AgeMS is the age of what was seen of the chosen replica; SeenQueue is the queue that
	// was seen there, nil where the router did not look; Queue how long it truly was and
	// Shortest that of the shortest.
	AgeMS           float64
	SeenQueue       *float64
	Queue, Shortest float64
	// Ahead are tokens that the replica took on while they waited, and of these those of
	// lower classes, of the heavy tenant, and of prompts computed again.
	Ahead, AheadLower, AheadHeavy, AheadAgain float64
	// Beside are prompt tokens that the replica took on while they decoded, Output the
	// tokens of their answers.
	Beside, Output float64
	// Expected and Cached are tokens of the prompt, Input is all of it.
	Expected, Cached, Input float64
	// Preemptions is how often they lost their place, PreemptedMS how long they waited
	// then.
	Preemptions, PreemptedMS float64
	// Busy and Idlest are how many requests the replica had, and the one with the fewest;
	// Besides how many were in its batches while they waited for one, and Held the part of
	// its blocks that these took.
	Busy, Idlest, Besides, Held float64
	// Delays is how often admission delayed them, AdmissionMS how long that took.
	Delays, AdmissionMS float64
}

// averaged are the Means but for SeenQueue, and what of a request each is over.
var averaged = []struct {
	into func(*Means) *float64
	of   func(*row) float64
}{
	{func(m *Means) *float64 { return &m.AgeMS }, func(r *row) float64 { return float64(r.seen.age) / 1000 }},
	{func(m *Means) *float64 { return &m.Queue }, func(r *row) float64 { return float64(r.queue) }},
	{func(m *Means) *float64 { return &m.Shortest }, func(r *row) float64 { return float64(r.shortest) }},
	{func(m *Means) *float64 { return &m.Ahead }, func(r *row) float64 { return float64(r.ahead) }},
	{func(m *Means) *float64 { return &m.AheadLower }, func(r *row) float64 { return float64(r.aheadLower) }},
	{func(m *Means) *float64 { return &m.AheadHeavy }, func(r *row) float64 { return float64(r.aheadHeavy) }},
	{func(m *Means) *float64 { return &m.AheadAgain }, func(r *row) float64 { return float64(r.aheadAgain) }},
	{func(m *Means) *float64 { return &m.Beside }, func(r *row) float64 { return float64(r.beside) }},
	{func(m *Means) *float64 { return &m.Output }, func(r *row) float64 { return float64(r.output) }},
	{func(m *Means) *float64 { return &m.Expected }, func(r *row) float64 { return float64(r.expected) }},
	{func(m *Means) *float64 { return &m.Cached }, func(r *row) float64 { return float64(r.cached) }},
	{func(m *Means) *float64 { return &m.Input }, func(r *row) float64 { return float64(r.input) }},
	{func(m *Means) *float64 { return &m.Preemptions }, func(r *row) float64 { return float64(r.preemptions) }},
	{func(m *Means) *float64 { return &m.PreemptedMS }, func(r *row) float64 { return float64(r.preempted) / 1000 }},
	{func(m *Means) *float64 { return &m.Busy }, func(r *row) float64 { return float64(r.busy) }},
	{func(m *Means) *float64 { return &m.Idlest }, func(r *row) float64 { return float64(r.idlest) }},
	{func(m *Means) *float64 { return &m.Besides }, func(r *row) float64 { return r.besides }},
	{func(m *Means) *float64 { return &m.Held }, func(r *row) float64 { return r.held }},
	{func(m *Means) *float64 { return &m.Delays }, func(r *row) float64 { return float64(r.delays) }},
	{func(m *Means) *float64 { return &m.AdmissionMS }, func(r *row) float64 { return float64(r.split()[partAdmission]) / 1000 }},
}

// key is what decisions are clustered by.
type key struct {
	condition   int
	value, rule int32
}

// tally counts the requests of one cluster.
type tally struct {
	key
	totals
}

// totals are of several requests: over is the sum of ms lost.
type totals struct {
	lost, all  int64
	loss, over float64
}

func (t *totals) add(r *row) {
	t.all++
	if r.loss > 0 {
		t.lost++
		t.loss += r.loss
		t.over += r.overMS
	}
}

// wholes are the totals of all whose loss conditions about these parts may explain, and
// of those that lost nothing: whom to compare those with who meet one.
type wholes map[partSet]*totals

func newWholes() wholes {
	w := wholes{}
	for i := range Conditions {
		w[Conditions[i].Value.about] = &totals{}
	}
	return w
}

func (w wholes) add(r *row) {
	for about, t := range w {
		if about.explain(r) {
			t.add(r)
		}
	}
}

// patterns finds the patterns. It returns them with the largest loss first, and marks
// in by which one explains a row: its place, or -1.
func (in *Analyzer) patterns(l *Loss) (found []Pattern, by []int32) {
	by = make([]int32, len(in.rows))
	for i := range by {
		by[i] = -1
	}
	if l.Little() {
		return nil, by
	}
	for rank := range ranks {
		for len(found) < mostPatterns {
			p, ok := in.next(l, rank, by)
			if !ok {
				break
			}
			found = append(found, p)
			in.explain(&found[len(found)-1], by, int32(len(found)-1))
		}
	}
	order := make([]int, len(found))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(found[b].Loss, found[a].Loss) })
	sorted, place := make([]Pattern, len(found)), make([]int32, len(found))
	for to, from := range order {
		sorted[to], place[from] = found[from], int32(to)
	}
	for i, b := range by {
		if b >= 0 {
			by[i] = place[b]
		}
	}
	return sorted, by
}

// next finds the cluster of that rank that would explain most of what is left: that
// for which the loss that is above what it would be at the rate of the others is
// largest.
func (in *Analyzer) next(l *Loss, rank int, by []int32) (Pattern, bool) {
	counted := map[key]*tally{}
	var order []*tally
	whole := newWholes()
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged || by[i] >= 0 {
			continue
		}
		whole.add(r)
		for c := range Conditions {
			k, ok := in.meets(c, rank, r)
			if !ok {
				continue
			}
			t := counted[k]
			if t == nil {
				t = &tally{key: k}
				counted[k] = t
				order = append(order, t)
			}
			t.add(r)
		}
	}
	slices.SortStableFunc(order, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(a.condition, b.condition), cmp.Compare(a.value, b.value), cmp.Compare(a.rule, b.rule))
	})
	best, most := Pattern{}, 0.0
	for _, t := range order {
		among := whole[Conditions[t.condition].Value.about]
		lift, byMS := t.lift(among)
		everybody := t.everybody(among, lift)
		least := MinSupport
		if rank == rankRoom {
			least = mostOfLoss
		}
		if t.loss < least*l.Total || t.lost < MinLost/2 || everybody && Conditions[t.condition].Value.Component == "workload" || lift < MinLift && !everybody {
			continue
		}
		if everybody {
			lift, byMS = 0, false
		}
		excess := t.loss
		if lift > 0 {
			excess *= 1 - 1/lift
		}
		if excess > most {
			best, most = in.pattern(t, l, lift), excess
			best.ByMS = byMS
		}
	}
	return best, most > 0
}

// everybody reports whether there is nobody to compare t with: fewer than LeastLost of the
// whole are not of t, or so few (2 %) that say nothing where nearly all (90 %) of t are lost.
func (t *tally) everybody(whole *totals, lift float64) bool {
	others := whole.all - t.all
	return others < MinLost || lift < MinLift && 50*others <= whole.all && 10*t.lost >= 9*t.all
}

// lift is that of t among the whole, and whether it is one of ms.
func (t *tally) lift(whole *totals) (lift float64, byMS bool) {
	rate := func(lost, all int64) float64 { return (float64(lost) + 0.5) / (float64(all) + 1) }
	lift = rate(t.lost, t.all) / rate(whole.lost-t.lost, whole.all-t.all)
	if 2*whole.lost <= whole.all || t.all == 0 || whole.all == t.all || whole.over <= t.over {
		return lift, false
	}
	with, without := t.over/float64(t.all), (whole.over-t.over)/float64(whole.all-t.all)
	if with/without > lift {
		return with / without, true
	}
	return lift, false
}

// meets reports whether r meets condition c of that rank, and in which cluster.
func (in *Analyzer) meets(c, rank int, r *row) (key, bool) {
	condition := &Conditions[c].Value
	if condition.rank != rank && (condition.rank != rankRoom || rank != rankMechanism) {
		return key{}, false
	}
	value, ok := condition.holds(in, r)
	k := key{c, value, in.names.of("")}
	switch condition.Component {
	case "routing":
		k.rule = r.rule
	case "admission":
		k.rule = r.gate
	}
	return k, ok
}

func (in *Analyzer) pattern(t *tally, l *Loss, lift float64) Pattern {
	c := Conditions[t.condition]
	p := Pattern{Condition: c.Name, Component: c.Value.Component, Policy: in.policies(c.Value.Component), Rule: in.names.list[t.rule],
		Lost: t.lost, All: t.all, Loss: t.loss / l.Total, Lift: lift, key: t.key, worst: -1}
	p.Value = in.value(t.condition, t.value)
	if c.Name == "overload" || c.Name == "crowded" {
		p.Never, p.Refusals = in.neverFired("admission"), in.admission()
	}
	return p
}

// policies are the types of those that a component is made of.
func (in *Analyzer) policies(component string) string {
	stages, _ := Components.Get("component", component)
	text := ""
	for _, s := range stages {
		if policy := in.plan.policy(s); policy != "" {
			if text != "" {
				text += " + "
			}
			text += policy
		}
	}
	return text
}

// explain marks the rows that p explains, and finds out about the losing ones.
func (in *Analyzer) explain(p *Pattern, by []int32, n int32) {
	m, seen, looked := &p.Means, 0.0, 0.0
	var blame [PartCount]int64
	lost := 0.0
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged || by[i] >= 0 {
			continue
		}
		if k, ok := in.meets(p.key.condition, Conditions[p.key.condition].Value.rank, r); !ok || k != p.key {
			continue
		}
		by[i] = n
		if r.loss == 0 {
			continue
		}
		lost++
		blame[r.blame]++
		if p.worst < 0 || in.moreLost(r, in.rows[p.worst]) {
			p.worst = int32(i)
		}
		if r.seen.queue >= 0 {
			seen += float64(r.seen.queue)
			looked++
		}
		for _, x := range averaged {
			*x.into(m) += x.of(r)
		}
	}
	for _, x := range averaged {
		*x.into(m) /= lost
	}
	for part, n := range blame {
		if n > blame[p.Part] {
			p.Part = part
		}
	}
	if looked > 0 {
		seen /= looked
		m.SeenQueue = &seen
	}
}

// moreLost reports whether a lost more than b: by what it was above its target, where
// that is known, else by its regret.
func (in *Analyzer) moreLost(a, b *row) bool {
	if a.overMS != b.overMS {
		return a.overMS > b.overMS
	}
	if a.hindsight != b.hindsight {
		return a.hindsight > b.hindsight
	}
	return a.id < b.id
}
