package policy

import (
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/script"
)

// program has the functions of a Starlark program by name, with their counts.
type program[T any] struct {
	functions map[string]*formula[T]
	verdicts  []expr.Literal // that admit returns
}

// newProgram compiles the program of s. The first hook must be defined. Functions see the signals of expressions but
// rand(), and replicas if lists has them.
func newProgram[T any](b *builder, s *Spec, signals []signal[T], lists []script.List[T],
	hooks ...script.Hook) *program[T] {
	b.requireText(s.Program, "program", "def "+hooks[0].Name+"(req): return …")
	path := b.path + ".program"
	for _, m := range memorySignals[T](b.memory.names) {
		if m.Name != "rand()" {
			signals = append(slices.Clip(signals), m)
		}
	}
	functions, err := script.Compile(s.Program, &script.Scope[T]{Fields: fieldsOf(signals), Lists: lists}, hooks)
	if err != nil {
		invalid := err.(*expr.Error)
		panic(&Error{path, invalid.Line, invalid.Col, invalid.Msg})
	}
	if functions[hooks[0].Name] == nil {
		b.fail("program", "defines no function %s", hooks[0].Name)
	}
	p := &program[T]{functions: map[string]*formula[T]{}, verdicts: functions[hooks[0].Name].LiteralResults()}
	for _, name := range sortedKeys(functions) {
		f := functions[name]
		needs := needsOf(f.Uses(), signals)
		if lists != nil {
			needs |= needsOf(f.Uses(), replicaSignals())
		}
		at := name
		if hint, ok := strings.CutPrefix(name, hintPrefix); ok {
			at = "hints." + hint
		}
		p.functions[name] = &formula[T]{f, &Rule{Path: b.path + "." + at, Source: f.Signature()}, needs,
			slices.Contains(f.Uses(), deadlineSignal)}
		b.noteReads(path, f.Uses(), f.ComparedLiterals)
	}
	return p
}

const hintPrefix = "hint_"

// viewReplicas and candidateReplicas are the candidates, as a list.
func viewReplicas() []script.List[View] {
	return []script.List[View]{script.NewList("replicas", "replica", fieldsOf(replicaSignals()),
		func(v *View) int { return len(v.Replicas) },
		func(v *View, i int) candidate { return candidate{v, &v.Replicas[i]} })}
}

func candidateReplicas() []script.List[candidate] {
	return []script.List[candidate]{script.NewList("replicas", "replica", fieldsOf(replicaSignals()),
		func(c *candidate) int { return len(c.View.Replicas) },
		func(c *candidate, i int) candidate { return candidate{c.View, &c.View.Replicas[i]} })}
}

func numberHook(name string) script.Hook {
	return script.Hook{Name: name, Want: []expr.Type{expr.Number}}
}

// admitProgram admits if the function fails.
type admitProgram struct {
	*formula[View]
	delay int64
}

func newAdmitProgram(b *builder, s *Spec) Admitter {
	b.allowOnly(s, "program", "params")
	p := newProgram(b, s, viewSignals(), viewReplicas(),
		script.Hook{Name: "admit", Want: []expr.Type{expr.Flag, expr.Text}})
	checkVerdicts(b.path+".program", p.verdicts)
	v := b.params(s, []Param{delayParam})
	a := &admitProgram{formula: p.functions["admit"]}
	if strings.Contains(s.Program, Delay.String()) {
		a.delay = b.delay(v).DelayUS
	} else {
		b.markUnused(v, delayParam, "the program never delays")
	}
	return a
}

func (a *admitProgram) Admit(v *View) Verdict {
	a.rule.Evaluated++
	yes, word, isText, err := a.evaluator.(*script.Function[View]).FlagOrText(v)
	if err == nil && !isText {
		if word = Reject.String(); yes {
			word = Admit.String()
		}
	}
	return a.verdict(word, err, a.delay)
}

func (a *admitProgram) Needs() Needs    { return a.needs }
func (a *admitProgram) Rules() []*Rule  { return []*Rule{a.rule} }
func (a *admitProgram) Clone() Admitter { return &admitProgram{a.clone(), a.delay} }

func newPriorityProgram(b *builder, s *Spec) Prioritizer {
	b.allowOnly(s, "program")
	p := newProgram(b, s, viewSignals(), viewReplicas(), numberHook("priority"),
		script.Hook{Name: hintPrefix, Want: []expr.Type{expr.Number}, Prefix: true})
	x := &priorityExpression{score: p.functions["priority"]}
	for _, name := range sortedKeys(p.functions) {
		if hint, ok := strings.CutPrefix(name, hintPrefix); ok {
			x.names, x.hints = append(x.names, hint), append(x.hints, p.functions[name])
		}
	}
	b.checkHints(x.names)
	return x
}

func newRouteProgram(b *builder, s *Spec) Router {
	b.allowOnly(s, "program", "params")
	p := newProgram(b, s, candidateSignals(), candidateReplicas(), numberHook("score"),
		script.Hook{Name: "filter", Want: []expr.Type{expr.Flag}})
	return newScoredRoute(b, s, p.functions["score"], p.functions["filter"])
}

func newOrderProgram(b *builder, s *Spec) Scheduler {
	b.allowOnly(s, "program")
	p := newProgram(b, s, localSignals(b.hints, false), nil, numberHook("order"))
	return orderExpression{p.functions["order"]}
}

func newVictimProgram(b *builder, s *Spec) Preemptor {
	b.allowOnly(s, "program")
	p := newProgram(b, s, localSignals(b.hints, true), nil, numberHook("victim"))
	return victimExpression{p.functions["victim"]}
}

func newReplicasProgram(b *builder, s *Spec) Autoscaler {
	b.allowOnly(s, "program")
	p := newProgram(b, s, deploymentSignals(), nil, numberHook("desired"))
	return replicasExpression{p.functions["desired"]}
}
