package attribution

import (
	"cmp"
	"slices"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Findings is what a run lost, and why.
type Findings struct {
	Loss     *Loss
	Patterns []Pattern
	// Unexplained is the loss that no pattern explains.
	Unexplained Unexplained
	// Hints are settings that may remove what patterns say.
	Hints []Hint
	// NeverFired are the rules of policies that were evaluated and never fired.
	NeverFired []metrics.Rule
	// Admission is nil where there were no admission decisions.
	Admission *Admission
	// Regret is nil where none was recorded.
	Regret *Regret
	// ScalingRegrets are those with the most to gain first.
	ScalingRegrets []ScalingRegret
	// Worst are an example of each pattern, then those of losses that no pattern explains.
	Worst []Example
	// Strengths are what worked: classes, then routing rules, then the cache.
	Strengths []Strength
	// Anomalies are in the order of the run.
	Anomalies []stream.Anomaly
	Waiting   Waiting
	// Replicas and Deployments are those with the most losses first.
	Replicas, Deployments []ReplicaRow
	LossWindow            LossWindow
	// Sessions is nil where no session completed.
	Sessions *SessionTime
	// Classes and Tenants are those with the most losses first.
	Classes, Tenants []GroupRow
	// Rules are those of routing.
	Rules []RuleCount
	// Conditions counts all conditions that any request matches.
	Conditions func() []ConditionCount
}

// Unexplained is the number of requests whose loss no pattern explains, and the part in which most of them lost.
type Unexplained struct {
	Lost int64
	Part Part
}

func (a *Analyzer) unexplained() (u Unexplained) {
	var parts [PartCount]int64
	for _, r := range a.requests.all() {
		if r.verdict.judged && r.lost() && r.verdict.pattern < 0 {
			u.Lost++
			parts[r.verdict.dominant]++
		}
	}
	u.Part = mostFrequent(&parts)
	return u
}

// Admission counts the decisions of an admission policy.
type Admission struct {
	Policy                      string
	Decisions, Rejected, Delays int64
}

// Regret adds up the counterfactuals.
type Regret struct {
	// Decisions is the number of decisions with an estimated regret, Better the number of those in
	// which another candidate was better.
	Decisions, Better int64
	// HindsightMS and AvoidableMS are sums over the decisions, E2EMS is the sum of the estimated
	// E2E of the choices.
	HindsightMS, AvoidableMS, E2EMS float64
	// Exact is the number of decisions that were re-simulated, Flips the number of those in which
	// some alternative gains more SLOs than it loses.
	Exact, Flips int64
}

// Waiting is how much of the E2E of completed requests, in ms, was waiting: admission, flow control,
// front end, queue and preempted. It covers the requests whose record has the start of their first batch.
type Waiting struct{ WaitMS, E2EMS float64 }

// Find explains the run. It is called once, after the last record. sources are what the fitness of the run loses.
//
// If too little is lost to look for patterns, it measures only what the examples of losses need, and the rest when
// something asks for it.
func (a *Analyzer) Find(sources ...LossSource) *Findings {
	a.stats.heavyTenant = a.heavyTenant()
	a.computeStats()
	f := &Findings{Anomalies: a.episodes}
	if len(sources) == 0 && !a.wantsAll && a.deriveLost() {
		a.measuresLost = true
		a.measureReplicas()
		f.Loss = a.findLoss(nil)
		if f.Loss.Lost > 0 {
			a.countQueues()
		}
	} else {
		a.derive()
		a.measureRecomputed()
		a.measureReplicas()
		f.Loss = a.findLoss(sources)
		a.measureRest()
	}
	f.Conditions = func() []ConditionCount {
		a.measure()
		return a.countConditions()
	}
	f.Patterns = a.findPatterns(f.Loss)
	f.Unexplained = a.unexplained()
	f.NeverFired = a.neverFired()
	f.Admission = a.admissionCounts()
	f.Regret, f.ScalingRegrets = a.sumRegret(), a.worstScaling()
	f.Worst = a.worstExamples(f)
	f.Strengths = a.findStrengths()
	f.Rules = a.countRules()
	f.Waiting = a.sumWaiting()
	f.Replicas, f.Deployments = a.countReplicas()
	f.Hints = a.findHints(f)
	f.Classes = a.countGroups(f, func(l *labels) int32 { return l.class })
	f.Tenants = a.countGroups(f, func(l *labels) int32 { return l.tenant })
	f.LossWindow, f.Sessions = a.lossWindow(), a.sessionTime()
	return f
}

// measureRest measures what conditions need after the loss is known.
func (a *Analyzer) measureRest() {
	a.stats.othersLose = a.othersLose()
	a.measureFleet()
	a.countQueues()
	a.markBursts()
	a.measurePeaks()
	a.measureSpeeds()
	a.measureSteps()
	a.measureRetries()
	a.measureTransfers()
	a.countPrefillQueues()
	a.measureHeldBack()
	a.matchConditions()
}

func (a *Analyzer) sumWaiting() (w Waiting) {
	for _, r := range a.requests.all() {
		if r.verdict.excluded || !a.completed(r) || r.scheduled() == never {
			continue
		}
		s := r.split()
		w.WaitMS += float64(s[PartAdmission]+s[PartFlow]+s[PartEncode]+s[PartFrontend]+s[PartQueue]+
			s[PartPreempted]) / 1000
		w.E2EMS += latencyMS(r.arrival(), r.ended())
	}
	return w
}

func (a *Analyzer) sumRegret() *Regret {
	g := &Regret{Exact: int64(len(a.exact))}
	for _, r := range a.requests.all() {
		e := r.estimate
		if e == nil || r.verdict.excluded {
			continue
		}
		g.Decisions++
		g.HindsightMS += e.HindsightMS
		g.AvoidableMS += e.AvoidableMS
		g.E2EMS += e.ChosenMS
		if e.HindsightMS > 0 {
			g.Better++
		}
	}
	for _, e := range a.exact {
		if slices.ContainsFunc(e.Alternatives, gainsSLOs) {
			g.Flips++
		}
	}
	if g.Decisions == 0 && g.Exact == 0 {
		return nil
	}
	return g
}

// gainsSLOs reports whether an alternative gains more SLOs than it loses, beyond the sensitivity of the run.
func gainsSLOs(x stream.Alternative) bool {
	return x.All != nil && x.All.SLOGained > x.All.SLOLost && !x.Insensitive
}

// StrengthKind is what a Strength is about.
type StrengthKind int

// Kinds of strengths, in the order of Findings.Strengths.
const (
	StrengthClass  StrengthKind = iota // an SLO class
	StrengthRule                       // a routing rule
	StrengthCached                     // requests that found at least half of their prompt cached
)

// Strength is something that worked: Met of All requests met their targets, against OtherMet of
// OtherAll other requests. Name is that of the class or rule.
type Strength struct {
	Kind                         StrengthKind
	Name                         string
	Met, All, OtherMet, OtherAll int64
}

// strengthShare is the share of requests that must meet their targets for a class or rule to count
// as a strength.
const strengthShare = 0.99

// attainment counts judged requests and those that met their targets.
type attainment struct{ met, all int64 }

func (t *attainment) add(r *request) {
	t.all++
	if !r.lost() {
		t.met++
	}
}

// findStrengths finds the classes and routing rules that meet their targets, and whether prefixes
// found in the cache helped.
func (a *Analyzer) findStrengths() (all []Strength) {
	classes, rules := make([]attainment, len(a.names.list)), make([]attainment, len(a.names.list))
	var total, cached, uncached attainment
	for _, r := range a.requests.all() {
		if !r.verdict.judged {
			continue
		}
		total.add(r)
		classes[r.labels.class].add(r)
		rules[r.labels.rule].add(r)
		switch {
		case r.scheduled() == never:
		case 2*r.tokens.cached >= r.tokens.input:
			cached.add(r)
		default:
			uncached.add(r)
		}
	}
	for n, name := range a.names.list {
		for kind, c := range []attainment{StrengthClass: classes[n], StrengthRule: rules[n]} {
			if name != "" && c.all >= MinLost && float64(c.met) >= strengthShare*float64(c.all) {
				all = append(all, Strength{StrengthKind(kind), name, c.met, c.all, total.met - c.met,
					total.all - c.all})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Strength) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(y.All, x.All), cmp.Compare(x.Name, y.Name))
	})
	if cached.all >= MinLost && cached.met*uncached.all > uncached.met*cached.all {
		all = append(all, Strength{StrengthCached, "", cached.met, cached.all, uncached.met, uncached.all})
	}
	return all
}
