package summarize

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"blis/pkg/fitness"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// maxRows is the maximum number of table rows in the text.
const maxRows = 20

// headWidth is the minimum width of the first column of lines and tables.
const headWidth = 11

// page is a text for people: lines that begin with a head, and tables.
type page []byte

func (p *page) text(s string) { *p = append(*p, s...) }

func (p *page) line(head, format string, args ...any) {
	*p = fmt.Appendf(*p, "%-*s %s\n", headWidth, head, stream.Printable(fmt.Sprintf(format, args...)))
}

// table adds a table after an empty line.
func (p *page) table(t *texttab.Table) { *p = t.Append(append(*p, '\n')) }

// tables adds those tables that have rows below the header.
func (p *page) tables(all ...*texttab.Table) {
	for _, t := range all {
		if len(t.Rows) > 1 {
			p.table(t)
		}
	}
}

// list adds at most n of the lines under a title, nothing without lines.
func (p *page) list(title string, lines []string, n int) {
	if len(lines) == 0 {
		return
	}
	p.text("\n" + title + "\n")
	for _, l := range lines[:min(len(lines), n)] {
		p.text("  " + stream.Printable(l) + "\n")
	}
	if more := len(lines) - n; more > 0 {
		p.text(fmt.Sprintf("... and %d more: --format json\n", more))
	}
}

// newTable is a table with that header.
func newTable(first string, others ...string) *texttab.Table {
	t := &texttab.Table{FirstWidth: headWidth}
	t.Row(first, others...)
	return t
}

// shown are the groups that t shows, by printable name: none if there are fewer than minimum.
func shown[V any](t *texttab.Table, groups map[string]V, minimum int) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if len(groups) < minimum {
			return
		}
		t.Omitted = len(groups) - maxRows
		names := slices.Sorted(maps.Keys(groups))
		for _, name := range names[:min(len(names), maxRows)] {
			if !yield(stream.Printable(name), groups[name]) {
				return
			}
		}
	}
}

// score adds the explanation of the score.
func (p *page) score(f *fitness.Result) {
	p.line("score", "%.4f", f.Score)
	for _, g := range f.Gates {
		if g.Passed {
			p.line("gate", "%s: passed: %s", g.Name, g.Detail)
		} else {
			p.line("gate", "%s: FAILED by %.4f of 1: %s", g.Name, g.Distance, g.Detail)
		}
	}
	for _, values := range []struct {
		head string
		all  []fitness.Value
	}{{"objective", f.Objectives}, {"feature", f.Features}} {
		for _, v := range values.all {
			p.line(values.head, "%s = %s", v.Name, orDash("%.6g", v.Value))
		}
	}
	if len(f.Terms) > 0 {
		t := newTable("term", "weight", "value", "ideal", "lost")
		for _, x := range f.Terms {
			t.Row(stream.Printable(x.Name), fmt.Sprintf("%.4g", x.Weight), fmt.Sprintf("%.4f", x.Value),
				fmt.Sprintf("%.0f", x.Ideal), fmt.Sprintf("%.4f", x.Lost))
		}
		p.table(t)
	}
	p.text("\n")
}

// anomalyText describes an anomaly on one line.
func anomalyText(a *stream.Anomaly) string {
	where := ""
	switch {
	case !a.Replica.IsZero():
		where = fmt.Sprintf(" at %s/%d", a.Deployment, a.Replica)
	case a.SLOClass != "":
		where = " of " + a.SLOClass
	}
	return fmt.Sprintf("%s%s, %.3f to %.3f s, severity %.2f: %s", a.Type, where, float64(a.StartUS)/1e6,
		float64(a.EndUS)/1e6, a.Severity, a.Text)
}

// orDash formats x, - if it is missing.
func orDash(format string, x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf(format, *x)
}
