// Package policy is the control plane: pure choices over a View. A policy sees
// what its place in a real cluster would see, and no more: the views have no
// field for what nobody there can know, such as the length of an answer. (Which
// replicas are candidates does follow from it: those that can hold the whole
// request, as if its length had been asked for.)
//
// Policies are data. A Bundle says which policy stands at each stage, Build
// makes a Plane of it: named ones with parameters, expressions in CEL, decision
// trees, and compositions of these. A Plane has state (turns, buckets, random
// numbers); Clone makes another one that goes on from there by itself.
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

// Verdict is a decision of admission. A delayed request comes again after
// DelayUS, at least 1.
type Verdict struct {
	Action  Action
	DelayUS int64
	// Why says what decided: the path of an expression or of a leaf, or the policy's
	// type; "" where there was nothing to decide.
	Why string
	// Reason says by which number it was decided.
	Reason Reason
}

// Reason is a number and the limit that it was held to, in words only when somebody
// reads it: What is the number's name, Than how it stands to the limit. Without Than it
// is only a word.
type Reason struct {
	What  string
	Is    float64
	Than  string
	Limit float64
}

// Append appends the words to b: mean queue depth 6.25 >= 5.
func (r Reason) Append(b []byte) []byte {
	b = append(b, r.What...)
	if r.Than == "" {
		return b
	}
	b = strconv.AppendFloat(append(b, ' '), r.Is, 'g', 6, 64)
	b = append(append(append(b, ' '), r.Than...), ' ')
	return strconv.AppendFloat(b, r.Limit, 'g', 6, 64)
}

// below admits what is below a limit, upTo what is not above it.
func below(what string, x, limit float64) Verdict {
	if x < limit {
		return Verdict{Reason: Reason{what, x, "<", limit}}
	}
	return Verdict{Action: Reject, Reason: Reason{what, x, ">=", limit}}
}

func upTo(what string, x, limit float64) Verdict {
	if x <= limit {
		return Verdict{Reason: Reason{what, x, "<=", limit}}
	}
	return Verdict{Action: Reject, Reason: Reason{what, x, ">", limit}}
}

// exempt admits what no limit is for.
func exempt(what string) Verdict { return Verdict{Reason: Reason{What: what}} }

// Choice is a router's decision: a place in View.Replicas, and the score that
// won, in the policy's own unit.
type Choice struct {
	Candidate int
	Score     float64
	// Why says in a word or two what decided, Rule is the path of the leaf or
	// expression that did, "" where there is none.
	Why, Rule string
}

// Policy is what all policies have in common.
type Policy interface {
	// Needs says what it looks at.
	Needs() Needs
	// Rules are the expressions and branches in it, with how often each was
	// taken.
	Rules() []*Rule
}

// Admitter decides who gets in.
type Admitter interface {
	Policy
	Admit(*View) Verdict
	Clone() Admitter
}

// Prioritizer gives admitted requests a priority, higher is sooner, and hints
// that a replica's scheduler may read.
type Prioritizer interface {
	Policy
	// Priority also returns the path of the rule that gave it, "" where the policy has
	// none.
	Priority(v *View, hints *[MaxHints]float64) (priority float64, rule string)
	// Hints are the names of the hints, at most MaxHints.
	Hints() []string
	Clone() Prioritizer
}

// Router sends requests to replicas. Ties go to the lowest index.
type Router interface {
	Policy
	Route(*View) Choice
	Clone() Router
}

// Scheduler gives a request its place in its replica's queue when it gets
// there: the lowest first, equals as they came.
type Scheduler interface {
	Policy
	Order(*Local) float64
	Clone() Scheduler
}

// Preemptor says which running sequence gives way when blocks run out: the one
// with the highest value, of equals the one admitted last.
type Preemptor interface {
	Policy
	Victim(*Local) float64
	Clone() Preemptor
}

// plain is a policy without needs and rules, to be embedded.
type plain struct{}

func (plain) Needs() Needs   { return 0 }
func (plain) Rules() []*Rule { return nil }

// reads is a policy with these needs and without rules, to be embedded.
type reads Needs

func (r reads) Needs() Needs { return Needs(r) }
func (reads) Rules() []*Rule { return nil }

// Rule is an expression or a branch of a policy and how often it was used.
type Rule struct {
	// Path is where in the policies it stands (routing.root.then.score), Source
	// is its text; a leaf of a tree has the text of what is done there.
	Path, Source string
	// Evaluated counts its calls, of a filter or a score one for each candidate;
	// Hits those that were true, or yielded what decides (a leaf: was reached).
	Evaluated, Hits int64
	// Failed counts calls that gave an error or no number, and decisions (one each,
	// however many candidates) of which a filter kept nobody; something safe was
	// done in their place.
	Failed int64
}

// Plane is the policies of all stages, ready to decide.
type Plane struct {
	Admission  Admitter
	Priority   Prioritizer
	Routing    Router
	Scheduler  Scheduler
	Preemption Preemptor
	// Classes are the SLO classes that they name, in the order of their names.
	Classes []string
	// Delays says whether admission can delay a request; Idle is what was said of
	// the policies and has no effect.
	Delays bool
	Idle   []Idle
}

// Clone returns a plane that goes on from here by itself.
func (p *Plane) Clone() *Plane {
	return &Plane{p.Admission.Clone(), p.Priority.Clone(), p.Routing.Clone(), p.Scheduler.Clone(), p.Preemption.Clone(), p.Classes, p.Delays, p.Idle}
}

// stages are the policies in the order in which requests meet them.
func (p *Plane) stages() []Policy {
	return []Policy{p.Admission, p.Priority, p.Routing, p.Scheduler, p.Preemption}
}

// Needs is what the policies need together.
func (p *Plane) Needs() (all Needs) {
	for _, s := range p.stages() {
		all |= s.Needs()
	}
	return all
}

// Rules are those of all stages.
func (p *Plane) Rules() (all []*Rule) {
	for _, s := range p.stages() {
		all = append(all, s.Rules()...)
	}
	return all
}
