package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// maxRows is the maximum number of table rows in the text.
const maxRows = 20

// text renders the result for people: ASCII, with a unit in each line or column.
func (d *Document) text() []byte {
	b := appendLine(nil, "a", "%s", d.A.text())
	b = appendLine(b, "b", "%s", d.B.text())
	if s := d.Selection; s != nil {
		b = appendLine(b, "selection", "%d of %d requests, where %s", s.Requests, s.Of, stream.Printable(s.Where))
	}
	b = appendLine(b, "result", "%s", d.verdict())
	if d.Status == statusDiffers {
		b = d.differences(b)
	}
	for i, g := range d.Gates {
		if i == 0 {
			b = append(b, '\n')
		}
		b = appendLine(b, "gate", "%s", g.text())
	}
	return appendWarnings(b, d.Warnings)
}

// appendLine adds a line that begins with a heading.
func appendLine(b []byte, heading, format string, args ...any) []byte {
	return fmt.Appendf(b, "%-11s "+format+"\n", append([]any{heading}, args...)...)
}

func appendWarnings(b []byte, warnings []string) []byte {
	for i, w := range warnings {
		if i == 0 {
			b = append(b, "\nwarnings\n"...)
		}
		b = fmt.Appendf(b, "  %s\n", stream.Printable(w))
	}
	return b
}

// differences adds everything that differs.
func (d *Document) differences(b []byte) []byte {
	if d.Fidelity != nil {
		if d.Requests != nil {
			b = d.Requests.states(b)
		}
		return d.bootstrap(d.Fidelity.append(b))
	}
	if len(d.Config) > 0 {
		b = d.settings().Append(append(b, '\n'))
	}
	if d.Requests != nil {
		b = d.Requests.append(append(b, '\n'))
	}
	if d.Decisions != nil && d.Decisions.First != nil {
		b = d.Decisions.append(append(b, '\n'))
	}
	b = d.latencies().Append(append(b, '\n'))
	b = d.otherMetrics().Append(append(b, '\n'))
	for _, of := range []string{"cls", "tenants", "models", "replicas"} {
		if t := d.groupTable(of); len(t.Rows) > 1 {
			b = t.Append(append(b, '\n'))
		}
	}
	b = d.bootstrap(b)
	if d.Requests != nil {
		b = d.Requests.changes("worst regressions", d.Requests.Regressions, b)
		b = d.Requests.changes("best gains", d.Requests.Gains, b)
	}
	return b
}

// bootstrap adds the origin of the intervals.
func (d *Document) bootstrap(b []byte) []byte {
	bootstrap := d.Bootstrap
	if bootstrap == nil {
		return b
	}
	pairs, star := "pairs of requests", "* the interval excludes 0: "
	if !bootstrap.Paired {
		pairs = "requests of each side"
	}
	if d.Fidelity != nil {
		star = "intervals: "
	}
	return fmt.Appendf(b, "\n%s%d bootstrap samples of %d blocks of %.0f %s (%.3g s), seed %d\n",
		star, bootstrap.Samples, bootstrap.Blocks, bootstrap.BlockRequests, pairs, bootstrap.BlockS, bootstrap.Seed)
}

func (id *Identity) text() string {
	parts := []string{strings.TrimSpace(id.Stream + " of " + id.Tool + " " + id.Version)}
	if id.Format != "" {
		parts[0] = id.Stream + " (" + id.Format + ")"
	}
	for _, digest := range [][2]string{{"policy", id.PolicyDigest}, {"config", id.ConfigDigest},
		{"workload", id.WorkloadDigest}} {
		if digest[1] != "" {
			parts = append(parts, digest[0]+" "+digest[1])
		}
	}
	return stream.Printable(strings.Join(append(parts, fmt.Sprintf("%d requests", id.Requests)), ", "))
}

// verdict summarizes what differs in a line.
func (d *Document) verdict() string {
	if d.Status == statusSame {
		return "the same"
	}
	var parts []string
	if d.Fidelity == nil {
		parts = append(parts, fmt.Sprintf("%d settings", len(d.Config)))
	}
	if r := d.Requests; r != nil {
		parts = append(parts, fmt.Sprintf("%d of %d requests", r.Changed+r.OnlyA+r.OnlyB, r.Both+r.OnlyA+r.OnlyB))
	}
	if c := d.Decisions; c != nil {
		parts = append(parts, fmt.Sprintf("%d of %d decisions", c.Differ, c.Compared+c.OnlyA+c.OnlyB))
	}
	count := 0
	for i := range d.Metrics {
		if d.Metrics[i].differs() {
			count++
		}
	}
	return "differ in " + strings.Join(append(parts, fmt.Sprintf("%d of %d metrics", count, len(d.Metrics))), ", ")
}

// settings is the table of settings that differ.
func (d *Document) settings() *texttab.Table {
	t := &texttab.Table{LeftColumns: 3, Omitted: len(d.Config) - maxRows}
	t.Row("settings", "a", "b")
	show := func(v []byte) string {
		if v == nil {
			return "-"
		}
		return truncate(stream.Printable(string(v)), 60)
	}
	for _, s := range d.Config[:min(len(d.Config), maxRows)] {
		t.Row(stream.Printable(s.Path), show(s.A), show(s.B))
	}
	return t
}

// append adds the comparison of requests.
func (r *Requests) append(b []byte) []byte {
	b = fmt.Appendf(b, "%-11s %d on both sides: %d slower and %d faster by E2E", "requests", r.Both, r.Slower, r.Faster)
	if r.OnlyA+r.OnlyB > 0 {
		b = fmt.Appendf(b, "; %d in a only, %d in b only", r.OnlyA, r.OnlyB)
	}
	b = append(b, '\n')
	if r.SLOLost+r.SLOGained > 0 {
		b = appendLine(b, "SLO", "%d met their targets in a and not in b, %d in b and not in a", r.SLOLost, r.SLOGained)
	}
	return r.states(b)
}

func (r *Requests) states(b []byte) []byte {
	if len(r.States) == 0 {
		return b
	}
	var parts []string
	for _, s := range r.States {
		parts = append(parts, fmt.Sprintf("%d %s -> %s", s.Count, s.A, s.B))
	}
	return appendLine(b, "states", "%s", strings.Join(parts, ", "))
}

// changes adds a table of single requests.
func (r *Requests) changes(head string, list []Change, b []byte) []byte {
	if len(list) == 0 {
		return b
	}
	tenth := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	ms := func(a, b *float64) string { return numberOrDash(a, tenth) + " -> " + numberOrDash(b, tenth) }
	t := &texttab.Table{}
	t.Row(head, "E2E ms", "by", "TTFT ms", "queue ms", "replica")
	for _, c := range list {
		t.Row(stream.Printable(c.Request), ms(c.A.E2EMS, c.B.E2EMS), fmt.Sprintf("%+.1f", c.E2EDiffMS),
			ms(c.A.TTFTMS, c.B.TTFTMS), ms(c.A.QueueMS, c.B.QueueMS),
			stream.Printable(c.A.Replica)+" -> "+stream.Printable(c.B.Replica))
	}
	return t.Append(append(b, '\n'))
}

// append adds the first divergence.
func (d *Decisions) append(b []byte) []byte {
	f := d.First
	b = appendLine(b, "decisions", "%d of %d differ; the first is the %s of %s, %d more follow", d.Differ,
		d.Compared+d.OnlyA+d.OnlyB, f.Stage, stream.Printable(f.Request), f.LaterDiffering)
	b = fmt.Appendf(b, "  a  %s\n  b  %s\n", decisionText(f.A), decisionText(f.B))
	if f.A == nil || f.B == nil || f.Stage != stream.StageRouting {
		return b
	}
	if len(f.DifferingSignals) == 0 {
		b = append(b, "  both saw the same values for the common candidates\n"...)
	} else {
		b = fmt.Appendf(b, "  different values: %s\n",
			truncate(stream.Printable(strings.Join(f.DifferingSignals, ", ")), 120))
	}
	t := &texttab.Table{}
	head := func(name string, d *stream.Decision) []string {
		return []string{name + ": score", strings.Join(d.Scorers, " "), "in flight", "queue", "running", "KV",
			"matched", "age ms"}
	}
	t.Row("  candidate", slices.Concat(head("a", f.A), head("b", f.B))...)
	for _, at := range candidates(f) {
		t.Row("  "+stream.Printable(replicaName(at.deployment, at.index)),
			slices.Concat(candidateCells(f.A, at), candidateCells(f.B, at))...)
	}
	return t.WithoutEmpty().Append(b)
}

// decisionText describes a decision in a line.
func decisionText(d *stream.Decision) string {
	if d == nil {
		return "no such decision"
	}
	text := d.Verdict
	switch {
	case d.Stage == stream.StageRouting, d.Stage == stream.StagePrefillRouting:
		text = fmt.Sprintf("%s of %d, score %s", replicaName(d.Deployment, d.Replica), d.Candidates, number(d.Score))
	case d.Stage == stream.StagePriority:
		text = "priority " + number(d.Score)
	case d.DelayUS > 0:
		text = fmt.Sprintf("%s %.3f ms", text, float64(d.DelayUS)/1000)
	}
	line := fmt.Sprintf("%s at %.6f s: %s", d.ID, float64(d.AtUS)/1e6, text)
	for _, detail := range []string{d.Reason, d.Rule} {
		if detail != "" {
			line += ", " + detail
		}
	}
	return stream.Printable(line)
}

// candidates returns the candidates that either side reports.
func candidates(f *Divergence) []replicaID {
	var all []replicaID
	for _, c := range slices.Concat(f.A.Considered, f.B.Considered) {
		if at := (replicaID{c.Deployment, c.Replica}); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// candidateCells returns the signals of a candidate in a decision, - for those that were
// not read.
func candidateCells(d *stream.Decision, at replicaID) []string {
	for i := range d.Considered {
		c := &d.Considered[i]
		if c.Deployment != at.deployment || c.Replica != at.index {
			continue
		}
		score := signalText(c.Score)
		if at == (replicaID{d.Deployment, d.Replica}) {
			score = "-> " + score
		}
		matched := c.Matched
		if matched.IsZero() {
			matched = c.Cached
		}
		terms := []string{}
		for _, x := range c.Terms {
			terms = append(terms, number(x))
		}
		return []string{score, cmp.Or(strings.Join(terms, " "), "-"), signalText(c.Inflight), signalText(c.QueueDepth),
			signalText(c.Running), signalText(c.KVUtil), signalText(matched), ageText(c)}
	}
	return slices.Repeat([]string{"-"}, 8)
}

func ageText(c *stream.Candidate) string {
	us := signalAge(c)
	if us < 0 {
		return "-"
	}
	return number(float64(us) / 1000)
}

// signalText formats a signal, - if it was not read.
func signalText[T interface {
	stream.Index | stream.Number
	IsZero() bool
}](x T) string {
	if x.IsZero() {
		return "-"
	}
	return number(float64(x))
}
