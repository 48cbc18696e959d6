package policy

import (
	"math"

	"blis/pkg/expr"
)

// replicasExpression computes the number of replicas. If it fails, the number stays.
type replicasExpression struct{ *formula[Fleet] }

func newReplicasExpression(b *builder, s *Spec) Autoscaler {
	b.allowOnly(s, "desired")
	b.requireText(s.Desired, "desired", "deployment.inflight / 20")
	return replicasExpression{newFormula(b, "desired", s.Desired, deploymentSignals(), expr.Number)}
}

func (e replicasExpression) Recommend(f *Fleet) Recommendation {
	x, ok := e.number(f)
	if !ok {
		return stay(f, "the expression failed")
	}
	return wanted(x, e.rule.Source)
}

func (e replicasExpression) Needs() Needs      { return e.needs }
func (e replicasExpression) Rules() []*Rule    { return []*Rule{e.rule} }
func (e replicasExpression) Clone() Autoscaler { return replicasExpression{e.clone()} }

// stay recommends the present number.
func stay(f *Fleet, why string) Recommendation {
	return Recommendation{f.Current(), Reason{Quantity: why}}
}

// wanted recommends a number that need not be whole: it is rounded up.
func wanted(x float64, why string) Recommendation {
	n := int(math.Ceil(min(max(x, 0), maxWanted) - 1e-9))
	return Recommendation{n, Reason{why, x, "->", float64(n)}}
}

// maxWanted is more than any deployment has.
const maxWanted = 1 << 30

// replicasTree chooses a policy or a number of replicas, which may be an expression. If a condition fails, the number
// stays.
type replicasTree struct{ root *branch[Fleet, Autoscaler] }

// keepReplicas recommends the present number.
type keepReplicas struct{ noNeeds }

func (keepReplicas) Recommend(f *Fleet) Recommendation { return stay(f, "a condition failed") }
func (k keepReplicas) Clone() Autoscaler               { return k }

// fixedReplicas recommends a number.
type fixedReplicas struct {
	noNeeds
	x float64
}

func (c fixedReplicas) Recommend(*Fleet) Recommendation { return wanted(c.x, "leaf") }
func (c fixedReplicas) Clone() Autoscaler               { return c }

func newReplicasTree(b *builder, s *Spec) Autoscaler {
	b.allowOnly(s, "root")
	return replicasTree{buildTree(b, s.Root, "root", deploymentSignals(), Autoscaler(keepReplicas{}),
		func(at string, n *Node) Autoscaler {
			if n.Use != nil {
				return build(b, n.Use, b.path+"."+at+".use", "auto-scaling policy", autoscalers())
			}
			if src, ok := n.Value.(string); ok {
				return replicasExpression{newFormula(b, at, src, deploymentSignals(), expr.Number)}
			}
			return fixedReplicas{x: b.leafNumber(at, n, ", an expression or {use: {type: …}}")}
		})}
}

func (t replicasTree) Recommend(f *Fleet) Recommendation {
	leaf, _ := t.root.evalPath(f)
	return leaf.Recommend(f)
}

func (t replicasTree) Needs() Needs      { return t.root.needs(Autoscaler.Needs) }
func (t replicasTree) Rules() []*Rule    { return t.root.rules(Autoscaler.Rules) }
func (t replicasTree) Clone() Autoscaler { return replicasTree{t.root.clone(Autoscaler.Clone)} }

// statefulAutoscaler lends its memory to the fleet while the policy within decides, and updates it afterward.
type statefulAutoscaler struct {
	Autoscaler
	updates *updates[Fleet]
}

func (p *statefulAutoscaler) Recommend(f *Fleet) Recommendation {
	outer := p.updates.lend(&f.memory, DrawKey{Request: f.NowUS})
	r := p.Autoscaler.Recommend(f)
	p.updates.replicas = float64(r.Replicas)
	p.updates.run(f)
	f.memory = outer
	return r
}

func (p *statefulAutoscaler) Needs() Needs { return p.Autoscaler.Needs() | p.updates.needs() }
func (p *statefulAutoscaler) Rules() []*Rule {
	return append(p.Autoscaler.Rules(), p.updates.rules()...)
}
func (p *statefulAutoscaler) Clone() Autoscaler {
	return &statefulAutoscaler{p.Autoscaler.Clone(), p.updates.clone()}
}

// Trigger says when an auto-scaler looks: when a condition has held at all checks for some time.
type Trigger struct{ *formula[Fleet] }

// newTrigger compiles the condition of a trigger.
func newTrigger(b *builder, src string) *Trigger {
	outer, outerMemory := b.path, b.memory
	defer func() { b.path, b.memory = outer, outerMemory }()
	b.path = "autoscale.trigger"
	b.memory = b.newMemory(&Spec{})
	b.requireText(src, "when", "deployment.pending > 0")
	t := &Trigger{newFormula(b, "when", src, deploymentSignals(), expr.Flag)}
	b.refuseRandom()
	return t
}

// Holds reports whether the condition holds; it does not if it fails.
func (t *Trigger) Holds(f *Fleet) bool {
	yes, ok := t.flag(f)
	return yes && ok
}

// Needs returns which fields the condition reads.
func (t *Trigger) Needs() Needs { return t.needs }

// Rules returns the condition.
func (t *Trigger) Rules() []*Rule { return []*Rule{t.rule} }

// Clone returns a copy with its own counts; t may be nil.
func (t *Trigger) Clone() *Trigger {
	if t == nil {
		return nil
	}
	return &Trigger{t.clone()}
}
