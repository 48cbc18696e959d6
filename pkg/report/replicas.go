package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
)

// maxReplicaRows is how many replicas are shown.
const maxReplicaRows = 8

// byReplica compares replicas, or deployments, where they differ.
var byReplica = section{name: "BY REPLICA", explains: true, write: func(w *writer) {
	if rows := w.Findings.Replicas; differ(rows) {
		w.replicaTable(rows)
	}
}}

var byDeployment = section{name: "BY DEPLOYMENT", explains: true, write: func(w *writer) {
	if rows := w.Findings.Deployments; len(rows) > 1 {
		w.replicaTable(rows)
	}
}}

// differ reports whether some row has much more requests, losses or time per token than another one that does the same
// work.
func differ(rows []attribution.ReplicaRow) bool {
	for i := range rows {
		for k := range rows {
			x, y := &rows[i], &rows[k]
			if x.Prefills != y.Prefills {
				continue
			}
			if x.Sent > 2*y.Sent+10 || x.LossRate() > y.LossRate()+0.1 || x.Slower >= 1.2 {
				return true
			}
		}
	}
	return false
}

// replicaTable is a table of replicas, those with the most losses first.
func (w *writer) replicaTable(rows []attribution.ReplicaRow) {
	t := newTable("name", "sent", "share_pct", "lost", "lost_pct", "busy_pct", "hit_pct", "peak_queue", "tpot_p50_ms",
		"tpot_vs_peer")
	for _, r := range rows[:min(len(rows), maxReplicaRows)] {
		busy, peak, n := 0.0, int64(0), 0
		for i := range w.Metrics.Replicas {
			if m := &w.Metrics.Replicas[i]; r.Has(m.Deployment, m.Index) && m.Utilization != nil {
				busy += *m.Utilization
				peak = max(peak, m.PeakQueue)
				n++
			}
		}
		t.Add(name(r.Name), r.Sent, fmt.Sprintf("%.1f", 100*r.Share), r.Lost, fmt.Sprintf("%.1f", 100*r.LossRate()),
			dash(n > 0, "%.0f", 100*busy/float64(max(1, n))), dash(r.InputTokens > 0, "%.1f", 100*r.HitRate()), peak,
			dash(r.TPOTMS > 0, "%.1f", r.TPOTMS), dash(r.TPOTMS > 0, "%.2f", r.Slower))
	}
	w.table(t)
	w.omitted(len(rows)-maxReplicaRows, "with no more losses")
}

// maxIdleNames is how many replicas without requests are named.
const maxIdleNames = 8

// idleReplicas says of each deployment whether at least a quarter of the replicas that were always up got no request,
// although there were at least 10 requests a replica.
func (w *writer) idleReplicas() {
	type requests struct {
		replicas, all, most int64
		idle                []string
	}
	byDeployment := map[string]*requests{}
	for i := range w.Metrics.Replicas {
		m := &w.Metrics.Replicas[i]
		d := byDeployment[m.Deployment]
		if d == nil {
			d = new(requests)
			byDeployment[m.Deployment] = d
		}
		d.all += m.Requests
		d.most = max(d.most, m.Requests)
		if w.Analyzer.AlwaysUp(m.Deployment, m.Index) {
			d.replicas++
			if m.Requests == 0 {
				d.idle = append(d.idle, fmt.Sprint(m.Index))
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byDeployment)) {
		d := byDeployment[id]
		idle := int64(len(d.idle))
		if idle == 0 || 4*idle < d.replicas || d.all < 10*d.replicas {
			continue
		}
		text := strings.Join(d.idle[:min(idle, maxIdleNames)], ", ")
		if idle > maxIdleNames {
			text += fmt.Sprintf(" and %d more", idle-maxIdleNames)
		}
		w.line("replicas: %d of %d got no request (%s/%s); the busiest got %s.", idle, d.replicas, name(id), text,
			percent(float64(d.most)/float64(d.all)))
	}
}

// sessions says where the time of sessions went.
var sessions = section{name: "SESSIONS", write: func(w *writer) {
	s := w.Metrics.Sessions
	if s == nil || s.Offered == 0 {
		return
	}
	text := fmt.Sprintf("%d sessions: %d completed, %d broken, %d unfinished", s.Offered, s.Completed, s.Broken,
		s.Unfinished)
	if s.Attainment != nil {
		text += fmt.Sprintf("; %s met all targets", percent(*s.Attainment))
	}
	w.line("%s", text)
	if s.E2E != nil {
		w.line("E2E ms mean %s p50 %s p99 %s%s%s", number(s.E2E.Mean), number(s.E2E.P50),
			percentile(s.E2E, s.E2E.P99, 99),
			meanOf("; longest chain of calls, without think time, mean ", s.Critical),
			meanOf("; tools, in sum, mean ", s.Tool))
	}
	if w.Findings == nil {
		return
	}
	if t := w.Findings.Sessions; t != nil {
		parallel := ""
		if t.Calls+t.Tools > 1 {
			parallel = "; parallel ones add up"
		}
		w.line("of the sessions' time: model calls %s, of which waiting %s; tools %s; think time and other %s%s",
			percent(t.Calls), percent(t.Waiting), percent(t.Tools), percent(t.Other), parallel)
		if t.Joins > 0 {
			w.line("parallel calls: %d steps waited %s ms (mean) from the mean end of their calls to the last one",
				t.Joins, number(t.JoinMS))
		}
	}
}}

// SessionCause is what makes sessions long where a fitness is not reached although nearly all requests lose nothing.
type SessionCause struct {
	// Condition is its name, Share the share of the sessions' E2E that it takes.
	Condition string
	Share     float64
	// Text says what was found, Advice what to change.
	Text, Advice string
}

// SessionCause is nil where there is none.
func (in *Input) SessionCause() *SessionCause {
	f := in.Findings
	if f == nil || !f.Loss.TooSmall() || in.DefaultFitness || in.Fitness == nil || in.Fitness.Score > 0.95 {
		return nil
	}
	t := f.Sessions
	c := &SessionCause{Condition: t.Cause()}
	switch c.Condition {
	case "tool_wait":
		c.Share = t.Tools
		c.Text = fmt.Sprintf("tools take %s of the sessions' E2E, model calls %s; tools take %s ms in the slowest"+
			" quarter of the sessions, %s ms in the others (means)", percent(t.Tools), percent(t.Calls),
			number(t.SlowToolMS), number(t.OtherToolMS))
		c.Advice = "no setting of the cluster: shorten the tools, or call the model while they run"
	case "join_wait":
		c.Share = t.Join
		c.Text = fmt.Sprintf("steps wait %s ms for the slowest of their parallel calls (mean), %s of the sessions' E2E",
			number(t.JoinMS), percent(t.Join))
		c.Advice = "no setting of the cluster: even out the parallel calls of a step, or join without the slowest"
	case "starved_sessions":
		c.Share = t.Waiting
		c.Text = fmt.Sprintf("model calls wait %s of the sessions' E2E before they are served", percent(t.Waiting))
		c.Advice = "serve calls of sessions earlier (priority, scheduler), or add replicas"
	default:
		return nil
	}
	return c
}

func meanOf(label string, d *metrics.Distribution) string {
	if d == nil {
		return ""
	}
	return label + number(d.Mean)
}
