package report

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

// timeline is what happened to a request, with the work before it.
func (w *writer) timeline(r *attribution.RequestDetail) {
	w.line("[REQUEST] %s: %d prompt tokens, %d output tokens%s%s", name(r.Request), r.Tokens.Input, r.Tokens.Output,
		labeled(", class ", r.Labels.Class), labeled(", tenant ", r.Labels.Tenant))
	w.events(r)
	if r.Outcome.Preemptions > 0 {
		w.line("preempted %d times", r.Outcome.Preemptions)
	}
	w.group("prefilled before it", "uncached prompt tokens", &r.Ahead)
	w.group("started before its first token, ahead of it or not", "uncached prompt and output tokens", &r.Started)
	w.line("%s", w.outcome(&r.Example))
	if r.Interfering > 0 {
		w.line("while it decoded, others entered the batches with %d uncached prompt tokens, %d of them computed "+
			"before", r.Interfering, r.InterferingRecomputed)
	}
	if r.Outcome.Lost && r.Outcome.ExcessMS > 0 {
		w.line(excessWords[w.Findings.Loss.Kind], r.Outcome.ExcessMS)
	}
	if r.Pattern >= 0 {
		p := &w.Findings.Patterns[r.Pattern]
		w.line("matches P%d %s: %s", r.Pattern+1, patternName(p), p.Condition.Doc)
	}
}

// excessWords say by how much a request is above what it is judged by.
var excessWords = [...]string{
	attribution.LossMisses:  "above its target by %.1f ms",
	attribution.LossRegret:  "estimated regret of %.1f ms",
	attribution.LossLate:    "TTFT above 5 x the median of the run by %.1f ms",
	attribution.LossFitness: "above its target by %.1f ms",
}

// group lists the largest requests of a group, if it has any.
func (w *writer) group(what, unit string, g *attribution.RequestGroup) {
	if g.Count == 0 {
		return
	}
	tenants := list(g.Tenants[:min(len(g.Tenants), maxTenants)], func(s attribution.Share) string {
		return fmt.Sprintf("%s from tenant %s", percent(s.Part), name(s.Name))
	})
	largest := list(g.Largest, func(x attribution.Work) string {
		return fmt.Sprintf("%s %d", name(x.Request), x.Tokens)
	})
	w.line("%s: %d requests with %d %s%s; largest: %s", what, g.Count, g.Tokens, unit, parenthesized(tenants), largest)
}

// events are the instants of a request in order, in ms since its arrival.
func (w *writer) events(r *attribution.RequestDetail) {
	type instant struct {
		at   stream.Micros
		text string
	}
	var all []instant
	event := func(at stream.Micros, format string, args ...any) {
		if at != stream.Never {
			all = append(all, instant{at, fmt.Sprintf(format, args...)})
		}
	}
	event(r.ArrivalUS, "arrived (at %.6f s)", float64(r.ArrivalUS)/1e6)
	for i := range r.Decisions {
		if d := &r.Decisions[i]; !choosesReplica(d) {
			event(d.AtUS, "%s: %s [%s]", name(d.Stage), verdict(d), name(d.ID))
		}
	}
	if len(r.Decisions) == 0 || r.Decisions[0].Stage != stream.StageAdmission {
		event(r.Admitted, "admitted")
	}
	first, others := name(r.Replica), fmt.Sprintf(", with %d other requests", r.Running)
	if r.Moved {
		others = ""
	}
	if r.Redirects > 0 {
		first = w.routings(r, event)
	} else {
		event(r.Routed, "routed to %s%s%s [%s]", first, rule(&r.Labels), actualQueue(&r.Example), name(r.Decision))
	}
	again := ""
	for i := range r.Decisions {
		if d := &r.Decisions[i]; d.Stage == stream.StagePrefillRouting {
			event(d.AtUS, "prefill %sat %s%s [%s]", again, chosen(d), reason(d), name(d.ID))
			again = "again "
		}
	}
	cached := cachedText(r)
	if p := r.Prefill; p != nil {
		event(p.Enqueued, "entered the queue of %s", prefillReplica(r, p.Enqueued))
		event(p.Scheduled, "first batch of %s; %s", prefillReplica(r, p.Scheduled), cached)
		event(p.Computed, "prompt computed")
		event(p.TransferStarted, "transfer of %d blocks to %s began", p.Blocks, first)
		event(p.TransferEnded, "transfer ended")
		event(r.Enqueued, "entered the queue of %s", first)
		event(r.Scheduled, "first batch of %s%s; %d prompt tokens were cached there", first, others, p.DecodeCached)
	} else {
		event(r.Enqueued, "entered the queue")
		event(r.Scheduled, "first batch%s; %s", others, cached)
	}
	for _, at := range r.Preempted {
		event(at, "preempted")
	}
	event(r.FirstToken, "first token")
	if r.Outcome.State == stream.StateCompleted {
		event(r.Ended, "last token")
	} else {
		event(r.Ended, "%s%s", name(r.Outcome.State), labeled(", ", r.Outcome.Reason))
	}
	slices.SortStableFunc(all, func(x, y instant) int { return cmp.Compare(x.at, y.at) })
	for _, x := range all {
		w.line("%12.1f ms  %s", float64(x.at-r.ArrivalUS)/1000, x.text)
	}
}

// prefillReplica is the prefill replica of a request at an instant. Another one may be chosen when it goes down.
func prefillReplica(r *attribution.RequestDetail, at stream.Micros) string {
	of := name(r.Prefill.Replica)
	for i := len(r.Decisions) - 1; i >= 0; i-- {
		if d := &r.Decisions[i]; d.Stage == stream.StagePrefillRouting {
			if of = chosen(d); d.AtUS <= at {
				break
			}
		}
	}
	return of
}

// routings are the events at which a redirected request was routed. It returns the replica where it was queued first.
// The decisions before the one that is asked for are unknown.
func (w *writer) routings(r *attribution.RequestDetail, event func(stream.Micros, string, ...any)) (first string) {
	first = "its replica"
	before := ""
	for i := range r.Decisions {
		d := &r.Decisions[i]
		if d.Stage != stream.StageRouting {
			continue
		}
		next := chosen(d)
		if before == "" && d.AtUS <= r.Routed {
			event(d.AtUS, "routed to %s%s [%s]", next, reason(d), name(d.ID))
		} else {
			event(d.AtUS, "redirected to %s%s, since %s went down or left [%s]", next, reason(d),
				cmp.Or(before, "its replica"), name(d.ID))
		}
		if before = next; !r.Moved || d.AtUS <= r.Enqueued {
			first = next
		}
	}
	return first
}

// choosesReplica reports whether a decision is the choice of a replica.
func choosesReplica(d *stream.Decision) bool {
	return d.Stage == stream.StageRouting || d.Stage == stream.StagePrefillRouting
}

// actualQueue is the actual queue at the chosen replica and the shortest one, "" where they are not known.
func actualQueue(e *attribution.Example) string {
	if e.Queue.Own < 0 {
		return ""
	}
	return "; actual queue " + queue(e)
}

// cachedText says how many prompt tokens were not computed.
func cachedText(r *attribution.RequestDetail) string {
	loaded := ""
	if r.Loaded > 0 {
		loaded = fmt.Sprintf(", %d loaded from KV tiers", r.Loaded)
	}
	if r.FromStorage > 0 {
		loaded += fmt.Sprintf(" (%d of them from storage)", r.FromStorage)
	}
	return fmt.Sprintf("%d of %d prompt tokens cached%s, %d expected", r.Tokens.Cached-r.Loaded, r.Tokens.Input, loaded,
		r.Tokens.Expected)
}

// Shown at most: tenants of the work before a request, and replicas of a window.
const (
	maxTenants        = 3
	maxWindowReplicas = 12
)

// window is what happened in an interval of time.
func (w *writer) window(x *attribution.Window, q *attribution.Query) {
	seconds := float64(q.UntilUS-q.FromUS) / 1e6
	w.line("[WINDOW] %.3f s to %.3f s", float64(q.FromUS)/1e6, float64(q.UntilUS)/1e6)
	rate := fmt.Sprintf("%d of %d requests arrived, %.2f/s", x.Arrived, x.Offered, float64(x.Arrived)/seconds)
	if x.SpanUS > 0 {
		rate += fmt.Sprintf("; %.2f/s in the whole run", float64(x.Offered)*1e6/float64(x.SpanUS))
	}
	w.line("%s", rate)
	if x.Judged > 0 {
		w.line("lost: %d of %d (%s); %s in the whole run", x.Lost, x.Judged, percent(float64(x.Lost)/float64(x.Judged)),
			percent(float64(x.RunLost)/float64(x.RunJudged)))
	}
	for _, p := range x.Patterns {
		w.line("%d of these match %s: %s", p.N, p.Condition.Name, p.Condition.Doc)
	}
	if len(x.Replicas) > 0 {
		t := newTable("replica", "sent", "lost", "longest_queue")
		for _, r := range x.Replicas[:min(len(x.Replicas), maxWindowReplicas)] {
			t.Add(name(r.Replica), r.Sent, r.Lost, dash(r.LongestQueue >= 0, "%.0f", float64(r.LongestQueue)))
		}
		w.table(t)
	}
	w.windowGroups("tenant", x, x.Tenants)
	w.windowGroups("class", x, x.Classes)
	for i := range x.Anomalies {
		w.line("anomaly: %s", anomaly(&x.Anomalies[i]))
	}
}

// windowGroups compares the shares of tenants or classes in a window with those in the run.
func (w *writer) windowGroups(what string, x *attribution.Window, groups []attribution.WindowGroup) {
	if len(groups) < 2 {
		return
	}
	t := newTable(what, "arrived", "of_window_pct", "of_run_pct")
	for _, g := range groups[:min(len(groups), maxGroups)] {
		t.Add(name(g.Name), g.Arrived, fmt.Sprintf("%.1f", 100*float64(g.Arrived)/float64(x.Arrived)),
			fmt.Sprintf("%.1f", 100*float64(g.All)/float64(x.Offered)))
	}
	w.table(t)
}
