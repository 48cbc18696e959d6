package summarize

import (
	"fmt"

	"blis/pkg/fitness"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// appendScore appends the explanation of the score.
func appendScore(b []byte, f *fitness.Result) []byte {
	line := func(head, format string, args ...any) {
		b = fmt.Appendf(b, "%-11s %s\n", head, stream.Printable(fmt.Sprintf(format, args...)))
	}
	line("score", "%.4f", f.Score)
	for _, g := range f.Gates {
		if g.Passed {
			line("gate", "%s: passed: %s", g.Name, g.Detail)
		} else {
			line("gate", "%s: FAILED by %.4f of 1: %s", g.Name, g.Distance, g.Detail)
		}
	}
	values := func(head string, all []fitness.Value) {
		for _, v := range all {
			text := "-"
			if v.Value != nil {
				text = fmt.Sprintf("%.6g", *v.Value)
			}
			line(head, "%s = %s", v.Name, text)
		}
	}
	values("objective", f.Objectives)
	values("feature", f.Features)
	b = append(b, '\n')
	if len(f.Terms) > 0 {
		t := &texttab.Table{FirstWidth: headWidth}
		t.Row("term", "weight", "value", "ideal", "lost")
		for _, x := range f.Terms {
			t.Row(stream.Printable(x.Name), fmt.Sprintf("%.4g", x.Weight), fmt.Sprintf("%.4f", x.Value),
				fmt.Sprintf("%.0f", x.Ideal), fmt.Sprintf("%.4f", x.Lost))
		}
		b = append(t.Append(b), '\n')
	}
	return b
}
