package policy

import (
	"cmp"
	"slices"

	"blis/pkg/registry"
)

// Decision trees of each stage, by what their leaves may be.

type admitTree struct{ root *branch[View, Admitter] }

// fixedVerdict is a leaf with a verdict.
type fixedVerdict struct {
	noNeeds
	verdict Verdict
}

func (a fixedVerdict) Admit(*View) Verdict { return a.verdict }
func (a fixedVerdict) Clone() Admitter     { return a }

func newAdmitTree(b *builder, s *Spec) Admitter {
	b.allowOnly(s, "root", "params")
	v, delays := b.params(s, []Param{delayParam}), false
	tree := admitTree{
		buildTree(b, s.Root, "root", viewSignals(), Admitter(alwaysAdmit{}), func(at string, n *Node) Admitter {
			if n.Use != nil {
				return build(b, n.Use, b.path+"."+at+".use", "admission policy", admissions())
			}
			if yes, ok := n.Value.(bool); ok {
				return fixedVerdict{verdict: verdict(yes)}
			}
			word, _ := n.Value.(string)
			if word == Delay.String() {
				delays = true
				return fixedVerdict{verdict: b.delay(v)}
			}
			d, ok := verdictOf(word, 0)
			if !ok {
				b.fail(at, "must be admit, reject, delay, true, false or {use: {type: …}}, is %s%s", quoted(n.Value),
					registry.Hint(word, slices.Concat(verdicts, []string{"true", "false"})))
			}
			return fixedVerdict{verdict: d}
		}),
	}
	if !delays {
		b.markUnused(v, delayParam, "no leaf of the tree delays")
	}
	return tree
}

func (t admitTree) Admit(v *View) Verdict {
	leaf, path := t.root.evalPath(v)
	d := leaf.Admit(v)
	if d.DecidedBy == "" {
		d.DecidedBy = path
	}
	return d
}
func (t admitTree) Needs() Needs    { return t.root.needs(Admitter.Needs) }
func (t admitTree) Rules() []*Rule  { return t.root.rules(Admitter.Rules) }
func (t admitTree) Clone() Admitter { return admitTree{t.root.clone(Admitter.Clone)} }

// priorityTree gives no hints, and its leaves must not: the set of hints cannot depend on the
// request.
type priorityTree struct{ root *branch[View, Prioritizer] }

// priorityLeaf is a number, like orderLeaf and victimLeaf.
type priorityLeaf struct {
	noHints
	x float64
}

func (l priorityLeaf) Priority(*View, *[MaxHints]float64) (float64, string) { return l.x, "" }
func (l priorityLeaf) Clone() Prioritizer                                   { return l }

func newPriorityTree(b *builder, s *Spec) Prioritizer {
	b.allowOnly(s, "root")
	return priorityTree{
		buildTree(b, s.Root, "root", viewSignals(), Prioritizer(constant{}), func(at string, n *Node) Prioritizer {
			if n.Use == nil {
				return priorityLeaf{x: b.leafNumber(at, n, " or {use: {type: …}}")}
			}
			p := build(b, n.Use, b.path+"."+at+".use", "priority policy", priorities())
			if len(p.Hints()) > 0 {
				b.fail(at+".use", "%s gives hints; a policy in a tree cannot", n.Use.Type)
			}
			return p
		}),
	}
}

func (t priorityTree) Priority(v *View, hints *[MaxHints]float64) (float64, string) {
	leaf, path := t.root.evalPath(v)
	x, rule := leaf.Priority(v, hints)
	return x, cmp.Or(rule, path)
}
func (t priorityTree) Hints() []string    { return nil }
func (t priorityTree) Needs() Needs       { return t.root.needs(Prioritizer.Needs) }
func (t priorityTree) Rules() []*Rule     { return t.root.rules(Prioritizer.Rules) }
func (t priorityTree) Clone() Prioritizer { return priorityTree{t.root.clone(Prioritizer.Clone)} }

// leafNumber returns the number of a leaf.
func (b *builder) leafNumber(at string, n *Node, or string) float64 {
	x, ok := number(n.Value)
	if !ok || x-x != 0 {
		b.fail(at, "must be a number%s, is %s", or, n.describe())
	}
	return x
}

// newRouteTree builds a tree that chooses a policy, or one that scores each candidate, depending on
// its leaves.
func newRouteTree(b *builder, s *Spec) Router {
	b.allowOnly(s, "root", "params")
	t := b.ties(b.params(s, tieParams))
	first := s.Root
	for first != nil && first.If != "" {
		first = first.Then
	}
	if first != nil && first.Use == nil {
		return newScoreTree(b, s, t)
	}
	return useTree{buildTree(b, s.Root, "root", viewSignals(), Router(&leastLoaded{ties: t}),
		func(at string, n *Node) Router {
			if n.Use == nil {
				b.fail(at, "must be {use: {type: …}} like the first leaf: leaves must be all policies or all numbers")
			}
			return build(b, n.Use, b.path+"."+at+".use", "routing policy", routers())
		})}
}

type useTree struct{ root *branch[View, Router] }

func (t useTree) Route(v *View) Choice {
	leaf, path := t.root.evalPath(v)
	c := leaf.Route(v)
	if c.Rule == "" {
		c.Rule = path
	}
	return c
}
func (t useTree) Needs() Needs   { return t.root.needs(Router.Needs) }
func (t useTree) Rules() []*Rule { return t.root.rules(Router.Rules) }
func (t useTree) Clone() Router  { return useTree{t.root.clone(Router.Clone)} }

// scoreTree chooses the candidate with the highest number at its leaf; a candidate for which a
// condition fails scores 0.
type scoreTree struct {
	scope  candidate
	root   *branch[candidate, float64]
	ties   ties
	scored []scoredByRule
}

// scoredByRule is the score of a candidate and the path of its leaf or failed condition.
type scoredByRule struct {
	score float64
	path  string
}

func newScoreTree(b *builder, s *Spec, t ties) Router {
	root := buildTree(b, s.Root, "root", candidateSignals(), 0, func(at string, n *Node) float64 {
		if n.Use != nil {
			b.fail(at, "must be a number like the first leaf: leaves must be all policies or all numbers")
		}
		return b.leafNumber(at, n, "")
	})
	return &scoreTree{root: root, ties: t, scored: make([]scoredByRule, b.env.Candidates)}
}

func (t *scoreTree) Route(v *View) Choice {
	t.scope.View = v
	best, n := Choice{Candidate: -1, Reason: "highest score"}, 0
	for i := range v.Replicas {
		t.scope.replica = &v.Replicas[i]
		x, path := t.root.evalPath(&t.scope)
		v.Trace.recordScore(i, x)
		t.scored[i] = scoredByRule{x, path}
		if best.Candidate < 0 || x > best.Score {
			best.Candidate, best.Score, n = i, x, 0
		}
		if x == best.Score {
			n++
		}
	}
	t.ties.settle(&best, v, n, func(i int) bool { return t.scored[i].score == best.Score })
	best.Rule = t.scored[best.Candidate].path
	return best
}

func (t *scoreTree) Needs() Needs   { return t.root.needs(func(float64) Needs { return 0 }) }
func (t *scoreTree) Rules() []*Rule { return t.root.rules(func(float64) []*Rule { return nil }) }
func (t *scoreTree) Clone() Router {
	return &scoreTree{root: t.root.clone(func(x float64) float64 { return x }), ties: t.ties,
		scored: make([]scoredByRule, len(t.scored))}
}

type orderTree struct{ root *branch[Local, Scheduler] }

type orderLeaf struct {
	noNeeds
	x float64
}

func (l orderLeaf) Order(*Local) float64 { return l.x }
func (l orderLeaf) Clone() Scheduler     { return l }

func newOrderTree(b *builder, s *Spec) Scheduler {
	b.allowOnly(s, "root")
	return orderTree{
		buildTree(
			b,
			s.Root,
			"root",
			localSignals(b.hints, false),
			Scheduler(fcfs{}),
			func(at string, n *Node) Scheduler {
				if n.Use == nil {
					return orderLeaf{x: b.leafNumber(at, n, " or {use: {type: …}}")}
				}
				return build(b, n.Use, b.path+"."+at+".use", "scheduler", schedulers())
			},
		),
	}
}

func (t orderTree) Order(l *Local) float64 { return t.root.eval(l).Order(l) }
func (t orderTree) Needs() Needs           { return t.root.needs(Scheduler.Needs) }
func (t orderTree) Rules() []*Rule         { return t.root.rules(Scheduler.Rules) }
func (t orderTree) Clone() Scheduler       { return orderTree{t.root.clone(Scheduler.Clone)} }

type victimTree struct{ root *branch[Local, Preemptor] }

type victimLeaf struct {
	noNeeds
	x float64
}

func (l victimLeaf) PreemptionScore(*Local) float64 { return l.x }
func (l victimLeaf) Clone() Preemptor               { return l }

func newVictimTree(b *builder, s *Spec) Preemptor {
	b.allowOnly(s, "root")
	return victimTree{
		buildTree(
			b,
			s.Root,
			"root",
			localSignals(b.hints, true),
			Preemptor(lastIn{}),
			func(at string, n *Node) Preemptor {
				if n.Use == nil {
					return victimLeaf{x: b.leafNumber(at, n, " or {use: {type: …}}")}
				}
				return build(b, n.Use, b.path+"."+at+".use", "preemption policy", preemptors())
			},
		),
	}
}

func (t victimTree) PreemptionScore(l *Local) float64 { return t.root.eval(l).PreemptionScore(l) }
func (t victimTree) Needs() Needs                     { return t.root.needs(Preemptor.Needs) }
func (t victimTree) Rules() []*Rule                   { return t.root.rules(Preemptor.Rules) }
func (t victimTree) Clone() Preemptor                 { return victimTree{t.root.clone(Preemptor.Clone)} }
