package policy

import (
	"cmp"

	"blis/pkg/expr"
)

// FleetRules say which deployment of a fleet, the deployments that scale of one model, gets a new replica or loses
// one: the one with the highest number. Both are CEL expressions over the signals of one deployment.
type FleetRules struct {
	Grow   string `yaml:"grow" json:"grow"`
	Shrink string `yaml:"shrink" json:"shrink"`
}

// The rules where a file gives none: the cheapest grows, the dearest shrinks.
const (
	cheapest = "-deployment.price"
	dearest  = "deployment.price"
)

// complete sets the rules that are not given.
func (r *FleetRules) complete() {
	r.Grow, r.Shrink = cmp.Or(r.Grow, cheapest), cmp.Or(r.Shrink, dearest)
}

// Placement is FleetRules, ready to decide.
type Placement struct {
	grow, shrink *formula[Fleet]
	readsPrice   bool
}

// newPlacement compiles complete rules.
func newPlacement(b *builder, r *FleetRules) *Placement {
	outer, outerMemory := b.path, b.memory
	defer func() { b.path, b.memory = outer, outerMemory }()
	b.path = "autoscale.fleet"
	b.memory = b.newMemory(&Spec{})
	p := &Placement{grow: newFormula(b, "grow", r.Grow, memberSignals(), expr.Number),
		shrink: newFormula(b, "shrink", r.Shrink, memberSignals(), expr.Number)}
	p.readsPrice = b.memory.read[priceSignal]
	b.refuseRandom()
	return p
}

// refuseRandom rejects random numbers in expressions that have no stream of them.
func (b *builder) refuseRandom() {
	if b.memory.random {
		b.fail("", "rand() is not available here")
	}
}

// Score is the number of a deployment that may grow or, if grows is false, shrink. It is not ok if its expression
// fails.
func (p *Placement) Score(f *Fleet, grows bool) (x float64, ok bool) { return p.rule(grows).number(f) }

// Source is the text of the rule.
func (p *Placement) Source(grows bool) string { return p.rule(grows).rule.Source }

func (p *Placement) rule(grows bool) *formula[Fleet] {
	if grows {
		return p.grow
	}
	return p.shrink
}

// ReadsPrice reports whether a rule reads the price of a deployment.
func (p *Placement) ReadsPrice() bool { return p.readsPrice }

// Needs returns which fields the rules read.
func (p *Placement) Needs() Needs { return p.grow.needs | p.shrink.needs }

// Rules returns both rules.
func (p *Placement) Rules() []*Rule { return []*Rule{p.grow.rule, p.shrink.rule} }

// Clone returns a copy with its own counts; p may be nil.
func (p *Placement) Clone() *Placement {
	if p == nil {
		return nil
	}
	return &Placement{p.grow.clone(), p.shrink.clone(), p.readsPrice}
}
