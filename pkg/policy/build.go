package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/registry"
)

// Env is what policies are built for.
type Env struct {
	// Models are the names of the models that the cluster serves.
	Models []string
	// Replicas is how many replicas there are.
	Replicas int
	// Seed returns the seed of the random stream of that name.
	Seed func(stream string) uint64
}

// Defaults are the types of policies that a bundle leaves out.
var defaults = [...]string{"always-admit", "constant", "round-robin", "fcfs", "last-in"}

// stages are the bundle's policies in the order in which requests meet them.
func (b *Bundle) stages() []*Spec {
	return []*Spec{&b.Admission, &b.Priority, &b.Routing, &b.Scheduler, &b.Preemption}
}

// Complete names the policies that are left out and gives all of them the
// parameters that they do not state. Faults are left for Build.
func (b *Bundle) Complete() {
	for i, s := range b.stages() {
		if s.Type == "" {
			s.Type = defaults[i]
		}
	}
	complete(&b.Admission, Admissions())
	complete(&b.Priority, Priorities())
	complete(&b.Routing, Routers())
	complete(&b.Scheduler, Schedulers())
	complete(&b.Preemption, Preemptors())
}

// complete fills in the parameters of s and of the policies within it.
func complete[P any](s *Spec, t table[P]) {
	for i := range s.Of {
		complete(&s.Of[i], t)
	}
	if s.Use != nil {
		complete(s.Use, t)
	}
	completeTree(s.Root, t)
	i := slices.Index(t.Names(), s.Type)
	if i < 0 {
		return
	}
	if s.Type == "weighted" {
		completeWeights(s)
		return
	}
	for _, p := range t[i].Value.params {
		if _, given := s.Params[p.Name]; given {
			continue
		}
		if s.Params == nil {
			s.Params = map[string]any{}
		}
		s.Params[p.Name] = p.plain()
	}
}

func completeTree[P any](n *Node, t table[P]) {
	if n == nil {
		return
	}
	if n.If != "" || n.Then != nil || n.Else != nil || n.Use != nil {
		n.Value = nil // a set has made more of what was a leaf
	}
	if n.Use != nil {
		complete(n.Use, t)
	}
	completeTree(n.Then, t)
	completeTree(n.Else, t)
}

// plain is the default as files have it.
func (p *Param) plain() any {
	if t, ok := p.Default.(map[string]float64); ok {
		plain := map[string]any{}
		for key, x := range t {
			plain[key] = x
		}
		return plain
	}
	return p.Default
}

// Build makes the policies of a complete bundle. Faults are *Error.
func Build(b *Bundle, env Env) (p *Plane, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			err = fault
		}
	}()
	x := &builder{env: env, read: map[string]bool{}}
	p = &Plane{}
	if b.Generation < 0 {
		x.fail("generation", "must be at least 0, is %d", b.Generation)
	}
	p.Admission = build(x, &b.Admission, "admission", "admission policy", Admissions())
	p.Priority = build(x, &b.Priority, "priority", "priority policy", Priorities())
	x.hints = p.Priority.Hints()
	p.Routing = build(x, &b.Routing, "routing", "routing policy", Routers())
	p.Scheduler = build(x, &b.Scheduler, "scheduler", "scheduler", Schedulers())
	p.Preemption = build(x, &b.Preemption, "preemption", "preemption policy", Preemptors())
	slices.Sort(x.classes)
	p.Classes = slices.Compact(x.classes)
	p.Delays = x.delays
	p.Idle = append(x.idles, p.unread(b, x)...)
	return p, nil
}

// builder builds policies. It stops at the first fault by a panic that Build
// catches, so that nested policies need no plumbing.
type builder struct {
	env   Env
	path  string // of what is being built
	hints []string
	depth int
	// classes are the SLO classes that policies name, idles what has no effect, read
	// the hints that schedulers and preemption read; delays: admission can delay.
	classes []string
	idles   []Idle
	read    map[string]bool
	delays  bool
}

// maxDepth bounds how deep trees and compositions nest.
const maxDepth = 64

func (b *builder) fail(at, format string, args ...any) {
	path := strings.Trim(b.path+"."+at, ".")
	panic(&Error{Path: path, Msg: fmt.Sprintf(format, args...)})
}

// build makes the policy of s, which stands at path.
func build[P any](b *builder, s *Spec, path, what string, t table[P]) P {
	outer := b.path
	b.path = path
	if b.depth++; b.depth > maxDepth {
		b.fail("", "nests deeper than %d levels", maxDepth)
	}
	defer func() { b.path = outer; b.depth-- }()
	kind, err := t.Get(what, s.Type)
	if err != nil {
		b.fail("type", "%v", err)
	}
	if !kind.composed { // composed ones look themselves
		b.refuse(s, "params")
		b.params(s, kind.params)
	}
	return kind.build(b, s)
}

// params returns the parameters of s.
func (b *builder) params(s *Spec, params []Param) values {
	for _, name := range sortedKeys(s.Params) {
		own := ParamName(name)
		if _, both := s.Params[own]; both && own != name {
			b.fail("params."+name, "is another name of %s, which is given too; give one of them", own)
		}
	}
	v, at, err := read(s.Type, params, s.Params)
	if err != nil {
		if at != "" {
			at = "." + at
		}
		b.fail("params"+at, "%v", err)
	}
	return v
}

// refuse refuses every part of s but those that it may have.
func (b *builder) refuse(s *Spec, may ...string) {
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"params", len(s.Params) > 0}, {"admit", s.Admit != ""}, {"priority", s.Priority != ""}, {"hints", len(s.Hints) > 0},
		{"filter", s.Filter != ""}, {"score", s.Score != ""}, {"order", s.Order != ""}, {"victim", s.Victim != ""},
		{"root", s.Root != nil}, {"use", s.Use != nil}, {"of", len(s.Of) > 0},
	} {
		if part.given && !slices.Contains(may, part.name) {
			b.fail(part.name, "a policy of type %s here has no %s; it takes %s", s.Type, part.name, join(may))
		}
	}
}

func join(names []string) string {
	switch len(names) {
	case 0:
		return "nothing"
	case 1:
		return names[0]
	}
	text := names[0]
	for _, n := range names[1 : len(names)-1] {
		text += ", " + n
	}
	return text + " and " + names[len(names)-1]
}

// compile compiles the expression src, which stands at b.path.at, and checks
// the names that it compares models and tiers with.
func compile[T any](b *builder, at, src string, fields []expr.Field[T], want ...expr.Type) *expr.Expression[T] {
	path := b.path + "." + at
	e, err := expr.Compile(src, fields, want...)
	if err != nil {
		var fault *expr.Error
		if errors.As(err, &fault) {
			if strings.HasPrefix(fault.Msg, `unknown name "replica.`) && !strings.Contains(fault.Msg, "(have replica.") {
				fault.Msg += "; signals of a replica are for filters, scores, and trees of numbers"
			}
			panic(&Error{path, fault.Line, fault.Col, fault.Msg})
		}
		panic(&Error{Path: path, Msg: err.Error()})
	}
	for _, name := range e.Uses() {
		if hint, ok := strings.CutPrefix(name, "hint."); ok {
			b.read[hint] = true
		}
	}
	for _, l := range e.Compared("req.slo_class") {
		b.classes = append(b.classes, l.Text)
	}
	for _, known := range []struct {
		field, what string
		names       []string
	}{{"req.model", "model of this cluster", b.env.Models}, {"req.tier", "tier", tiers}} {
		for _, l := range e.Compared(known.field) {
			if l.Text != "" && !slices.Contains(known.names, l.Text) {
				panic(&Error{path, l.Line, l.Col, registry.Unknown(known.what, l.Text, known.names).Error()})
			}
		}
	}
	return e
}

var tiers = []string{Critical, Standard, Sheddable}

// sortedKeys are those of a table of numbers.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checkKeys refuses names in a table that cannot be.
func (b *builder) checkKeys(at string, keys []string, what string, have []string) {
	for _, key := range keys {
		if !slices.Contains(have, key) {
			b.fail(at+"."+key, "%v", registry.Unknown(what, key, have))
		}
	}
}

// dice returns random numbers for the policy that is being built.
func (b *builder) dice() dice { return dice(b.env.Seed("policy/" + b.path)) }
