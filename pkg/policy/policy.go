// Package policy is the control plane: pure decisions over a View. A policy sees what its
// counterpart in a real cluster would see, and no more: views have no field for what is unknown
// there, such as the output length. (The set of candidates does depend on it: they are the replicas
// that can hold the whole request, as if its length were declared.)
//
// Policies are data. A Bundle names the policy of each stage, and Build makes a Plane of it:
// built-in policies with parameters, CEL expressions, decision trees, and compositions of these. A
// Plane has state (turns, buckets, random numbers); Clone makes an independent copy.
package policy

import "strconv"

// Action is what admission does with a request.
type Action uint8

// Actions of admission.
const (
	Admit Action = iota
	Reject
	Delay
)

func (a Action) String() string { return [...]string{"admit", "reject", "delay"}[a] }

// Verdict is an admission decision. A delayed request is considered again after DelayUS, at least
// 1.
type Verdict struct {
	Action  Action
	DelayUS int64
	// DecidedBy is what decided: the path of an expression or of a leaf, or the policy's type; "" where
	// there was nothing to decide.
	DecidedBy string
	// Reason is the comparison that decided.
	Reason Reason
}

// Reason is a quantity compared with a limit; it is formatted only on demand. Op is the comparison
// operator. Without Op, Quantity is the whole reason.
type Reason struct {
	Quantity string
	Value    float64
	Op       string
	Limit    float64
}

// Append appends the reason as text, such as "mean queue depth 6.25 >= 5".
func (r Reason) Append(b []byte) []byte {
	b = append(b, r.Quantity...)
	if r.Op == "" {
		return b
	}
	b = strconv.AppendFloat(append(b, ' '), r.Value, 'g', 6, 64)
	b = append(append(append(b, ' '), r.Op...), ' ')
	return strconv.AppendFloat(b, r.Limit, 'g', 6, 64)
}

// admitBelow admits x < limit.
func admitBelow(quantity string, x, limit float64) Verdict {
	if x < limit {
		return Verdict{Reason: Reason{quantity, x, "<", limit}}
	}
	return Verdict{Action: Reject, Reason: Reason{quantity, x, ">=", limit}}
}

// admitUpTo admits x <= limit.
func admitUpTo(quantity string, x, limit float64) Verdict {
	if x <= limit {
		return Verdict{Reason: Reason{quantity, x, "<=", limit}}
	}
	return Verdict{Action: Reject, Reason: Reason{quantity, x, ">", limit}}
}

// exempt admits a request to which no limit applies.
func exempt(reason string) Verdict { return Verdict{Reason: Reason{Quantity: reason}} }

// Choice is a router's decision: an index in View.Replicas, and the winning score in the policy's
// own unit.
type Choice struct {
	Candidate int
	Score     float64
	// Tied is the number of equally good candidates among which the choice was drawn, 0 if none was.
	Tied int
	// Reason says in a few words what decided. Rule is the path of the leaf or expression that decided,
	// "" if there is none.
	Reason, Rule string
}

// Policy is the interface of all policies.
type Policy interface {
	// Needs returns which fields the policy reads.
	Needs() Needs
	// Rules returns the policy's expressions and branches with their counts.
	Rules() []*Rule
}

// Admitter decides which requests are admitted.
type Admitter interface {
	Policy
	Admit(*View) Verdict
	Clone() Admitter
}

// Prioritizer assigns admitted requests a priority, higher is more urgent, and hints that a
// replica's scheduler may read.
type Prioritizer interface {
	Policy
	// Priority also returns the path of the rule that set the priority, "" if the policy has no rules.
	Priority(v *View, hints *[MaxHints]float64) (priority float64, rule string)
	// Hints returns the names of the hints, at most MaxHints.
	Hints() []string
	Clone() Prioritizer
}

// Router sends requests to replicas.
type Router interface {
	Policy
	Route(*View) Choice
	Clone() Router
}

// Scheduler sets a request's position in its replica's queue when it is queued: lowest first, equal
// ones in order of arrival.
type Scheduler interface {
	Policy
	Order(*Local) float64
	Clone() Scheduler
}

// Preemptor chooses the running sequence to preempt when blocks run out: the one with the highest
// score, of equal ones the one admitted last.
type Preemptor interface {
	Policy
	PreemptionScore(*Local) float64
	Clone() Preemptor
}

// noNeeds is embedded by policies that read no fields and have no rules.
type noNeeds struct{}

func (noNeeds) Needs() Needs   { return 0 }
func (noNeeds) Rules() []*Rule { return nil }

// needs is embedded by policies that read these fields and have no rules.
type needs Needs

func (r needs) Needs() Needs { return Needs(r) }
func (needs) Rules() []*Rule { return nil }

// Rule is an expression or a branch of a policy, with counts.
type Rule struct {
	// Path is its position in the policies ("routing.root.then.score"), Source its text; the text of a
	// leaf is its result.
	Path, Source string
	// Evaluated counts evaluations, for a filter or a score one for each candidate. Hits counts those
	// that were true or gave a number; for a leaf, the times it was reached.
	Evaluated, Hits int64
	// Failed counts evaluations that gave an error or no number, and decisions in which a filter passed
	// no candidate (one for each decision). A fallback decided instead.
	Failed int64
	// Error is the first error of a Starlark program, with its position in the program.
	Error string
}

// Plane holds the policies of all stages, ready to decide.
type Plane struct {
	Admission  Admitter
	Priority   Prioritizer
	Routing    Router
	Scheduler  Scheduler
	Preemption Preemptor
	// PrefillRouting is nil unless prompts are computed by replicas of their own.
	PrefillRouting Router
	// Autoscale is nil if the number of replicas is constant.
	Autoscale Autoscaler
	// Trigger is nil if the auto-scaler looks at the end of each interval.
	Trigger *Trigger
	// Placement is nil unless deployments of one model scale together.
	Placement *Placement
	// TrafficUS is for NewTraffic.
	TrafficUS int64
	// Classes are the SLO classes that the policies name, sorted.
	Classes []string
	// Tenants are those that admission limits by name, sorted.
	Tenants []string
	// Delays says whether admission can delay a request; Unused lists the parts of the bundle without
	// effect.
	Delays bool
	Unused []Unused
	// BlockIndex configures the index that policies with NeedBlockIndex read.
	BlockIndex BlockIndexConfig
}

// Clone returns an independent copy of the plane.
func (p *Plane) Clone() *Plane {
	c := *p
	c.Admission, c.Priority, c.Routing = p.Admission.Clone(), p.Priority.Clone(), p.Routing.Clone()
	c.Scheduler, c.Preemption = p.Scheduler.Clone(), p.Preemption.Clone()
	if p.PrefillRouting != nil {
		c.PrefillRouting = p.PrefillRouting.Clone()
	}
	if p.Autoscale != nil {
		c.Autoscale = p.Autoscale.Clone()
	}
	c.Trigger, c.Placement = p.Trigger.Clone(), p.Placement.Clone()
	return &c
}

// stages returns the policies in the order in which they see a request, and then the auto-scaler.
func (p *Plane) stages() []Policy {
	all := []Policy{p.Admission, p.Priority, p.Routing, p.Scheduler, p.Preemption}
	if p.PrefillRouting != nil {
		all = append(all, p.PrefillRouting)
	}
	if p.Autoscale != nil {
		all = append(all, p.Autoscale)
	}
	if p.Trigger != nil {
		all = append(all, p.Trigger)
	}
	if p.Placement != nil {
		all = append(all, p.Placement)
	}
	return all
}

// ReadsTraffic reports whether the auto-scaler reads Fleet.Traffic.
func (p *Plane) ReadsTraffic() bool { return p.Needs()&needTraffic != 0 }

// PredictsLoad reports whether the auto-scaler reads Fleet.Engine.
func (p *Plane) PredictsLoad() bool { return p.Needs()&needEngine != 0 }

// Needs returns what all policies need together.
func (p *Plane) Needs() (all Needs) {
	for _, s := range p.stages() {
		all |= s.Needs()
	}
	return all
}

// Rules returns the rules of all stages.
func (p *Plane) Rules() (all []*Rule) {
	for _, s := range p.stages() {
		all = append(all, s.Rules()...)
	}
	return all
}
