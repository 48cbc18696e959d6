package report

import (
	"fmt"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

// Explain answers a question about the run: a decision, a request, or a time.
func Explain(in *Input, o *Options, q *attribution.Query) ([]byte, error) {
	w := &writer{Input: in, Options: o, most: 4 * MaxSectionLength}
	if q.IsWindow() {
		w.window(in.Analyzer.Window(in.Findings, q.FromUS, q.UntilUS), q)
		return w.b, nil
	}
	t, err := in.Analyzer.Detail()
	if err != nil {
		return nil, err
	}
	if q.Decision != "" {
		w.decision(t)
	}
	w.timeline(t)
	w.alternatives(t)
	return w.b, nil
}

// decision is what was seen and chosen.
func (w *writer) decision(t *attribution.RequestDetail) {
	for i := range t.Decisions {
		d := &t.Decisions[i]
		w.line("[DECISION] %s, %s for %s at %.6f s", name(d.ID), name(d.Stage), name(d.Request), float64(d.AtUS)/1e6)
		if d.Stage != stream.StageRouting {
			w.line("%s", verdict(d))
			continue
		}
		w.line("chose %s/%d of %d candidates%s", name(d.Deployment), d.Replica, d.Candidates, reason(d))
		w.candidates(t, d)
	}
}

// verdict is a decision of another stage than routing.
func verdict(d *stream.Decision) string {
	text := or(d.Verdict, "priority "+fmt.Sprintf("%.6g", d.Score))
	if d.DelayUS > 0 {
		text += fmt.Sprintf(" by %.1f ms", float64(d.DelayUS)/1000)
	}
	return text + reason(d)
}

func reason(d *stream.Decision) string {
	var parts []string
	if d.Reason != "" {
		parts = append(parts, name(d.Reason))
	}
	if d.Rule != "" {
		parts = append(parts, "rule "+name(d.Rule))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// candidates is the table of what routing saw; true_queue is how long the queue was.
func (w *writer) candidates(t *attribution.RequestDetail, d *stream.Decision) {
	if len(d.Considered) == 0 {
		return
	}
	head := append([]string{"candidate", "score"}, d.Scorers...)
	for i := range head {
		head[i] = short(head[i], 24)
	}
	rows := [][]string{append(head, "inflight", "queue", "running", "kv_pct", "prefix_blocks", "age_ms", "true_queue")}
	number := func(n stream.Index) string {
		if n.IsZero() {
			return "-"
		}
		return fmt.Sprint(n)
	}
	for i := range d.Considered {
		c := &d.Considered[i]
		who := fmt.Sprintf("%s/%d", name(c.Deployment), c.Replica)
		if c.Deployment == d.Deployment && c.Replica == d.Replica {
			who += " *"
		}
		row := []string{who, "-"}
		switch {
		case c.Filtered:
			row[1] = "filtered"
		case !c.Score.IsZero():
			row[1] = fmt.Sprintf("%.4f", float64(c.Score))
		}
		for k := range d.Scorers {
			term := "-"
			if k < len(c.Terms) {
				term = fmt.Sprintf("%.4f", c.Terms[k])
			}
			row = append(row, term)
		}
		kv := "-"
		if !c.KVUtil.IsZero() {
			kv = fmt.Sprintf("%.1f", 100*float64(c.KVUtil))
		}
		age := "-"
		if c.AgeUS > 0 {
			age = fmt.Sprintf("%.1f", float64(c.AgeUS)/1000)
		}
		truth := "-"
		if i < len(t.Queues) {
			truth = fmt.Sprint(t.Queues[i])
		}
		rows = append(rows, append(row, number(c.Inflight), number(c.QueueDepth), number(c.Running), kv, number(max(c.Matched, c.Cached)), age, truth))
	}
	w.table(rows)
	w.line("* chosen; queue to prefix_blocks as the router saw them, - where it did not look")
}

// timeline is what happened to a request, with each wait and its cause.
func (w *writer) timeline(t *attribution.RequestDetail) {
	w.line("[REQUEST] %s: %d prompt tokens, %d answer tokens%s%s", name(t.Request), t.Input, t.Output, labeled(", class ", t.Class), labeled(", tenant ", t.Tenant))
	step := func(at stream.Micros, format string, args ...any) {
		if at != stream.Never {
			w.line("%12.1f ms  %s", float64(at-t.ArrivalUS)/1000, fmt.Sprintf(format, args...))
		}
	}
	step(t.ArrivalUS, "arrived (at %.6f s)", float64(t.ArrivalUS)/1e6)
	for i := range t.Decisions {
		if d := &t.Decisions[i]; d.Stage != stream.StageRouting {
			step(d.AtUS, "%s: %s [%s]", name(d.Stage), verdict(d), name(d.ID))
		}
	}
	if len(t.Decisions) == 0 || t.Decisions[0].Stage != stream.StageAdmission {
		step(t.Admitted, "admitted")
	}
	if t.Routed != stream.Never {
		truth := fmt.Sprintf("; true queue %d, shortest %d%s", t.Queue, t.Shortest, at(&t.Example))
		step(t.Routed, "routed to %s%s%s [%s]", name(t.Replica), why(&t.Example), truth, name(t.Decision))
	}
	step(t.Enqueued, "entered the queue")
	step(t.Scheduled, "first batch, beside %d others; %d of %d prompt tokens cached, %d expected", t.Beside, t.Cached, t.Input, t.Expected)
	for _, at := range t.Preempted {
		step(at, "lost its place in the batch")
	}
	step(t.First, "first token")
	if t.State == stream.StateCompleted {
		step(t.Ended, "last token")
	} else {
		step(t.Ended, "%s%s", name(t.State), labeled(", ", t.Reason))
	}
	if t.Preemptions > 0 {
		w.line("lost its place %d times", t.Preemptions)
	}
	if t.Behind > 0 {
		w.line("waited behind %d requests with %d tokens%s; largest: %s", t.Behind, t.Ahead, shares(t.Tenants), largest(t.Largest))
	}
	w.line("%s", outcome(&t.Example))
	if t.Lost && t.OverMS > 0 {
		w.line("above its target by %.1f ms", t.OverMS)
	}
	if t.Pattern >= 0 {
		p := &w.Findings.Patterns[t.Pattern]
		w.line("meets P%d %s: %s", t.Pattern+1, condition(p), meaning(p.Condition))
	}
}

// labeled is a name behind a label, nothing without one.
func labeled(label, s string) string {
	if s == "" {
		return ""
	}
	return label + name(s)
}

func shares(of []attribution.Share) string {
	var parts []string
	for i, s := range of {
		if i == 3 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s of tenant %s", percent(s.Part), name(s.Name)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func largest(of []attribution.Work) string {
	var parts []string
	for _, x := range of {
		parts = append(parts, fmt.Sprintf("%s %d", name(x.Request), x.Tokens))
	}
	return strings.Join(parts, ", ")
}

// alternatives are what other choices would have made of it, as far as that is recorded.
func (w *writer) alternatives(t *attribution.RequestDetail) {
	if len(t.Regrets) == 0 && t.Exact == nil {
		w.line("[ALTERNATIVES] none recorded: blis-sim --counterfactual 3, or --counterfactual %s", or(t.Decision, "DECISION"))
		return
	}
	for i := range t.Regrets {
		g := &t.Regrets[i]
		head := fmt.Sprintf("[ALTERNATIVES] %s, %s", name(g.Decision), name(g.Method))
		if g.HindsightMS != nil && g.AvoidableMS != nil {
			head += fmt.Sprintf(": hindsight %.1f ms, avoidable %.1f ms", *g.HindsightMS, *g.AvoidableMS)
		}
		w.line("%s", head)
		rows := [][]string{{"alternative", "ttft_ms", "e2e_ms", "view_e2e_ms", "own_e2e_ms_less", "all_gained", "all_lost", "all_e2e_ms_less"}}
		for k := range g.Alternatives {
			rows = append(rows, alternative(&g.Alternatives[k]))
		}
		w.table(dropEmpty(rows))
	}
}

func alternative(a *stream.Alternative) []string {
	who := a.Verdict
	if who == "" {
		who = fmt.Sprintf("%s/%d", a.Deployment, a.Replica)
	}
	if a.Chosen {
		who += " *"
	}
	value := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f", *x)
	}
	row := []string{name(who), value(a.TTFTMS), value(a.E2EMS), value(a.ViewMS), "-", "-", "-", "-"}
	if a.Own != nil {
		row[4] = fmt.Sprintf("%.1f", a.Own.E2EMS)
	}
	if a.All != nil {
		row[5], row[6], row[7] = fmt.Sprint(a.All.Gained), fmt.Sprint(a.All.Lost), fmt.Sprintf("%.1f", a.All.E2EMS)
	}
	return row
}

// dropEmpty leaves out columns that hold nothing but dashes.
func dropEmpty(rows [][]string) [][]string {
	kept := make([][]string, len(rows))
	for c := range rows[0] {
		empty := true
		for _, row := range rows[1:] {
			empty = empty && row[c] == "-"
		}
		if empty {
			continue
		}
		for i, row := range rows {
			kept[i] = append(kept[i], row[c])
		}
	}
	return kept
}

// meaning is what a condition says.
func meaning(condition string) string {
	for _, c := range attribution.Conditions {
		if c.Name == condition {
			return c.Doc
		}
	}
	return ""
}

// window is what happened during a time.
func (w *writer) window(x *attribution.Window, q *attribution.Query) {
	seconds := float64(q.UntilUS-q.FromUS) / 1e6
	w.line("[WINDOW] %.3f s to %.3f s", float64(q.FromUS)/1e6, float64(q.UntilUS)/1e6)
	rate := fmt.Sprintf("%d of %d requests arrived, %.2f/s", x.Arrived, x.Offered, float64(x.Arrived)/seconds)
	if x.SpanUS > 0 {
		rate += fmt.Sprintf("; %.2f/s in the whole run", float64(x.Offered)*1e6/float64(x.SpanUS))
	}
	w.line("%s", rate)
	if x.Judged > 0 {
		w.line("lost: %d of %d (%s); %s in the whole run", x.Lost, x.Judged, percent(float64(x.Lost)/float64(x.Judged)), percent(float64(x.AllLost)/float64(x.AllJudged)))
	}
	for _, p := range x.Patterns {
		w.line("%d of these meet %s: %s", p.N, p.Name, meaning(p.Name))
	}
	if len(x.Replicas) > 0 {
		rows := [][]string{{"replica", "sent", "lost", "longest_queue_met"}}
		for i, r := range x.Replicas {
			if i == 12 {
				break
			}
			rows = append(rows, []string{name(r.Replica), fmt.Sprint(r.Sent), fmt.Sprint(r.Lost), fmt.Sprint(r.Longest)})
		}
		w.table(rows)
	}
	w.parts("tenant", x, x.Tenants)
	w.parts("class", x, x.Classes)
	for i := range x.Anomalies {
		w.line("anomaly: %s", episode(&x.Anomalies[i]))
	}
}

// parts says who sent more in a window than usual.
func (w *writer) parts(what string, x *attribution.Window, of []attribution.WindowPart) {
	if len(of) < 2 {
		return
	}
	rows := [][]string{{what, "arrived", "of_window_pct", "of_run_pct"}}
	for i, p := range of {
		if i == mostGroups {
			break
		}
		rows = append(rows, []string{name(p.Name), fmt.Sprint(p.Arrived), fmt.Sprintf("%.1f", 100*float64(p.Arrived)/float64(x.Arrived)), fmt.Sprintf("%.1f", 100*float64(p.All)/float64(x.Offered))})
	}
	w.table(rows)
}
