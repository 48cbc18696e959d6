package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/expr"
	"blis/pkg/registry"
)

// Env describes the cluster that policies are built for.
type Env struct {
	// Models are the names of the models that the cluster serves.
	Models []string
	// Deployments are their ids.
	Deployments []string
	// Replicas is the number of replicas at the start, Candidates the most among which a router chooses.
	Replicas, Candidates int
	// PrefillReplicas is the number of replicas that only compute prompts, at the start, PrefillCandidates the most
	// among which a second router chooses.
	PrefillReplicas, PrefillCandidates int
	// Seed returns the seed of the named random stream.
	Seed func(stream string) uint64
}

// defaults are the policy types used for stages that a bundle omits.
var defaults = [...]string{"always-admit", "constant", "round-robin", "fcfs", "last-in"}

// stages returns the bundle's policies in the order in which they see a request.
func (b *Bundle) stages() []*Spec {
	return []*Spec{&b.Admission, &b.Priority, &b.Routing, &b.Scheduler, &b.Preemption}
}

// Complete fills in omitted policies and parameters with their defaults. Errors are left for Build.
func (b *Bundle) Complete() {
	for i, s := range b.stages() {
		if s.Type == "" {
			s.Type = defaults[i]
		}
	}
	complete(&b.Admission, admissions())
	complete(&b.Priority, priorities())
	complete(&b.Routing, routers())
	complete(&b.Scheduler, schedulers())
	complete(&b.Preemption, preemptors())
	if r := b.PrefillRouting; r != nil {
		if r.Type == "" {
			r.Type = b.Routing.Type
		}
		complete(r, routers())
	}
	if a := b.Autoscale; a != nil {
		s := a.spec()
		complete(s, autoscalers())
		a.Type, a.Params = s.Type, s.Params
		if a.Fleet != nil {
			a.Fleet.complete()
		}
	}
}

// complete fills in the parameters of s and of the policies within it.
func complete[P any](s *Spec, t table[P]) {
	inheritTie(s, t)
	for i := range s.Of {
		complete(&s.Of[i], t)
	}
	if s.Use != nil {
		complete(s.Use, t)
	}
	completeTree(s.Root, t)
	s.replaceAliases()
	i := slices.Index(t.Names(), s.Type)
	if i < 0 {
		return
	}
	switch s.Type {
	case "weighted":
		completeWeights(s)
		return
	case "llm-d":
		completeProfile(s)
		return
	}
	completeParams(s, t[i].Value.params)
}

// completeParams fills in the parameters that are not given.
func completeParams(s *Spec, params []Param) {
	for _, p := range params {
		if _, given := s.Params[p.Name]; given {
			continue
		}
		if s.Params == nil {
			s.Params = map[string]any{}
		}
		s.Params[p.Name] = p.fileDefault()
	}
}

func completeTree[P any](n *Node, t table[P]) {
	if n == nil {
		return
	}
	if n.If != "" || n.Then != nil || n.Else != nil || n.Use != nil {
		n.Value = nil // an override turned a leaf into a larger node
	}
	if n.Use != nil {
		complete(n.Use, t)
	}
	completeTree(n.Then, t)
	completeTree(n.Else, t)
}

// fileDefault is the default in the form of files.
func (p *Param) fileDefault() any {
	if t, ok := p.Default.(map[string]float64); ok {
		numbers := map[string]any{}
		for key, x := range t {
			numbers[key] = x
		}
		return numbers
	}
	return p.Default
}

// Build makes the policies of a complete bundle. Errors are *Error.
func Build(b *Bundle, env Env) (p *Plane, err error) {
	defer recoverError(&err)
	x := &builder{env: env, hintsRead: map[string]bool{}}
	p = &Plane{}
	if b.Generation < 0 {
		x.fail("generation", "must be at least 0, is %d", b.Generation)
	}
	p.Admission = build(x, &b.Admission, "admission", "admission policy", admissions())
	p.Priority = build(x, &b.Priority, "priority", "priority policy", priorities())
	x.hints = p.Priority.Hints()
	p.Routing = build(x, &b.Routing, "routing", "routing policy", routers())
	p.Scheduler = build(x, &b.Scheduler, "scheduler", "scheduler", schedulers())
	p.Preemption = build(x, &b.Preemption, "preemption", "preemption policy", preemptors())
	if r := b.prefillRouting(); env.PrefillReplicas > 0 {
		if b.PrefillRouting == nil && len(r.State) > 0 {
			x.fail("prefill_routing", "is that of routing unless it is set, and cannot have its state; set a policy")
		}
		x.env.Replicas, x.env.Candidates = env.PrefillReplicas, env.PrefillCandidates
		p.PrefillRouting = build(x, r, "prefill_routing", "routing policy", routers())
		x.env = env
	} else if b.PrefillRouting != nil {
		x.unused = append(x.unused, Unused{"prefill_routing", "no deployment is disaggregated"})
	}
	if b.Autoscale != nil {
		b.Autoscale.checkGiven()
		p.Autoscale = build(x, b.Autoscale.spec(), "autoscale", "auto-scaling policy", autoscalers())
		if t := b.Autoscale.Trigger; t != nil {
			p.Trigger = newTrigger(x, t.When)
		}
		if r := b.Autoscale.Fleet; r != nil {
			p.Placement = newPlacement(x, r)
		}
		p.TrafficUS = x.trafficUS
	}
	slices.Sort(x.classes)
	p.Classes = slices.Compact(x.classes)
	slices.Sort(x.tenants)
	p.Tenants = slices.Compact(x.tenants)
	p.Delays = x.delays
	if p.BlockIndex = defaultBlockIndex(); x.index != nil {
		p.BlockIndex = *x.index
	}
	p.Unused = append(x.unused, p.unusedHints(b, x)...)
	return p, nil
}

// recoverError recovers the error with which a builder stops.
func recoverError(err *error) {
	if r := recover(); r != nil {
		invalid, ok := r.(*Error)
		if !ok {
			panic(r)
		}
		*err = invalid
	}
}

// builder builds policies. It stops at the first error with a panic that Build recovers, so that
// nested policies need no error plumbing.
type builder struct {
	env  Env
	path string // of the policy being built
	// memory is that of the policy being built.
	memory *memoryUse
	hints  []string
	depth  int
	// classes are the SLO classes that policies name, tenants those that admission limits, unused the parts
	// without effect, hintsRead the hints that schedulers and preemption read; delays: admission can delay.
	classes   []string
	tenants   []string
	unused    []Unused
	hintsRead map[string]bool
	delays    bool
	// trafficUS is the longest time over which a policy looks at requests that have ended.
	trafficUS int64
	index     *BlockIndexConfig // of a producer, nil if there is none
}

// maxDepth limits the nesting of trees and compositions.
const maxDepth = 64

func (b *builder) fail(at, format string, args ...any) {
	path := strings.Trim(b.path+"."+at, ".")
	panic(&Error{Path: path, Msg: fmt.Sprintf(format, args...)})
}

// build builds the policy s at path.
func build[P any](b *builder, s *Spec, path, what string, t table[P]) P {
	outer, outerMemory := b.path, b.memory
	b.path = path
	if b.depth++; b.depth > maxDepth {
		b.fail("", "nests deeper than %d levels", maxDepth)
	}
	defer func() { b.path, b.memory = outer, outerMemory; b.depth-- }()
	b.memory = b.newMemory(s)
	kind, err := t.Get(what, s.Type)
	if err != nil {
		b.fail("type", "%v", err)
	}
	if !kind.composed { // composed policies check their own parts
		b.allowOnly(s, "params")
		b.params(s, kind.params)
	}
	return withMemory(b, s, kind.build(b, s))
}

// params returns the parameters of s.
func (b *builder) params(s *Spec, params []Param) values {
	for _, name := range sortedKeys(s.Params) {
		canonical := CanonicalParam(name)
		if _, both := s.Params[canonical]; both && canonical != name {
			b.fail("params."+name, "is an alias of %s, which is also given; give only one of them", canonical)
		}
	}
	v, at, err := readParams(s.Type, params, s.Params)
	if err != nil {
		if at != "" {
			at = "." + at
		}
		b.fail("params"+at, "%v", err)
	}
	return v
}

// allowOnly rejects every part of s that is not in allowed.
func (b *builder) allowOnly(s *Spec, allowed ...string) {
	for _, part := range []struct {
		name  string
		given bool
	}{
		{"params", len(s.Params) > 0}, {"admit", s.Admit != ""}, {"priority", s.Priority != ""},
		{"hints", len(s.Hints) > 0}, {"filter", s.Filter != ""}, {"score", s.Score != ""}, {"order", s.Order != ""},
		{"victim", s.Victim != ""}, {"desired", s.Desired != ""}, {"program", s.Program != ""},
		{"root", s.Root != nil}, {"use", s.Use != nil}, {"of", len(s.Of) > 0},
		{"state", len(s.State) > 0 && !hasState(b.memory.stage, s.Type)},
	} {
		if part.given && !slices.Contains(allowed, part.name) {
			b.fail(part.name, "a policy of type %s here has no %s; it takes %s", s.Type, part.name, join(allowed))
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

// compile compiles the expression src at b.path.at, and checks the names that it compares models
// and tiers with.
func compile[T any](b *builder, at, src string, fields []expr.Field[T], want ...expr.Type) *expr.Expression[T] {
	path := b.path + "." + at
	e, err := expr.Compile(src, fields, want...)
	if err != nil {
		var invalid *expr.Error
		if errors.As(err, &invalid) {
			if strings.HasPrefix(invalid.Msg, `unknown name "replica.`) &&
				!strings.Contains(invalid.Msg, "(have replica.") {
				invalid.Msg += "; replica signals are available in filters, scores and trees of numbers"
			}
			if name, ok := strings.CutPrefix(invalid.Msg, `unknown name "state.`); ok {
				name, _, _ = strings.Cut(name, `"`)
				invalid.Msg += fmt.Sprintf("; variables are declared as state: {%s: {init: 0, update: …}}", name)
			}
			panic(&Error{path, invalid.Line, invalid.Col, invalid.Msg})
		}
		panic(&Error{Path: path, Msg: err.Error()})
	}
	b.noteReads(path, e.Uses(), e.ComparedLiterals)
	return e
}

// noteReads records the signals that the text at path reads, and checks the names that it compares models and tiers
// with.
func (b *builder) noteReads(path string, uses []string, compared func(field string) []expr.Literal) {
	for _, name := range uses {
		if hint, ok := strings.CutPrefix(name, "hint."); ok {
			b.hintsRead[hint] = true
		}
		b.memory.read[name] = true
		b.memory.random = b.memory.random || name == "rand()"
	}
	for _, name := range uses {
		if key, ok := strings.CutPrefix(name, attainmentSignal+"["); ok {
			class, err := strconv.Unquote(strings.TrimSuffix(key, "]"))
			if err != nil {
				panic("policy: " + err.Error())
			}
			b.classes = append(b.classes, class)
		}
	}
	for _, l := range slices.Concat(compared("req.slo_class"), compared(attainmentSignal)) {
		b.classes = append(b.classes, l.Text)
	}
	for _, known := range []struct {
		field, what string
		names       []string
	}{{"req.model", "model of this cluster", b.env.Models}, {"req.tier", "tier", tiers},
		{idSignal, "deployment", b.env.Deployments}} {
		for _, l := range compared(known.field) {
			if l.Text != "" && !slices.Contains(known.names, l.Text) {
				panic(&Error{path, l.Line, l.Col, registry.Unknown(known.what, l.Text, known.names).Error()})
			}
		}
	}
}

var tiers = []string{Critical, Standard, Sheddable}

// sortedKeys returns the keys of m in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checkKeys rejects unknown names in a table.
func (b *builder) checkKeys(at string, keys []string, what string, have []string) {
	for _, key := range keys {
		if !slices.Contains(have, key) {
			b.fail(at+"."+key, "%v", registry.Unknown(what, key, have))
		}
	}
}

// draws returns the random numbers of the policy being built.
func (b *builder) draws() draws { return draws(b.env.Seed("policy/" + b.path)) }
