package policy

import (
	"math"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/registry"
)

// formula is a compiled expression with its counts. If it fails or gives NaN, or infinity although no
// signal that it reads can be infinite, its policy falls back to a safe result and counts the failure.
type formula[T any] struct {
	*expr.Expression[T]
	rule  *Rule
	needs Needs
	// infinite is true if it reads a signal that can be infinite.
	infinite bool
}

// newFormula compiles the expression at b.path.at.
func newFormula[T any](b *builder, at, src string, signals []signal[T], want ...expr.Type) *formula[T] {
	signals = slices.Concat(signals, memorySignals[T](b.memory.names))
	e := compile(b, at, src, fieldsOf(signals), want...)
	return &formula[T]{e, &Rule{Path: b.path + "." + at, Source: src}, needsOf(e, signals),
		slices.Contains(e.Uses(), deadlineSignal)}
}

// clone returns a copy with its own counts, from 0.
func (f *formula[T]) clone() *formula[T] {
	if f == nil {
		return nil
	}
	return &formula[T]{f.Expression.Clone(), &Rule{Path: f.rule.Path, Source: f.rule.Source}, f.needs, f.infinite}
}

// number evaluates f; ok is false if it failed, is NaN or infinite without a cause.
func (f *formula[T]) number(at *T) (x float64, ok bool) {
	f.rule.Evaluated++
	x, err := f.Expression.Number(at)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) && !f.infinite {
		f.rule.Failed++
		return 0, false
	}
	f.rule.Hits++
	return x, true
}

// flag evaluates f; a true value counts as a hit.
func (f *formula[T]) flag(at *T) (yes, ok bool) {
	f.rule.Evaluated++
	yes, err := f.Expression.Flag(at)
	if err != nil {
		f.rule.Failed++
		return false, false
	}
	if yes {
		f.rule.Hits++
	}
	return yes, true
}

// admitExpression admits if the expression fails.
type admitExpression struct {
	*formula[View]
	delay int64
}

func newAdmitExpression(b *builder, s *Spec) Admitter {
	b.allowOnly(s, "admit", "params")
	b.requireText(s.Admit, "admit", `req.tier != "sheddable" || cluster.saturation < 1`)
	f := newFormula(b, "admit", s.Admit, viewSignals(), expr.Flag, expr.Text)
	for _, l := range f.LiteralResults() {
		if _, ok := verdictOf(l.Text, 1); !ok {
			panic(&Error{b.path + ".admit", l.Line, l.Col, registry.Unknown("verdict", l.Text, verdicts).Error()})
		}
	}
	v := b.params(s, []Param{delayParam})
	a := &admitExpression{formula: f}
	if f.Type() == expr.Text {
		a.delay = b.delay(v).DelayUS
	}
	if !strings.Contains(s.Admit, Delay.String()) {
		b.markUnused(v, delayParam, "the expression never delays")
	}
	return a
}

func (a *admitExpression) Admit(v *View) Verdict {
	if a.Type() == expr.Flag {
		yes, ok := a.flag(v)
		d := verdict(yes || !ok)
		d.DecidedBy = a.rule.Path
		return d
	}
	a.rule.Evaluated++
	word, err := a.Expression.Text(v)
	d, ok := a.verdict(word)
	if err != nil || !ok {
		a.rule.Failed++
		return Verdict{DecidedBy: a.rule.Path}
	}
	if d.Action == Admit {
		a.rule.Hits++
	}
	d.DecidedBy = a.rule.Path
	return d
}

func (a *admitExpression) verdict(word string) (Verdict, bool) {
	return verdictOf(word, a.delay)
}

// verdicts are the names of the verdicts.
var verdicts = []string{Admit.String(), Reject.String(), Delay.String()}

// verdictOf returns the verdict with this name.
func verdictOf(word string, delay int64) (Verdict, bool) {
	switch word {
	case "admit":
		return Verdict{}, true
	case "reject":
		return Verdict{Action: Reject}, true
	case "delay":
		return Verdict{Action: Delay, DelayUS: delay}, true
	}
	return Verdict{}, false
}

func (a *admitExpression) Needs() Needs    { return a.needs }
func (a *admitExpression) Rules() []*Rule  { return []*Rule{a.rule} }
func (a *admitExpression) Clone() Admitter { return &admitExpression{a.clone(), a.delay} }

// priorityExpression gives 0 if an expression fails.
type priorityExpression struct {
	score *formula[View]
	names []string
	hints []*formula[View]
}

func newPriorityExpression(b *builder, s *Spec) Prioritizer {
	b.allowOnly(s, "priority", "hints")
	b.requireText(s.Priority, "priority", "req.priority - 0.001 * req.input_tokens")
	p := &priorityExpression{score: newFormula(b, "priority", s.Priority, viewSignals(), expr.Number),
		names: sortedKeys(s.Hints)}
	if len(p.names) > MaxHints {
		b.fail("hints", "must have at most %d hints, has %d", MaxHints, len(p.names))
	}
	for _, name := range p.names {
		if !isName(name) {
			b.fail("hints", "%q is not a hint name; use letters, digits and _, and no digit first", name)
		}
		p.hints = append(p.hints, newFormula(b, "hints."+name, s.Hints[name], viewSignals(), expr.Number))
	}
	return p
}

func (p *priorityExpression) Priority(v *View, hints *[MaxHints]float64) (float64, string) {
	for i, h := range p.hints {
		hints[i], _ = h.number(v)
	}
	x, _ := p.score.number(v)
	return x, p.score.rule.Path
}

func (p *priorityExpression) Hints() []string { return p.names }

func (p *priorityExpression) Needs() Needs {
	n := p.score.needs
	for _, h := range p.hints {
		n |= h.needs
	}
	return n
}

func (p *priorityExpression) Rules() []*Rule {
	all := []*Rule{p.score.rule}
	for _, h := range p.hints {
		all = append(all, h.rule)
	}
	return all
}

func (p *priorityExpression) Clone() Prioritizer {
	c := &priorityExpression{score: p.score.clone(), names: p.names}
	for _, h := range p.hints {
		c.hints = append(c.hints, h.clone())
	}
	return c
}

// orderExpression gives 0 if the expression fails.
type orderExpression struct{ *formula[Local] }

func newOrderExpression(b *builder, s *Spec) Scheduler {
	b.allowOnly(s, "order")
	b.requireText(s.Order, "order", "req.predicted_output_tokens - 10 * req.priority")
	return orderExpression{newFormula(b, "order", s.Order, localSignals(b.hints, false), expr.Number)}
}

func (o orderExpression) Order(l *Local) float64 { x, _ := o.number(l); return x }
func (o orderExpression) Needs() Needs           { return o.needs }
func (o orderExpression) Rules() []*Rule         { return []*Rule{o.rule} }
func (o orderExpression) Clone() Scheduler       { return orderExpression{o.clone()} }

// victimExpression gives 0 if the expression fails.
type victimExpression struct{ *formula[Local] }

func newVictimExpression(b *builder, s *Spec) Preemptor {
	b.allowOnly(s, "victim")
	b.requireText(s.Victim, "victim", "seq.blocks - req.priority")
	return victimExpression{newFormula(b, "victim", s.Victim, localSignals(b.hints, true), expr.Number)}
}

func (o victimExpression) PreemptionScore(l *Local) float64 { x, _ := o.number(l); return x }
func (o victimExpression) Needs() Needs                     { return o.needs }
func (o victimExpression) Rules() []*Rule                   { return []*Rule{o.rule} }
func (o victimExpression) Clone() Preemptor                 { return victimExpression{o.clone()} }

// requireText rejects a missing expression.
func (b *builder) requireText(src, at, example string) {
	if src == "" {
		b.fail(at, "must be given, such as %s", example)
	}
}

func isName(s string) bool {
	for i, r := range s {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r == '_'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
