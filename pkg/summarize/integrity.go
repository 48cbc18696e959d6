package summarize

import (
	"fmt"

	"blis/pkg/stream"
)

// leastIntact returns the stream that holds least of what was written, and its integrity; nil if all are intact.
func (r *analysis) leastIntact() (least *runDoc, integrity stream.Integrity) {
	integrity = stream.IntegrityOK
	for _, runs := range [][]*runDoc{r.runs, r.references[0], r.references[1]} {
		for _, x := range runs {
			if worse := integrity.Worse(x.integrity); worse != integrity {
				least, integrity = x, worse
			}
		}
	}
	return least, integrity
}

// integrityLine is a row of tables that says which streams do not hold what was written, none if all do.
func (r *analysis) integrityLine() []line {
	if least, _ := r.leastIntact(); least == nil {
		return nil
	}
	return []line{{name: "integrity", key: true, text: func(c *column) string { return string(c.integrity) }}}
}

// checkSelection warns of options that select none of the requests. With gates, which nothing would fail, it is an
// error.
func (s *summary) checkSelection() error {
	if s.outcomesSelected > 0 || s.outcomesSeen == 0 || !s.options.isPartial() {
		return nil
	}
	text := fmt.Sprintf("--where, --from and --to select none of the %d requests", s.outcomesSeen)
	if s.fitness != nil && len(s.fitness.Empty().Gates) > 0 {
		return fmt.Errorf("%s, and the fitness has gates", text)
	}
	s.warn("%s", text)
	s.options.warn(text)
	return nil
}
