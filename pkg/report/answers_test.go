package report

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// detail is all about a request that was routed at 1.5 s, preempted, and completed 2 s after its arrival at 1 s.
func detail() *attribution.RequestDetail {
	d := stream.Decision{ID: "dec-000003", Stage: stream.StageRouting, Request: "req-3", AtUS: 1_500_000,
		Deployment: "main", Replica: 1, Candidates: 3, Reason: "best score", Rule: "root", Scorers: []string{"queue"}}
	for i := range stream.Index(2) {
		c := stream.NewCandidate("main", i)
		c.Inflight, c.QueueDepth, c.KVUtil = 4-i, 3, 0.25
		d.Considered = append(d.Considered, c)
	}
	c := &d.Considered[1]
	c.Score, c.Terms, c.Matched, c.AgeUS = 0.5, []float64{0.75}, 2, 1500
	d.Considered[0].Filtered = true
	return &attribution.RequestDetail{
		Example: attribution.Example{Decision: "dec-000003", Request: "req-3", Pattern: 0, ArrivalUS: 1_000_000,
			Replica: "main/1", Labels: attribution.Labels{Class: "chat", Rule: "root"},
			Queue:   attribution.ActualQueue{Own: 5, Shortest: 1, ShortestAt: "main/0", TokensStarted: 700},
			Outcome: attribution.Outcome{State: stream.StateCompleted, Lost: true, Preemptions: 1, ExcessMS: 12.5},
			Latency: attribution.Latency{TTFTMS: 900, TPOTMS: -1, E2EMS: 2000},
			Tokens:  attribution.Tokens{Input: 100, Output: 20, Cached: 32, Expected: 64}},
		Decisions: []stream.Decision{{ID: "dec-000002", Stage: stream.StageAdmission, Request: "req-3", AtUS: 1_250_000,
			Verdict: "delay", DelayUS: 250_000, Rule: "admission.root"}, d},
		ActualQueues: []int64{1}, Admitted: 1_450_000, Routed: 1_500_000, Enqueued: 1_500_000, Scheduled: 1_750_000,
		FirstToken: 1_900_000, Ended: 3_000_000, Preempted: []stream.Micros{2_000_000}, Running: 6,
		Interfering: 4000, InterferingRecomputed: 3000,
		Started: attribution.RequestGroup{Count: 1, Tokens: 90,
			Largest: []attribution.Work{{Request: "req-4", Tokens: 90}}},
		Ahead: attribution.RequestGroup{Count: 2, Tokens: 700,
			Largest: []attribution.Work{{Request: "req-1", Tokens: 600}, {Request: "req-2", Tokens: 100}},
			Tenants: []attribution.Share{{Name: "a", Part: 0.75}, {Name: "b", Part: 0.25}}},
	}
}

// TestAnswerAboutADecision: what the policies saw, what happened to the request and what other choices would have
// changed.
func TestAnswerAboutADecision(t *testing.T) {
	in, r := smallRun(), detail()
	checkText(t, "decisions", written(in, func(w *writer) { w.decisions(r) }), `
[DECISION] dec-000002, admission for req-3 at 1.250000 s
delay by 250.0 ms (rule admission.root)
[DECISION] dec-000003, routing for req-3 at 1.500000 s
chose main/1 of 3 candidates (best score, rule root)
candidate     score   queue  inflight  queue  running  kv_pct  prefix_blocks  age_ms  actual_queue
main/0     filtered       -         4      3        -    25.0              -       -             1
main/1 *     0.5000  0.7500         3      3        -    25.0              2     1.5             -
* chosen; inflight to prefix_blocks as the router saw them, - where it did not read them
`)
	checkText(t, "priority", verdict(&stream.Decision{Score: 2.5}), "priority 2.5")
	checkText(t, "timeline", written(in, func(w *writer) { w.timeline(r) }), `
[REQUEST] req-3: 100 prompt tokens, 20 output tokens, class chat
         0.0 ms  arrived (at 1.000000 s)
       250.0 ms  admission: delay by 250.0 ms (rule admission.root) [dec-000002]
       500.0 ms  routed to main/1 (rule root); actual queue 5, shortest 1 at main/0 [dec-000003]
       500.0 ms  entered the queue
       750.0 ms  first batch, with 6 other requests; 32 of 100 prompt tokens cached, 64 expected
       900.0 ms  first token
      1000.0 ms  preempted
      2000.0 ms  last token
preempted 1 times
prefilled before it: 2 requests with 700 uncached prompt tokens (75.0 % from tenant a, 25.0 % from tenant b); `+
		`largest: req-1 600, req-2 100
started before its first token, ahead of it or not: 1 requests with 90 uncached prompt and output tokens; `+
		`largest: req-4 90
TTFT 900 ms; E2E 2000 ms
while it decoded, others entered the batches with 4000 uncached prompt tokens, 3000 of them computed before
above its target by 12.5 ms
matches P1 long_queue: it holds for long_queue
`)
	in.Findings.Loss.Kind = attribution.LossLate
	if got := written(in, func(w *writer) { w.timeline(r) }); !strings.Contains(got,
		"\nTTFT above 5 x the median of the run by 12.5 ms\n") || strings.Contains(got, "target") {
		t.Errorf("without targets:\n%s", got)
	}
	r.Decisions, r.Ahead.Count, r.Started.Count, r.Pattern = nil, 0, 0, -1
	r.Outcome = attribution.Outcome{State: stream.StateTimedOut, Reason: "deadline"}
	r.FirstToken, r.Preempted, r.Latency.TTFTMS, r.Latency.E2EMS, r.Interfering = stream.Never, nil, -1, -1, 0
	checkText(t, "timeline of a timeout", written(in, func(w *writer) { w.timeline(r) }), `
[REQUEST] req-3: 100 prompt tokens, 20 output tokens, class chat
         0.0 ms  arrived (at 1.000000 s)
       450.0 ms  admitted
       500.0 ms  routed to main/1 (rule root); actual queue 5, shortest 1 at main/0 [dec-000003]
       500.0 ms  entered the queue
       750.0 ms  first batch, with 6 other requests; 32 of 100 prompt tokens cached, 64 expected
      2000.0 ms  timed_out, deadline
timed_out (deadline)
`)
}

// TestTimelineWithPrefillReplica: what happened at both replicas, in the order of time.
func TestTimelineWithPrefillReplica(t *testing.T) {
	in, r := smallRun(), detail()
	r.Decisions[0] = stream.Decision{ID: "dec-000004", Stage: stream.StagePrefillRouting, Request: "req-3",
		AtUS: 1_500_000, Deployment: "main.prefill", Replica: 2, Score: 3.5, Reason: "highest score", Candidates: 3}
	r.Queue.Own, r.Routed, r.Enqueued, r.Scheduled, r.Preempted = -1, 1_500_000, 1_800_000, 1_850_000, nil
	r.Loaded, r.FromStorage = 24, 16
	r.Prefill = &attribution.PrefillDetail{Replica: "main.prefill/2", Enqueued: 1_510_000, Scheduled: 1_600_000,
		Computed: 1_790_000, TransferStarted: 1_805_000, TransferEnded: 1_840_000, Blocks: 7, DecodeCached: 16}
	got := written(in, func(w *writer) { w.events(r) })
	checkText(t, "timeline", got, `
         0.0 ms  arrived (at 1.000000 s)
       450.0 ms  admitted
       500.0 ms  routed to main/1 (rule root) [dec-000003]
       500.0 ms  prefill at main.prefill/2 (highest score) [dec-000004]
       510.0 ms  entered the queue of main.prefill/2
       600.0 ms  first batch of main.prefill/2; 8 of 100 prompt tokens cached, 24 loaded from KV tiers `+
		`(16 of them from storage), 64 expected
       790.0 ms  prompt computed
       800.0 ms  entered the queue of main/1
       805.0 ms  transfer of 7 blocks to main/1 began
       840.0 ms  transfer ended
       850.0 ms  first batch of main/1, with 6 other requests; 16 prompt tokens were cached there
       900.0 ms  first token
      2000.0 ms  last token
`)
	again := r.Decisions[0]
	again.ID, again.AtUS, again.Replica = "dec-000005", 1_700_000, 3
	r.Decisions, r.Prefill.Replica = append(r.Decisions, again), "main.prefill/3"
	got = written(in, func(w *writer) { w.events(r) })
	for _, want := range []string{"prefill at main.prefill/2", "entered the queue of main.prefill/2",
		"first batch of main.prefill/2", "700.0 ms  prefill again at main.prefill/3", "prompt computed"} {
		_, after, found := strings.Cut(got, want)
		if got = after; !found {
			t.Errorf("no %q next in the timeline of a prompt that went to another prefill replica", want)
		}
	}
	got = written(in, func(w *writer) { w.decisions(r) })
	if first, _, _ := strings.Cut(got, "[DECISION] dec-000003"); !strings.Contains(first,
		"\nchose main.prefill/2 of 3 candidates (highest score)\n") {
		t.Errorf("the choice of a prefill replica:\n%s", got)
	}
}

// TestTimelineOfARedirectedRequest: main/0 goes down while the request runs there, or did before it was sent. What is
// known of a decision that is asked for begins with it.
func TestTimelineOfARedirectedRequest(t *testing.T) {
	in, r := smallRun(), detail()
	first := stream.Decision{ID: "dec-000001", Stage: stream.StageRouting, AtUS: 1_500_000, Deployment: "main"}
	r.Decisions[0], r.Decisions[1].AtUS, r.Preempted = first, 1_950_000, nil
	r.Redirects, r.Moved = 1, true
	checkText(t, "of a running request", written(in, func(w *writer) { w.events(r) }), `
         0.0 ms  arrived (at 1.000000 s)
       450.0 ms  admitted
       500.0 ms  routed to main/0 [dec-000001]
       500.0 ms  entered the queue
       750.0 ms  first batch; 32 of 100 prompt tokens cached, 64 expected
       900.0 ms  first token
       950.0 ms  redirected to main/1 (best score, rule root), since main/0 went down or left [dec-000003]
      2000.0 ms  last token
`)
	got := written(in, func(w *writer) { w.decisions(r) })
	if strings.Count(got, "actual_queue") != 1 || !strings.Contains(got, "main/1 *     0.5000") {
		t.Errorf("the queues are those of the last decision:\n%s", got)
	}
	r.Decisions = r.Decisions[1:]
	if got := written(in, func(w *writer) { w.events(r) }); strings.Contains(got, "routed to main") ||
		!strings.Contains(got, "redirected to main/1 (best score, rule root), since its replica went down or left") {
		t.Errorf("of the second decision:\n%s", got)
	}
	r = detail()
	r.Decisions[0], r.Redirects, r.Preempted = first, 1, nil
	r.Prefill = &attribution.PrefillDetail{Replica: "main.prefill/2", Enqueued: stream.Never, Scheduled: stream.Never,
		Computed: stream.Never, TransferStarted: stream.Never, TransferEnded: stream.Never}
	checkText(t, "of one that was refused", written(in, func(w *writer) { w.events(r) }), `
         0.0 ms  arrived (at 1.000000 s)
       450.0 ms  admitted
       500.0 ms  routed to main/0 [dec-000001]
       500.0 ms  redirected to main/1 (best score, rule root), since main/0 went down or left [dec-000003]
       500.0 ms  entered the queue of main/1
       750.0 ms  first batch of main/1, with 6 other requests; 0 prompt tokens were cached there
       900.0 ms  first token
      2000.0 ms  last token
`)
}

// TestAlternativesText: without any it says how to get them; columns without numbers are left out.
func TestAlternativesText(t *testing.T) {
	in, r := smallRun(), detail()
	checkText(t, "none", written(in, func(w *writer) { w.alternatives(r) }), "[ALTERNATIVES] none recorded: blis-sim "+
		"--counterfactual 3, or --counterfactual dec-000003\n")
	r.Exact = &attribution.Exact{}
	if got := written(in, func(w *writer) { w.alternatives(r) }); got != "" {
		t.Errorf("%s", got)
	}
	r.Exact = nil
	r.Regrets = []stream.Regret{{Decision: "dec-000003", Method: stream.MethodEstimated, HindsightMS: ptr(900),
		AvoidableMS: ptr(300), Alternatives: []stream.Alternative{{Deployment: "main", Replica: 0, E2EMS: ptr(1100)},
			{Deployment: "main", Replica: 1, Chosen: true, E2EMS: ptr(2000)}}},
		{Decision: "dec-000003", Method: "exact", HindsightMS: ptr(1), Alternatives: []stream.Alternative{
			{Verdict: "reject", Own: &stream.Difference{E2EMS: 5}, All: &stream.Difference{SLOGained: 2, SLOLost: 1,
				E2EMS: -7}}}}}
	checkText(t, "two methods", written(in, func(w *writer) { w.alternatives(r) }), `
[ALTERNATIVES] dec-000003, estimated: hindsight 900.0 ms, avoidable 300.0 ms
alternative  e2e_ms
main/0       1100.0
main/1 *     2000.0
[ALTERNATIVES] dec-000003, exact
alternative  own_e2e_ms_less  slos_gained  slos_lost  total_e2e_ms_less
reject                   5.0            2          1               -7.0
`)
}

// TestWindowText compares an interval with the run.
func TestWindowText(t *testing.T) {
	x := &attribution.Window{Arrived: 20, Offered: 100, Judged: 16, Lost: 4, RunJudged: 80, RunLost: 8,
		SpanUS: 10_000_000, Replicas: []attribution.WindowReplica{{Replica: "main/0", Sent: 15, Lost: 3,
			LongestQueue: 9}},
		Tenants:  []attribution.WindowGroup{{Name: "a", Arrived: 15, All: 30}, {Name: "b", Arrived: 5, All: 70}},
		Classes:  []attribution.WindowGroup{{Name: "chat", Arrived: 20, All: 100}},
		Patterns: []attribution.PatternCount{{Condition: condition("long_queue", "routing"), N: 3}},
		Anomalies: []stream.Anomaly{{Type: "burst", Replica: stream.NoIndex, StartUS: 1_000_000, EndUS: 2_000_000,
			Severity: 1, Text: "many arrive"}}}
	q := &attribution.Query{FromUS: 500_000, UntilUS: 2_500_000}
	checkText(t, "window", written(smallRun(), func(w *writer) { w.window(x, q) }), `
[WINDOW] 0.500 s to 2.500 s
20 of 100 requests arrived, 10.00/s; 10.00/s in the whole run
lost: 4 of 16 (25.0 %); 10.0 % in the whole run
3 of these match long_queue: it holds for long_queue
replica  sent  lost  longest_queue
main/0     15     3              9
tenant  arrived  of_window_pct  of_run_pct
a            15           75.0        30.0
b             5           25.0        70.0
anomaly: burst, 1.000 s to 2.000 s, severity 1.00: many arrive
`)
	x.SpanUS, x.Judged, x.Patterns, x.Replicas, x.Tenants, x.Anomalies = 0, 0, nil, nil, nil, nil
	checkText(t, "a short run", written(smallRun(), func(w *writer) { w.window(x, q) }),
		"[WINDOW] 0.500 s to 2.500 s\n20 of 100 requests arrived, 10.00/s\n")
}

// TestGroupTables: those with most misses come first, five of them; a group without targets has dashes.
func TestGroupTables(t *testing.T) {
	group := func(offered, met int64) *metrics.Group {
		g := &metrics.Group{Goodput: &metrics.Goodput{Offered: offered, Met: met,
			Ratio: float64(met) / float64(offered)}, TTFT: &metrics.Distribution{Count: 1000, P99: 500}}
		g.Requests.Offered = offered + 1
		return g
	}
	in := &Input{Metrics: &metrics.Raw{}}
	in.Metrics.Cls = map[string]*metrics.Group{"a": group(100, 99), "b": group(200, 170), "c": {}}
	checkText(t, "classes", written(in, byClass.write), `
name  offered  missed  met_pct  of_misses_pct  ttft_p99_ms  tpot_p99_ms  e2e_p99_ms
b         201      30     85.0           96.8          500            -           -
a         101       1     99.0            3.2          500            -           -
c           0       -        -              -            -            -           -
`)
	in.Metrics.Cls["c"].E2E = &metrics.Distribution{Count: 999, P99: 5}
	if got := written(in, byClass.write); !strings.HasSuffix(got, "  5.0?\n? few samples\n") {
		t.Errorf("few samples: %s", got)
	}
	in.Metrics.Tenants = map[string]*metrics.Group{}
	for i := range int64(7) {
		in.Metrics.Tenants[fmt.Sprint("t", i)] = group(100, 100)
	}
	got := written(in, byTenant.write)
	if strings.Count(got, "\n") != 1+maxGroups+1 || !strings.HasSuffix(got, "and 2 more with fewer misses\n") ||
		!strings.Contains(got, "t0        101       0    100.0              -") {
		t.Errorf("%s", got)
	}
	in.Metrics.Tenants = map[string]*metrics.Group{"t": group(1, 1)}
	if got = written(in, byTenant.write); got != "" {
		t.Errorf("one tenant: %s", got)
	}
	in.Metrics.Tenants["u"] = group(2, 1)
	if got = written(in, byTenant.write); strings.Count(got, "\n") != 3 {
		t.Errorf("two tenants: %s", got)
	}
}

// TestScenarioTable: what is held out has only its score.
func TestScenarioTable(t *testing.T) {
	m := smallRun().Metrics
	in := &Input{Scenarios: []Scenario{{Name: "a", Score: 0.5, Metrics: m, Subject: true}, {Name: "b", Score: 0.75,
		Metrics: m, HeldOut: true}}}
	checkText(t, "scenarios", written(in, byScenario.write), `
scenario   score  offered  met_pct  ttft_p99_ms  e2e_p99_ms
a         0.5000     2050     91.0          900       2000?  this text
b         0.7500        -        -            -           -   held out
`)
	for range maxScenarios {
		in.Scenarios = append(in.Scenarios, Scenario{Name: "c", Metrics: m})
	}
	if got := written(in, byScenario.write); !strings.HasSuffix(got, "\nand 2 more scenarios\n") {
		t.Errorf("%s", got)
	}
}

// TestReplicaTables: replicas are compared if one has more than twice the requests, or loses 10 % more, or is 20 %
// slower.
func TestReplicaTables(t *testing.T) {
	row := func(sent, judged, lost int64, slower float64) attribution.ReplicaRow {
		return attribution.ReplicaRow{Name: "main/0", Sent: sent, Judged: judged, Lost: lost, Share: 0.25,
			Slower: slower}
	}
	base := row(100, 100, 10, 1)
	for _, c := range []struct {
		row  attribution.ReplicaRow
		want bool
	}{{row(210, 100, 10, 1), false}, {row(211, 100, 10, 1), true}, {row(100, 100, 20, 1), false},
		{row(100, 100, 21, 1), true}, {row(100, 100, 10, 1.19), false}, {row(100, 100, 10, 1.2), true}} {
		if got := differ([]attribution.ReplicaRow{base, c.row}); got != c.want {
			t.Errorf("%+v differs: %v", c.row, got)
		}
	}
	prefill := row(211, 100, 30, 1) // does other work
	if prefill.Prefills = true; differ([]attribution.ReplicaRow{base, prefill}) {
		t.Error("a prefill replica differs from one that decodes")
	}
	r := row(100, 80, 20, 1.25)
	r.InputTokens, r.CachedTokens, r.TPOTMS = 1000, 125, 12.5
	base.InputTokens = 1 // none of it was cached
	in := smallRun()
	in.Metrics.Replicas = []metrics.Replica{{PeakQueue: 7, Utilization: ptr(0.5)}, {PeakQueue: 9}, {Deployment: "other",
		PeakQueue: 11, Utilization: ptr(1)}}
	in.Findings.Replicas = []attribution.ReplicaRow{r, row(30, 0, 0, 0)}
	checkText(t, "replicas", written(in, byReplica.write), `
name    sent  share_pct  lost  lost_pct  busy_pct  hit_pct  peak_queue  tpot_p50_ms  tpot_vs_peer
main/0   100       25.0    20      25.0        50     12.5           7         12.5          1.25
main/0    30       25.0     0       0.0        50        -           7            -             -
`)
	for range maxReplicaRows {
		in.Findings.Replicas = append(in.Findings.Replicas, base)
	}
	if got := written(in, byReplica.write); !strings.HasSuffix(got, "\nand 2 more with no more losses\n") {
		t.Errorf("%s", got)
	}
	in.Findings.Deployments = []attribution.ReplicaRow{base}
	if got := written(in, byDeployment.write); got != "" {
		t.Errorf("one deployment: %s", got)
	}
	in.Findings.Deployments = []attribution.ReplicaRow{base, base}
	if got := written(in, byDeployment.write); strings.Count(got, "\n") != 3 || !strings.Contains(got, "50      0.0") {
		t.Errorf("two deployments: %s", got)
	}
}

// TestSessionSection says where the time of sessions went.
func TestSessionSection(t *testing.T) {
	in := smallRun()
	in.Metrics.Sessions = &metrics.Sessions{Offered: 10, Completed: 7, Broken: 2, Unfinished: 1, Attainment: ptr(0.5),
		E2E: &metrics.Distribution{Count: 7, Mean: 1000, P50: 900, P99: 2000}, Tool: &metrics.Distribution{Mean: 300}}
	in.Findings.Sessions = &attribution.SessionTime{Calls: 0.5, Waiting: 0.125, Tools: 0.3, Other: 0.2, Joins: 3,
		JoinMS: 40}
	checkText(t, "sessions", written(in, sessions.write), `
10 sessions: 7 completed, 2 broken, 1 unfinished; 50.0 % met all targets
E2E ms mean 1000 p50 900 p99 2000?; tools, in sum, mean 300
of the sessions' time: model calls 50.0 %, of which waiting 12.5 %; tools 30.0 %; think time and other 20.0 %
parallel calls: 3 steps waited 40.0 ms (mean) from the mean end of their calls to the last one
`)
	for calls, want := range map[float64]string{0.7: "20.0 %\n", 0.75: "20.0 %; parallel ones add up\n"} {
		in.Findings.Sessions.Calls = calls
		if text := written(in, sessions.write); !strings.Contains(text, "think time and other "+want) {
			t.Errorf("calls %v:\n%s", calls, text)
		}
	}
	in.Findings, in.Metrics.Sessions.E2E, in.Metrics.Sessions.Attainment = nil, nil, nil
	checkText(t, "without findings", written(in, sessions.write),
		"10 sessions: 7 completed, 2 broken, 1 unfinished\n")
	if in.Metrics.Sessions.Offered = 0; written(in, sessions.write) != "" {
		t.Error("no sessions have a section")
	}
}

// TestRegretSections: what candidates would have saved, and how reliable the estimates are.
func TestRegretSections(t *testing.T) {
	in := smallRun()
	in.Findings.Regret = &attribution.Regret{Decisions: 10, Better: 4, HindsightMS: 900, AvoidableMS: 300, E2EMS: 3600,
		Exact: 2, Flips: 1}
	checkText(t, "regret", written(in, regret.write), `
4 of 10 decisions had another candidate with a lower estimated E2E
routing rule  decisions  better  hindsight_ms  avoidable_ms
root (best)          10       4           900           300
only one              0       0           0.0           0.0
2 decisions were re-simulated; for 1 an alternative gains more SLOs than it loses, beyond the run's own sensitivity
reliability of the estimates: not measured; blis-sim --counterfactual exact:20 does
`)
	in.Metrics.Regret = &metrics.Regret{Reliability: &metrics.Reliability{Alternatives: 32, SpearmanE2E: ptr(0.75)}}
	in.Findings.Regret.Exact, in.Findings.Regret.Decisions = 0, 0
	checkText(t, "reliability", written(in, regret.write), "reliability of the estimates: Spearman with re-simulation "+
		"E2E 0.75, TTFT - (32 alternatives)\n")
	in.Findings.Waiting.E2EMS = 0
	checkText(t, "headroom", written(in, headroom.write), "routing, one decision at a time: the best candidate saves "+
		"900 of 3600 ms estimated E2E (25.0 %); avoidable with visible signals: 300 ms."+
		" Another policy may save more.\n")
}

// TestStrengthOfPrefixes: at most 5 % of the expected cached tokens were not cached.
func TestStrengthOfPrefixes(t *testing.T) {
	in := smallRun()
	in.Findings.Strengths = in.Findings.Strengths[:0]
	in.Metrics.Shadow = &metrics.Shadow{ExpectedTokens: 100, OverTokens: 5}
	checkText(t, "good", written(in, strengths.write), "prefixes: 95 of 100 expected cached tokens were cached\n")
	if in.Metrics.Shadow.OverTokens = 6; written(in, strengths.write) != "" {
		t.Error("6 % are a strength")
	}
}

// TestManyAnomalies: the most severe come first, of equal ones the earliest.
func TestManyAnomalies(t *testing.T) {
	in := smallRun()
	in.Findings.Anomalies = nil
	for i := range stream.Micros(8) {
		in.Findings.Anomalies = append(in.Findings.Anomalies, stream.Anomaly{Type: fmt.Sprint("type", i), Replica: -1,
			StartUS: 1000 * (10 - i), Severity: float64(i%2) / 2})
	}
	got := written(in, anomalies.write)
	if !strings.HasPrefix(got, "type7, 0.003 s") || !strings.HasSuffix(got, "and 2 more anomalies\n") ||
		strings.Count(got, "severity 0.50") != 4 {
		t.Errorf("%s", got)
	}
}

// TestChangedSince: six changes of the configuration are shown, computed values are none, and patterns come and go.
func TestChangedSince(t *testing.T) {
	in := smallRun()
	config := func(n int, routing string) map[string]any {
		c := map[string]any{"policies": map[string]any{"routing": map[string]any{"type": routing}},
			"deployments": []any{map[string]any{"id": "main", "computed": map[string]any{"kv_blocks": n}}}}
		for i := range n {
			c[fmt.Sprint("k", i)] = i
		}
		return c
	}
	since := func(before, after map[string]any) string {
		r := &Reference{Name: "parent", Header: &stream.Header{Run: &stream.RunHeader{Config: before}}}
		return written(in, func(w *writer) { w.against(r, after) })
	}
	checkText(t, "nothing", since(config(0, "x"), config(0, "x")), "changed since the parent: nothing\n")
	checkText(t, "gone", since(config(1, "x"), config(0, "y")),
		"changed since the parent: k0 0 -> -, policies.routing.type x -> y\n")
	checkText(t, "six", since(config(0, "x"), config(6, "x")),
		"changed since the parent: k0 - -> 0, k1 - -> 1, k2 - -> 2, k3 - -> 3, k4 - -> 4, k5 - -> 5\n")
	checkText(t, "eight", since(config(0, "x"), config(8, "x")),
		"changed since the parent: k0 - -> 0, k1 - -> 1, k2 - -> 2, k3 - -> 3, k4 - -> 4, k5 - -> 5 and 2 more\n")
	before, after := smallRun().Findings.Patterns, smallRun().Findings.Patterns
	after[0].Condition, after[1].Condition = before[0].Condition, before[1].Condition
	checkText(t, "equal", patternChanges(before, after), "unchanged")
	after[1].Lost++
	checkText(t, "more", patternChanges(before, after), "cold_prefix tenant-1 30 -> 31")
	after[1].Value = "tenant-2"
	checkText(t, "other", patternChanges(before, after),
		"cold_prefix tenant-2 is new (31), cold_prefix tenant-1 is gone (30)")
}

// TestControlText: the most frequent age of signals is said once.
func TestControlText(t *testing.T) {
	checkText(t, "control", controlText(tree{"snapshots": map[string]any{"default": "9s", "kv": "50ms", "queue": "50ms",
		"running": "0s"}, "flow_control": map[string]any{"type": "fair"}, "admission_latency_us": 100,
		"routing_latency_us": 0}), "snapshots 50ms, running 0s; flow control fair; admission_latency_us 100")
	checkText(t, "plain", controlText(tree{"routing_latency_us": 20}),
		"snapshots; routing_latency_us 20")
}

// TestEngineText has what differs from the defaults.
func TestEngineText(t *testing.T) {
	d := tree{"engine": map[string]any{"max_num_seqs": 8, "max_num_batched_tokens": 512, "block_size": 16,
		"watermark": 0.01, "long_prefill_token_threshold": 0, "tensor_parallel_size": 2,
		"pipeline_parallel_size": 1, "enforce_eager": true,
		"enable_prefix_caching": false, "enable_chunked_prefill": true}, "computed": map[string]any{"kv_blocks": 100},
		"latency": map[string]any{"beta_us": []any{1, 2}, "alpha_us": []any{3}}}
	checkText(t, "engine", engineText(d), "max_num_seqs 8, max_num_batched_tokens 512, 100 KV blocks of 16, "+
		"watermark 0.01, tensor_parallel_size 2, enforce_eager, beta_us [1, 2], alpha_us [3], "+
		"enable_prefix_caching false")
	d["latency"].(map[string]any)["source"] = "measured"
	if got := engineText(d); strings.Contains(got, "beta_us") {
		t.Error(got)
	}
}

// TestFailuresNameDeployments where there are several, or pools.
func TestFailuresNameDeployments(t *testing.T) {
	failures := map[string]any{"events": []any{map[string]any{"deployment": "main", "replica": 1, "kind": "down",
		"at": "2s"}}}
	deployments := []any{map[string]any{"id": "main"}}
	config := tree{"failures": failures, "deployments": deployments}
	checkText(t, "one", featuresText(config, config.list("deployments")), "failures: replica 1 down at 2s")
	config["deployments"] = append(deployments, map[string]any{"id": "other"})
	checkText(t, "two", featuresText(config, config.list("deployments")), "failures: replica main/1 down at 2s")
	config["deployments"] = []any{map[string]any{"id": "main", "prefill": map[string]any{},
		"decider": map[string]any{"type": "always"}, "transfer": map[string]any{"latency_us": 5, "out_gb_per_s": 1,
			"in_gb_per_s": 2, "hop_us": 3, "lease_s": 10, "on_expiry": "recompute"}}}
	checkText(t, "pools", featuresText(config, config.list("deployments")), "pools: decider always, links 1 GB/s out "+
		"and 2 in, 5 us, hop 3 us, lease 10 s (then recompute); failures: replica main/1 down at 2s")
}
