package policy

import (
	"fmt"
	"slices"
	"strings"
)

// profile is a scheduling profile of llm-d-router (v0.10.0, pkg/epp/scheduling/scheduler_profile.go):
// filters in turn narrow the candidates, the weighted sum of the scorers ranks those that are left,
// and a picker chooses. Plugins have llm-d's names, parameters and defaults.
//
// Where the filters leave no candidate, llm-d answers the request with an error. Here all candidates
// are then scored, and the decision counts as a failure of the filters.
type profile struct {
	needs
	filters []llmdFilter
	terms   []term
	names   []string // of the terms
	picker  picker
	rule    *Rule // of the filters, nil without filters
	view    View
	kept    []Replica
	indexes []int // of the kept candidates, in the full view
	keep    []bool
	scores  []float64
	total   []float64
}

// llmdFilter drops candidates: it sets their elements of keep, which are all true before, to false.
type llmdFilter interface {
	Needs() Needs
	filter(v *View, keep []bool)
	cloneFilter() llmdFilter
}

// defaultProfile returns the profile of llm-d-router without a configuration (v0.10.0,
// pkg/epp/config/loader/defaults.go).
func defaultProfile() []Spec {
	weighted := func(plugin string, weight float64) Spec {
		return Spec{Type: plugin, Params: map[string]any{"weight": weight}}
	}
	return []Spec{weighted("queue-scorer", 2), weighted("kv-cache-utilization-scorer", 2),
		weighted("prefix-cache-scorer", 3)}
}

// completeProfile fills in the default profile and the defaults of the plugins' parameters.
func completeProfile(s *Spec) {
	if len(s.Of) == 0 {
		s.Of = defaultProfile()
	}
	plugins := llmdPlugins()
	for i := range s.Of {
		if k := slices.Index(plugins.Names(), s.Of[i].Type); k >= 0 {
			completeParams(&s.Of[i], plugins[k].Value.params)
		}
	}
}

func newProfile(b *builder, s *Spec) Router {
	b.allowOnly(s, "of")
	p := &profile{}
	outer := b.path
	for i := range s.Of {
		b.path = fmt.Sprintf("%s.of[%d]", outer, i)
		p.add(b, &s.Of[i])
	}
	b.path = outer
	if p.picker.name == "" {
		p.picker = b.llmdPicker(pickMaxScore)
	}
	if len(p.filters) > 0 {
		p.rule = &Rule{Path: outer + ".of", Source: "filters"}
	}
	p.reserve(b.env.Candidates)
	return p
}

// add adds a plugin to the profile.
func (p *profile) add(b *builder, s *Spec) {
	plugin, err := llmdPlugins().Get("plugin of llm-d", s.Type)
	if err != nil {
		b.fail("type", "%v", err)
	}
	b.allowOnly(s, "params")
	v := b.params(s, plugin.params)
	part := plugin.build(b, v)
	for _, u := range plugin.unused(v) {
		b.markUnusedNamed(v, plugin.params, u.Reason, strings.Fields(u.Path)...)
	}
	if f, ok := part.(llmdFilter); ok {
		p.filters, p.needs = append(p.filters, f), p.needs|needs(f.Needs())
	}
	if t, ok := part.(scorer); ok && v.number("weight") > 0 {
		p.terms, p.names = append(p.terms, term{v.number("weight"), t}), append(p.names, s.Type)
		p.needs |= needs(t.Needs())
	}
	if k, ok := part.(picker); ok {
		if p.picker.name != "" {
			b.fail("type", "a profile has one picker, this is the second")
		}
		p.picker = k
	}
}

// llmdPicker returns a picker of llm-d, which draws among the candidates with the highest score.
func (b *builder) llmdPicker(name string) picker {
	return picker{name, b.draws(), b.tiesBy(tieRandom)}
}

func (p *profile) reserve(n int) {
	p.kept, p.indexes, p.keep = make([]Replica, 0, n), make([]int, 0, n), make([]bool, n)
	p.scores, p.total = make([]float64, n), make([]float64, n)
}

func (p *profile) Route(v *View) Choice {
	inner := p.narrow(v)
	n := len(inner.Replicas)
	scores, total := p.scores[:n], p.total[:n]
	clear(total)
	for i := range p.terms {
		p.terms[i].addTo(total, inner, scores, v.Trace)
	}
	v.Trace.recordScorers(p.names)
	v.Trace.recordTotals(total)
	c := p.picker.pick(inner, total)
	for _, f := range p.filters {
		recordChoice(f, inner, c.Candidate)
	}
	for _, t := range p.terms {
		recordChoice(t.scorer, inner, c.Candidate)
	}
	if inner != v {
		c.Candidate = p.indexes[c.Candidate]
		v.Trace.expand(p.indexes, len(v.Replicas))
	}
	return c
}

// recordChoice reports the choice to a plugin that keeps it.
func recordChoice(plugin any, v *View, c int) {
	if m, ok := plugin.(choiceRecorder); ok {
		m.recordChoice(v, c)
	}
}

// narrow returns a view of the candidates that pass the filters: v itself if all do or none does.
func (p *profile) narrow(v *View) *View {
	if len(p.filters) == 0 {
		return v
	}
	p.rule.Evaluated++
	p.view = *v
	p.kept, p.indexes = append(p.kept[:0], v.Replicas...), p.indexes[:0]
	for i := range v.Replicas {
		p.indexes = append(p.indexes, i)
	}
	for _, f := range p.filters {
		p.view.Replicas = p.kept
		keep := p.keep[:len(p.kept)]
		for i := range keep {
			keep[i] = true
		}
		f.filter(&p.view, keep)
		n := 0
		for i, yes := range keep {
			if yes {
				p.kept[n], p.indexes[n] = p.kept[i], p.indexes[i]
				n++
			}
		}
		p.kept, p.indexes = p.kept[:n], p.indexes[:n]
		if n == 0 {
			p.rule.Failed++
			return v
		}
	}
	p.rule.Hits++
	if len(p.kept) == len(v.Replicas) {
		return v
	}
	p.view.Replicas = p.kept
	for i := range v.Replicas {
		if !slices.Contains(p.indexes, i) {
			v.Trace.recordFiltered(i)
		}
	}
	return &p.view
}

func (p *profile) Rules() []*Rule {
	if p.rule == nil {
		return nil
	}
	return []*Rule{p.rule}
}

func (p *profile) Clone() Router {
	c := &profile{needs: p.needs, names: p.names, picker: p.picker}
	for _, f := range p.filters {
		c.filters = append(c.filters, f.cloneFilter())
	}
	for _, t := range p.terms {
		c.terms = append(c.terms, term{t.weight, t.clone()})
	}
	if p.rule != nil {
		c.rule = &Rule{Path: p.rule.Path, Source: p.rule.Source}
	}
	c.reserve(len(p.scores))
	return c
}
