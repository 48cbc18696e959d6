package policy

import (
	"math"
	"slices"

	"blis/pkg/expr"
)

// maxVariables is the maximum number of state variables of a policy.
const maxVariables = 16

// memory is what the expressions of a policy share: its random numbers, and the variables that it
// keeps from decision to decision. The policy lends it to the view while it decides.
type memory struct {
	draws draws
	rng   rng // of the decision
	vars  []float64
	// The decision that an update follows.
	admitted bool
	priority float64
	replicas float64
}

func (m *memory) clone() *memory {
	c := *m
	c.vars = slices.Clone(m.vars)
	return &c
}

// lend puts the memory into a view, at the given place, for the decision that the key determines. The
// caller puts back what was there: the memory of the policy that this one is part of.
func (m *memory) lend(at **memory, k DrawKey) (outer *memory) {
	outer, *at = *at, m
	m.rng = m.draws.of(k)
	return outer
}

// memoryUse is a memory while its policy is built: the names of its variables, and what the policy's
// expressions read.
type memoryUse struct {
	*memory
	names []string
	stage string
	// random: an expression calls rand(). read are the variables that some expression reads other than
	// the variable's own update.
	random bool
	read   map[string]bool
}

// newMemory declares the variables of s, a policy of the given stage.
func (b *builder) newMemory(s *Spec) *memoryUse {
	m := &memoryUse{memory: &memory{draws: b.draws()}, names: sortedKeys(s.State), read: map[string]bool{}}
	m.stage = stageOf(b.path)
	if len(m.names) > maxVariables {
		b.fail("state", "must have at most %d variables, has %d", maxVariables, len(m.names))
	}
	for _, name := range m.names {
		v := s.State[name]
		switch {
		case !isName(name):
			b.fail("state", "%q is not a name; use letters, digits and _, and no digit first", name)
		case v.Init-v.Init != 0:
			b.fail("state."+name+".init", "must be a finite number, is %g", v.Init)
		case v.Update == "":
			b.fail("state."+name+".update", "must be given, such as state.%s + 1", name)
		}
		m.vars = append(m.vars, v.Init)
	}
	return m
}

// stageOf returns the stage of the policy at a path.
func stageOf(path string) string {
	for i, r := range path {
		if r == '.' {
			return path[:i]
		}
	}
	return path
}

// hasState reports whether a policy can have variables. Those of schedulers and preemption cannot: all
// replicas share the policy, and a real replica does not know what others did.
func hasState(stage, policyType string) bool {
	return slices.Contains([]string{"admission", "priority", "routing", "autoscale"}, stage) &&
		slices.Contains([]string{"expression", "starlark", "tree", "filter"}, policyType)
}

// memoryOf returns how to find the memory lent to a T, which is a View, a candidate, a Local or a Fleet.
func memoryOf[T any]() func(*T) *memory {
	var of any
	switch any((*T)(nil)).(type) {
	case *View:
		of = func(v *View) *memory { return v.memory }
	case *candidate:
		of = func(c *candidate) *memory { return c.View.memory }
	case *Local:
		of = func(l *Local) *memory { return l.memory }
	case *Fleet:
		of = func(f *Fleet) *memory { return f.memory }
	}
	return of.(func(*T) *memory)
}

// memorySignals are the signals of a memory with these variables.
func memorySignals[T any](names []string) []signal[T] {
	of := memoryOf[T]()
	all := []signal[T]{num("rand()", "Uniform random number from 0 to below 1, from the policy's own stream; another "+
		"one each time it is evaluated.", 0, func(t *T) float64 { return of(t).rng.float() })}
	for i, name := range names {
		all = append(all, num("state."+name, "Variable that the policy declares under state.", 0,
			func(t *T) float64 { return of(t).vars[i] }))
	}
	return all
}

// decisionSignals are what updates know of the decision that they follow.
func decisionSignals[T any](stage string) []signal[T] {
	of := memoryOf[T]()
	switch stage {
	case "admission":
		return []signal[T]{flag("decision.admitted", "Whether the request was admitted; only in updates of state.", 0,
			func(t *T) bool { return of(t).admitted })}
	case "priority":
		return []signal[T]{num("decision.priority", "The priority given; only in updates of state.", 0,
			func(t *T) float64 { return of(t).priority })}
	case "autoscale":
		return []signal[T]{num("decision.replicas", "The number recommended; only in updates of state.", 0,
			func(t *T) float64 { return of(t).replicas })}
	}
	return nil
}

// updates are the update expressions of a memory's variables.
type updates[T any] struct {
	*memory
	formulas []*formula[T]
	next     []float64
}

// newUpdates compiles the updates of the policy being built.
func newUpdates[T any](b *builder, s *Spec, signals []signal[T]) *updates[T] {
	m := b.memory
	u := &updates[T]{memory: m.memory, next: make([]float64, len(m.vars))}
	signals = slices.Concat(signals, decisionSignals[T](m.stage))
	for _, name := range m.names {
		before := m.read["state."+name]
		u.formulas = append(u.formulas,
			newFormula(b, "state."+name+".update", s.State[name].Update, signals, expr.Number))
		m.read["state."+name] = before
	}
	return u
}

// run computes all variables from their old values. A variable whose update fails or is not finite
// stays as it is.
func (u *updates[T]) run(at *T) {
	for i, f := range u.formulas {
		x, ok := f.number(at)
		if ok && math.IsInf(x, 0) {
			f.rule.Hits--
			f.rule.Failed++
			ok = false
		}
		if u.next[i] = x; !ok {
			u.next[i] = u.vars[i]
		}
	}
	copy(u.vars, u.next)
}

func (u *updates[T]) clone() *updates[T] {
	c := &updates[T]{memory: u.memory.clone(), next: make([]float64, len(u.next))}
	for _, f := range u.formulas {
		c.formulas = append(c.formulas, f.clone())
	}
	return c
}

func (u *updates[T]) needs() (n Needs) {
	for _, f := range u.formulas {
		n |= f.needs
	}
	return n
}

func (u *updates[T]) rules() (all []*Rule) {
	for _, f := range u.formulas {
		all = append(all, f.rule)
	}
	return all
}
