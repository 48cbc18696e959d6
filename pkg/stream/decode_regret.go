package stream

import (
	"slices"

	"blis/pkg/registry"
)

// Regret decodes the record at hand into g. What the line leaves out is absent in g.
func (r *Reader) Regret(g *Regret) error {
	r.scan.reset(r.line)
	return r.located(g.decode(&r.scan))
}

// decode reads one line into g.
func (g *Regret) decode(s *scanner) error {
	*g = Regret{Kind: KindRegret}
	m := members{object: regretObject}
	for s.each(&m) {
		switch f := m.field; f.Name {
		case "kind":
			s.kind(f)
		case "decision":
			g.Decision = s.text(f)
		case "request":
			g.Request = s.text(f)
		case "stage":
			g.Stage = s.name(f)
		case "method":
			g.Method = s.name(f)
		case "hindsight_ms":
			g.HindsightMS = s.some(f)
		case "avoidable_ms":
			g.AvoidableMS = s.some(f)
		case "alternatives":
			g.Alternatives = []Alternative{}
			for n := 0; s.element(f, n); n++ {
				var a Alternative
				if a.decode(s); s.err != nil {
					s.within(f, n)
					return s.err
				}
				g.Alternatives = append(g.Alternatives, a)
			}
		}
	}
	if err := s.finish(); err != nil {
		return err
	}
	if !slices.Contains(regretStages, g.Stage) {
		return registry.Unknown("stage", g.Stage, regretStages)
	}
	if !slices.Contains(methods, g.Method) {
		return registry.Unknown("method", g.Method, methods)
	}
	return nil
}

// some reads a number that may be absent.
func (s *scanner) some(f *Field) *float64 {
	x := s.number(f)
	return &x
}

// decode reads one object into a.
func (a *Alternative) decode(s *scanner) {
	*a = Alternative{Replica: Nowhere}
	m := members{object: alternativeObject}
	for s.each(&m) {
		switch f := m.field; f.Name {
		case "deployment":
			a.Deployment = s.name(f)
		case "replica":
			a.Replica = Index(s.integer(f))
		case "verdict":
			a.Verdict = s.name(f)
		case "chosen":
			a.Chosen = s.boolean(f)
		case "ttft_ms":
			a.TTFTMS = s.some(f)
		case "e2e_ms":
			a.E2EMS = s.some(f)
		case "view_ms":
			a.ViewMS = s.some(f)
		case "own":
			a.Own = s.difference()
		case "all":
			a.All = s.difference()
		}
	}
}

// difference reads an object.
func (s *scanner) difference() *Difference {
	d := &Difference{}
	m := members{object: differenceObject}
	for s.each(&m) {
		switch f := m.field; f.Name {
		case "gained":
			d.Gained = s.integer(f)
		case "lost":
			d.Lost = s.integer(f)
		case "completed":
			d.Completed = s.signed(f)
		case "changed":
			d.Changed = s.integer(f)
		case "ttft_ms":
			d.TTFTMS = s.number(f)
		case "e2e_ms":
			d.E2EMS = s.number(f)
		}
	}
	return d
}

// signed reads an integer that may be negative.
func (s *scanner) signed(f *Field) int64 {
	if s.peek() != '-' {
		return s.integer(f)
	}
	s.i++
	v := -s.integer(&Field{Name: f.Name, Max: -f.Min})
	return v
}
