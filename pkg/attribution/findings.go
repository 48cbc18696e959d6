package attribution

import (
	"cmp"
	"slices"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Findings is what a run was found to have lost, and why.
type Findings struct {
	Loss     *Loss
	Patterns []Pattern
	// Never are the rules of policies that were evaluated and never fired.
	Never []metrics.Rule
	// Admission is what the admission policy said, nil where it was not asked.
	Admission *Admission
	// Regret is nil where none was recorded.
	Regret *Regret
	// Worst are an exemplar of each pattern, then those of what no pattern explains.
	Worst []Example
	// Strengths are what worked: classes, then rules, then the cache.
	Strengths []Strength
	// Anomalies are in the order of the run.
	Anomalies []stream.Anomaly
	Waits     Waits
	// Rules are those of routing, Tallies all conditions that anybody meets.
	Rules   []RuleCount
	Tallies []Tally
}

// Admission counts the verdicts of an admission policy.
type Admission struct {
	Policy                     string
	Decisions, Refused, Delays int64
}

// Regret adds up what estimates and replays said.
type Regret struct {
	Decisions int64
	// Better is for how many another candidate was estimated to end sooner.
	Better int64
	// HindsightMS and AvoidableMS are sums over the decisions, E2EMS that of the
	// estimated E2E of the choices.
	HindsightMS, AvoidableMS, E2EMS float64
	// Played decisions were played otherwise; in Flips of them the best alternative would
	// have let more requests meet their targets than it would have made miss them.
	Played, Flips int64
}

// Waits is how much of the E2E of completed requests, in ms, was waiting: admission,
// dispatch, queue and preempted. It is of those that say when they entered a batch.
type Waits struct{ WaitMS, E2EMS float64 }

// Find looks for everything. It is called once, after the last record.
func (in *Analyzer) Find() *Findings {
	f := &Findings{Loss: in.findLoss(), Anomalies: in.episodes}
	in.learn()
	in.queues()
	in.rooms()
	in.repeated()
	in.behind(in.facts.heavy)
	in.bursts()
	f.Patterns, in.by = in.patterns(f.Loss)
	f.Never = in.never()
	f.Admission = in.admission()
	f.Regret = in.regret()
	f.Worst = in.worst(f)
	f.Strengths = in.kept()
	f.Rules, f.Tallies = in.rules(), in.tallies()
	for i := range in.rows {
		r := in.rows[i]
		if r.apart || in.names.list[r.state] != stream.StateCompleted || r.scheduled == never {
			continue
		}
		s := r.split()
		f.Waits.WaitMS += float64(s[partAdmission]+s[partDispatch]+s[partQueue]+s[partPreempted]) / 1000
		f.Waits.E2EMS += ms(r.ended - r.arrival)
	}
	return f
}

// neverFired is the first of them of that stage, nil without one.
func (in *Analyzer) neverFired(stage string) *metrics.Rule {
	for _, r := range in.never() {
		if strings.HasPrefix(r.Path, stage) {
			return &r
		}
	}
	return nil
}

func (in *Analyzer) admission() *Admission {
	a := &Admission{Policy: in.plan.policy("admission"), Refused: in.verdicts["reject"], Delays: in.verdicts["delay"]}
	a.Decisions = in.verdicts["admit"] + a.Refused + a.Delays
	if a.Decisions == 0 {
		return nil
	}
	return a
}

func (in *Analyzer) regret() *Regret {
	g := &Regret{Played: int64(len(in.exact))}
	for i := range in.rows {
		r := in.rows[i]
		if !r.estimated || r.apart {
			continue
		}
		g.Decisions++
		g.HindsightMS += r.hindsight
		g.AvoidableMS += r.avoidable
		g.E2EMS += r.ours
		if r.hindsight > 0 {
			g.Better++
		}
	}
	for _, e := range in.exact {
		if slices.ContainsFunc(e.Alternatives, func(a stream.Alternative) bool { return a.All != nil && a.All.Gained > a.All.Lost }) {
			g.Flips++
		}
	}
	if g.Decisions == 0 && g.Played == 0 {
		return nil
	}
	return g
}

// Strength is something that worked: Met of the Of requests of the class or rule (What)
// called Name met their targets, and OtherMet of the OtherOf others. What may be cached,
// too: requests that found half of their prompt in the cache.
type Strength struct {
	What, Name                 string
	Met, Of, OtherMet, OtherOf int64
}

// goodShare of a part of the requests that meet their targets is worth keeping.
const goodShare = 0.99

// kept finds classes and rules of routing of which 99 % meet their targets, and says
// whether prefixes found in the cache helped.
func (in *Analyzer) kept() (all []Strength) {
	classes, rules := map[int32]*Strength{}, map[int32]*Strength{}
	cached := Strength{What: "cached"}
	met, of := int64(0), int64(0)
	for i := range in.rows {
		r := in.rows[i]
		if !r.judged {
			continue
		}
		one := int64(0)
		if r.loss == 0 {
			one = 1
		}
		met += one
		of++
		add := func(in map[int32]*Strength, n int32, k Strength) {
			if in[n] == nil {
				in[n] = &k
			}
			in[n].Met += one
			in[n].Of++
		}
		add(classes, r.class, Strength{What: "class", Name: in.names.list[r.class]})
		add(rules, r.rule, Strength{What: "rule", Name: in.names.list[r.rule]})
		if r.scheduled == never {
			continue
		}
		if 2*r.cached >= r.input {
			cached.Met += one
			cached.Of++
		} else {
			cached.OtherMet += one
			cached.OtherOf++
		}
	}
	for n := range in.names.list {
		for _, of := range []map[int32]*Strength{classes, rules} {
			if k := of[int32(n)]; k != nil && k.Name != "" && k.Of >= MinLost && float64(k.Met) >= goodShare*float64(k.Of) {
				all = append(all, *k)
			}
		}
	}
	for i := range all {
		all[i].OtherMet, all[i].OtherOf = met-all[i].Met, of-all[i].Of
	}
	slices.SortStableFunc(all, func(a, b Strength) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(b.Of, a.Of), cmp.Compare(a.Name, b.Name))
	})
	if cached.Of >= MinLost && cached.Met*cached.OtherOf > cached.OtherMet*cached.Of {
		all = append(all, cached)
	}
	return all
}
