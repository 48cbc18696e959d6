package policy

import (
	"math"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/registry"
	"blis/pkg/script"
)

// evaluator is what a formula evaluates: a CEL expression or a function of a Starlark program.
type evaluator[T any] interface {
	Number(*T) (float64, error)
	Text(*T) (string, error)
	Flag(*T) (bool, error)
}

// formula is a compiled expression with its counts. If it fails or gives NaN, or infinity although no
// signal that it reads can be infinite, its policy falls back to a safe result and counts the failure.
type formula[T any] struct {
	evaluator[T]
	rule  *Rule
	needs Needs
	// infinite is true if it reads a signal that can be infinite.
	infinite bool
}

// newFormula compiles the expression at b.path.at.
func newFormula[T any](b *builder, at, src string, signals []signal[T], want ...expr.Type) *formula[T] {
	signals = slices.Concat(signals, memorySignals[T](b.memory.names))
	e := compile(b, at, src, fieldsOf(signals), want...)
	return &formula[T]{e, &Rule{Path: b.path + "." + at, Source: src}, needsOf(e.Uses(), signals),
		slices.Contains(e.Uses(), deadlineSignal)}
}

// clone returns a copy with its own counts, from 0.
func (f *formula[T]) clone() *formula[T] {
	if f == nil {
		return nil
	}
	c := &formula[T]{f.evaluator, &Rule{Path: f.rule.Path, Source: f.rule.Source}, f.needs, f.infinite}
	switch e := f.evaluator.(type) {
	case *expr.Expression[T]:
		c.evaluator = e.Clone()
	case *script.Function[T]:
		c.evaluator = e.Clone()
	}
	return c
}

// number evaluates f; ok is false if it failed, is NaN or infinite without a cause.
func (f *formula[T]) number(at *T) (x float64, ok bool) {
	f.rule.Evaluated++
	x, err := f.Number(at)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) && !f.infinite {
		f.fail(err)
		return 0, false
	}
	f.rule.Hits++
	return x, true
}

// flag evaluates f; a true value counts as a hit.
func (f *formula[T]) flag(at *T) (yes, ok bool) {
	f.rule.Evaluated++
	yes, err := f.Flag(at)
	if err != nil {
		f.fail(err)
		return false, false
	}
	if yes {
		f.rule.Hits++
	}
	return yes, true
}

// fail counts a failure, and keeps the first error of a program.
func (f *formula[T]) fail(err error) {
	f.rule.Failed++
	if _, ok := f.evaluator.(*script.Function[T]); ok && err != nil && f.rule.Error == "" {
		f.rule.Error = "program:" + err.Error()
	}
}

// admitExpression admits if the expression fails.
type admitExpression struct {
	*formula[View]
	// returns is the type of the expression, delay that of the verdict.
	returns expr.Type
	delay   int64
}

func newAdmitExpression(b *builder, s *Spec) Admitter {
	b.allowOnly(s, "admit", "params")
	b.requireText(s.Admit, "admit", `req.tier != "sheddable" || cluster.saturation < 1`)
	f := newFormula(b, "admit", s.Admit, viewSignals(), expr.Flag, expr.Text)
	e := f.evaluator.(*expr.Expression[View])
	checkVerdicts(b.path+".admit", e.LiteralResults())
	v := b.params(s, []Param{delayParam})
	a := &admitExpression{formula: f, returns: e.Type()}
	if a.returns == expr.Text {
		a.delay = b.delay(v).DelayUS
	}
	if !strings.Contains(s.Admit, Delay.String()) {
		b.markUnused(v, delayParam, "the expression never delays")
	}
	return a
}

// checkVerdicts rejects literals that are no verdicts.
func checkVerdicts(path string, literals []expr.Literal) {
	for _, l := range literals {
		if _, ok := verdictOf(l.Text, 1); !ok {
			panic(&Error{path, l.Line, l.Col, registry.Unknown("verdict", l.Text, verdicts).Error()})
		}
	}
}

func (a *admitExpression) Admit(v *View) Verdict {
	if a.returns == expr.Flag {
		yes, ok := a.flag(v)
		d := verdict(yes || !ok)
		d.DecidedBy = a.rule.Path
		return d
	}
	a.rule.Evaluated++
	word, err := a.Text(v)
	return a.verdict(word, err, a.delay)
}

// verdict is the verdict with a name, and counts it.
func (f *formula[T]) verdict(word string, err error, delay int64) Verdict {
	d, ok := verdictOf(word, delay)
	if err == nil && !ok {
		err = registry.Unknown("verdict", word, verdicts)
	}
	if err != nil {
		f.fail(err)
		return Verdict{DecidedBy: f.rule.Path}
	}
	if d.Action == Admit {
		f.rule.Hits++
	}
	d.DecidedBy = f.rule.Path
	return d
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
func (a *admitExpression) Clone() Admitter { return &admitExpression{a.clone(), a.returns, a.delay} }

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
	b.checkHints(p.names)
	for _, name := range p.names {
		if !isName(name) {
			b.fail("hints", "%q is not a hint name; use letters, digits and _, and no digit first", name)
		}
		p.hints = append(p.hints, newFormula(b, "hints."+name, s.Hints[name], viewSignals(), expr.Number))
	}
	return p
}

// checkHints rejects too many hints.
func (b *builder) checkHints(names []string) {
	if len(names) > MaxHints {
		b.fail("hints", "must have at most %d hints, has %d", MaxHints, len(names))
	}
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
