package report

import (
	"fmt"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

// Explain answers a query about the run: a decision, a request, or an interval of time.
func Explain(in *Input, o *Options, q *attribution.Query) ([]byte, error) {
	w := &writer{Input: in, Options: o, limit: 4 * maxSectionLength}
	if q.IsWindow() {
		w.window(in.Analyzer.Window(in.Findings, q.FromUS, q.UntilUS), q)
		return w.text, nil
	}
	d, err := in.Analyzer.Detail()
	if err != nil {
		return nil, err
	}
	if q.Decision != "" {
		w.decisions(d)
	}
	w.timeline(d)
	w.alternatives(d)
	return w.text, nil
}

// decisions are what the policies saw and chose.
func (w *writer) decisions(r *attribution.RequestDetail) {
	for i := range r.Decisions {
		d := &r.Decisions[i]
		w.line("[DECISION] %s, %s for %s at %.6f s", name(d.ID), name(d.Stage), name(d.Request), float64(d.AtUS)/1e6)
		if !choosesReplica(d) {
			w.line("%s", verdict(d))
			continue
		}
		w.line("chose %s of %d candidates%s", chosen(d), d.Candidates, reason(d))
		var queues []int64
		if d == lastRouting(r) {
			queues = r.ActualQueues
		}
		w.candidates(d, queues)
	}
}

// chosen is the replica that a decision chose.
func chosen(d *stream.Decision) string { return fmt.Sprintf("%s/%d", name(d.Deployment), d.Replica) }

// lastRouting is the decision that sent the request to its last replica, nil if there is none.
func lastRouting(r *attribution.RequestDetail) (last *stream.Decision) {
	for i := range r.Decisions {
		if d := &r.Decisions[i]; d.Stage == stream.StageRouting {
			last = d
		}
	}
	return last
}

// verdict is a decision that does not choose a replica.
func verdict(d *stream.Decision) string {
	text := nameOr(d.Verdict, "priority "+fmt.Sprintf("%.6g", d.Score))
	if d.DelayUS > 0 {
		text += fmt.Sprintf(" by %.1f ms", float64(d.DelayUS)/1000)
	}
	return text + reason(d)
}

func reason(d *stream.Decision) string {
	if d.Reason == "" {
		return parenthesized(labeled("rule ", d.Rule))
	}
	return parenthesized(name(d.Reason) + labeled(", rule ", d.Rule))
}

// parenthesized is a text in parentheses after a blank, "" without a text.
func parenthesized(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// candidates is the table of what the router saw, with the actual queues as far as given.
func (w *writer) candidates(d *stream.Decision, actualQueues []int64) {
	if len(d.Considered) == 0 {
		return
	}
	head := append([]string{"candidate", "score"}, d.Scorers...)
	for i := range head {
		head[i] = short(head[i], 24)
	}
	head = append(head, "inflight", "queue", "running", "kv_pct", "prefix_blocks", "age_ms")
	if len(actualQueues) > 0 {
		head = append(head, "actual_queue")
	}
	t := newTable(head...)
	for i := range d.Considered {
		row := candidateRow(d, &d.Considered[i])
		switch {
		case i < len(actualQueues):
			row = append(row, fmt.Sprint(actualQueues[i]))
		case len(actualQueues) > 0:
			row = append(row, "-")
		}
		t.Rows = append(t.Rows, row)
	}
	w.table(t)
	w.line("* chosen; inflight to prefix_blocks as the router saw them, - where it did not read them")
}

func candidateRow(d *stream.Decision, c *stream.Candidate) []string {
	replica := fmt.Sprintf("%s/%d", name(c.Deployment), c.Replica)
	if c.Deployment == d.Deployment && c.Replica == d.Replica {
		replica += " *"
	}
	row := []string{replica, dash(!c.Score.IsZero(), "%.4f", float64(c.Score))}
	if c.Filtered {
		row[1] = "filtered"
	}
	for k := range d.Scorers {
		term := 0.0
		if k < len(c.Terms) {
			term = c.Terms[k]
		}
		row = append(row, dash(k < len(c.Terms), "%.4f", term))
	}
	index := func(n stream.Index) string { return dash(!n.IsZero(), "%.0f", float64(n)) }
	return append(row, index(c.Inflight), index(c.QueueDepth), index(c.Running),
		dash(!c.KVUtil.IsZero(), "%.1f", 100*float64(c.KVUtil)), index(max(c.Matched, c.Cached)),
		dash(c.AgeUS > 0, "%.1f", float64(c.AgeUS)/1000))
}

// dash is x in that format, or - where it is not known.
func dash(known bool, format string, x float64) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// alternatives are the counterfactuals, as far as recorded.
func (w *writer) alternatives(r *attribution.RequestDetail) {
	if len(r.Regrets) == 0 && r.Exact == nil {
		w.line("[ALTERNATIVES] none recorded: blis-sim --counterfactual 3, or --counterfactual %s",
			nameOr(r.Decision, "DECISION"))
		return
	}
	for i := range r.Regrets {
		g := &r.Regrets[i]
		head := fmt.Sprintf("[ALTERNATIVES] %s, %s", name(g.Decision), name(g.Method))
		if g.HindsightMS != nil && g.AvoidableMS != nil {
			head += fmt.Sprintf(": hindsight %.1f ms, avoidable %.1f ms", *g.HindsightMS, *g.AvoidableMS)
		}
		w.line("%s", head)
		t := newTable("alternative", "ttft_ms", "e2e_ms", "view_e2e_ms", "own_e2e_ms_less", "slos_gained", "slos_lost",
			"total_e2e_ms_less")
		for k := range g.Alternatives {
			t.Rows = append(t.Rows, alternative(&g.Alternatives[k]))
		}
		w.table(t.WithoutEmpty())
	}
}

func alternative(a *stream.Alternative) []string {
	label := choice(a)
	if a.Chosen {
		label += " *"
	}
	value := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f", *x)
	}
	row := []string{name(label), value(a.TTFTMS), value(a.E2EMS), value(a.ViewMS), "-", "-", "-", "-"}
	if a.Own != nil {
		row[4] = value(&a.Own.E2EMS)
	}
	if a.All != nil {
		row[5], row[6], row[7] = fmt.Sprint(a.All.SLOGained), fmt.Sprint(a.All.SLOLost), value(&a.All.E2EMS)
	}
	return row
}
