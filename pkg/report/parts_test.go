package report

import (
	"errors"
	"math"
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// ptr is a number that may be missing.
func ptr(x float64) *float64 { return &x }

// written is what write adds to a section about in.
func written(in *Input, write func(w *writer)) string {
	w := &writer{Input: in, Options: &Options{}, limit: maxSectionLength}
	write(w)
	return string(w.text)
}

// TestLinesFit: each line is as full as those of higher priority leave room for, to the character; lines that can wait
// follow.
func TestLinesFit(t *testing.T) {
	lines := []variants{{"first line", "first"}, {"second line", ""}, {""}, {"third line", "third"}}
	for _, c := range []struct {
		room int
		want string
	}{
		{10 + 11 + 10 + 4, "first line\nsecond line\nthird line\n"},
		{10 + 11 + 10 + 3, "first line\nsecond line\nthird\n"},
		{10 + 10 + 4, "first line\nthird line\nsecond line\n"},
		{10 + 5 + 4, "first line\nthird\nsecond line\n"},
		{5 + 10 + 3, "first\nthird\nsecond line\n"},
	} {
		got := written(nil, func(w *writer) { w.fit(lines, []int{0, 1, 2, 3}, c.room) })
		checkText(t, "room", got, c.want)
	}
	// The last line comes before the second in priority.
	got := written(nil, func(w *writer) { w.fit(lines, []int{0, 3, 1, 2}, 10+10+4) })
	checkText(t, "priority", got, "first line\nthird line\nsecond line\n")
}

// TestBeginningPriorities: the cause is said in full before the places of the loss are.
func TestBeginningPriorities(t *testing.T) {
	in := smallRun()
	p := &in.Findings.Patterns[0]
	p.Cause = strings.Repeat("because ", 15) + "of it"
	in.Findings.Loss.Missed = attribution.MissCounts{TTFT: 120}
	in.Findings.Loss.Main[0].Class = "a class with a name"
	got := written(in, func(w *writer) { w.beginning() })
	lines := strings.Split(got, "\n")
	if !strings.HasPrefix(lines[1], "where: queue (a class with a name) 100, 2 more;") ||
		!strings.Contains(got, p.Cause+".\n") {
		t.Errorf("%s", got)
	}
	p.Cause = ""
	if got = written(in, func(w *writer) { w.beginning() }); !strings.Contains(got, "100, queue 50, 1 more;") {
		t.Errorf("%s", got)
	}
}

// TestBeginningOfFitnessLoss: the numbers that lose fitness are named, three of them.
func TestBeginningOfFitnessLoss(t *testing.T) {
	in := smallRun()
	l := in.Findings.Loss
	l.Kind, l.Total = attribution.LossFitness, 0.5
	for i, lost := range []float64{0.01, 0.2, 0.03, 0.04} {
		l.Sources = append(l.Sources, attribution.SourceLoss{Requests: int64(10 * i),
			LossSource: attribution.LossSource{Lost: lost,
				Path: []string{"ttft.p99", "e2e.p99", "cost.usd", "tpot.p50"}[i]}})
	}
	in.Findings.Patterns[0].Sources = l.Sources[:2]
	got := written(in, func(w *writer) { w.beginning() })
	const want = "lost: e2e.p99 0.2000 (10 requests), tpot.p50 0.0400 (30 requests), cost.usd 0.0300 (20 requests), " +
		"1 more."
	if !strings.Contains(got, want) || !strings.Contains(got, "(these misses are 0.0450 of fitness)") ||
		strings.Contains(got, "TTFT 120") {
		t.Errorf("%s", got)
	}
	if got = written(in, patterns.write); !strings.Contains(got,
		"   of the fitness: e2e.p99 0.2000 (10 requests), ttft.p99 0.0100 (not by single requests)\n") ||
		!strings.Contains(got, "90 of 180 requests that lose fitness (50.0 %)") {
		t.Errorf("%s", got)
	}
}

// TestStates: a run is healthy from 99 % on, and degraded from 90 % on.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		g    metrics.Goodput
		want string
	}{
		{metrics.Goodput{Ratio: 0.99, Met: 99, Offered: 100},
			"state: healthy. 99 of 100 requests met their SLO targets (99.0 %), 1 missed."},
		{metrics.Goodput{Ratio: 0.9, Met: 90, Offered: 100},
			"state: degraded. 90 of 100 requests met their SLO targets (90.0 %), 10 missed."},
		{metrics.Goodput{Ratio: 0.899, Met: 899, Offered: 1000},
			"state: failing. 899 of 1000 requests met their SLO targets (89.9 %), 101 missed."},
		{metrics.Goodput{Ratio: 0.72, Met: 90, Offered: 100, NotIssued: 25}, "state: failing. 90 of 125 calls met " +
			"their SLO targets (72.0 %), 35 missed, 25 of them never issued (broken sessions)."},
	} {
		m := &metrics.Raw{}
		m.Goodput = &c.g
		checkText(t, "state", (&writer{Input: &Input{Metrics: m}}).state(), c.want)
	}
	for _, c := range []struct {
		loss attribution.Loss
		want string
	}{
		{attribution.Loss{Kind: attribution.LossFitness}, "state: no SLO targets; the loss is fitness."},
		{attribution.Loss{Kind: attribution.LossRegret, Total: 1234, Lost: 5, Judged: 9},
			"state: no SLO targets; the loss is estimated regret: 1234 ms over 5 of 9 decisions."},
		{attribution.Loss{Kind: attribution.LossLate, MedianTTFTMS: 50, Lost: 5, Judged: 9}, "state: no SLO targets; " +
			"the loss is requests with TTFT above 5 x the median of 50.0 ms, or not completed: 5 of 9."},
	} {
		w := &writer{Input: &Input{Metrics: &metrics.Raw{}, Findings: &attribution.Findings{Loss: &c.loss}}}
		checkText(t, "state", w.state(), c.want)
	}
}

// TestChanges: what to change is the best of the simulated hints, else the first one of the first pattern, else advice.
func TestChanges(t *testing.T) {
	in := smallRun()
	change := func() string { return (&writer{Input: in, Options: &Options{}}).change()[0] }
	f := in.Findings
	checkText(t, "first hint", change(),
		"change: policies.routing: weighted -> least-loaded (these misses are 4.5 % of the requests)")
	f.Hints[2].Measured = &attribution.Measured{Gain: 0.02}
	f.Hints[1].Measured = &attribution.Measured{Gain: 0.01}
	checkText(t, "best hint", change(), "change: deployments.main.engine.max_num_seqs: 8 -> 16 for small_batch "+
		"(measured: fitness +0.0200)")
	f.Hints[2].Measured.Gain, f.Hints[1].Measured.Gain = 0, -0.1
	checkText(t, "nothing gains", change(),
		"change: policies.routing: weighted -> least-loaded (these misses are 4.5 % of the requests)")
	f.Hints[0].Also = []attribution.Change{{Path: "a", To: true}, {Path: "b", From: []any{1, 2}, To: "x"}}
	v := (&writer{Input: in, Options: &Options{}}).change()
	checkText(t, "several", strings.Join(v, "\n"), `
change: policies.routing: weighted -> least-loaded, a: unset -> true, b: '[1, 2]' -> x (these misses `+
		`are 4.5 % of the requests)
change: policies.routing: weighted -> least-loaded and 2 more (these misses are 4.5 % of the requests)
change: policies.routing: weighted -> least-loaded and 2 more`)
	patterns := f.Patterns
	f.Hints[0].Also, f.Patterns = nil, nil
	checkText(t, "a hint that no pattern names", change(), "change: policies.routing: weighted -> least-loaded for "+
		f.Hints[0].Condition+" (these misses are 4.5 % of the requests)")
	f.Patterns, f.Hints = patterns, nil
	checkText(t, "advice", change(), "change: avoid long_queue")
	f.Patterns = nil
	if v := (&writer{Input: in, Options: &Options{}}).change(); len(v) != 1 || v[0] != "" {
		t.Errorf("without patterns: %q", v)
	}
	f.Loss.Lost = 0
	checkText(t, "nothing", change(), "change: nothing; no request missed a target.")
}

// TestSettingTexts: a policy is its type and its parameters.
func TestSettingTexts(t *testing.T) {
	policy := map[string]any{"type": "weighted", "params": map[string]any{"b": 2, "a": 1.5}}
	for want, v := range map[string]any{"weighted {a: 1.5, b: 2}": policy, "unset": nil, "plain": "plain", "2.5": 2.5,
		"{a: 1, b: [1, x]}": map[string]any{"b": []any{1, "x"}, "a": 1, "c": map[string]any{}},
		"fcfs":              map[string]any{"type": "fcfs"},
		"tree {else: 1, params: {x: 2}}": map[string]any{"type": "tree", "else": 1,
			"params": map[string]any{"x": 2}},
		"[weighted {a: 1.5, b: 2}]": []any{policy}} {
		checkText(t, "setting", settingText(v), want)
	}
	c := attribution.Change{Path: "policies.routing", From: policy, To: map[string]any{"type": "fcfs"}}
	checkText(t, "change", changeText(&c, 80, 60), "policies.routing: weighted -> fcfs")
}

// TestTopCauses without patterns.
func TestTopCauses(t *testing.T) {
	in := smallRun()
	in.Findings.Patterns = nil
	cause := func() string { return strings.Join((&writer{Input: in, Options: &Options{}}).topCause(), "\n") }
	checkText(t, "unexplained", cause(), "cause: not explained; no condition explains much of it.")
	in.Findings.Loss.Lost = 9
	checkText(t, "little", cause(),
		"cause: too little loss to look for patterns (fewer than 10 requests, or at most 1.0 %).")
	in.Fitness = &fitness.Result{Score: 0.5}
	in.Findings.Sessions = &attribution.SessionTime{Calls: 0.4, Tools: 0.6, SlowToolMS: 900, OtherToolMS: 100}
	checkText(t, "sessions", cause(), `
top cause: P1 tool_wait: tools take 60.0 % of the sessions' E2E, model calls 40.0 %; tools take 900 ms in the slowest `+
		`quarter of the sessions, 100 ms in the others (means).
top cause: P1 tool_wait: 60.0 % of the sessions' E2E.`)
	in.Fitness.Score = 0.96
	if in.SessionCause() != nil {
		t.Error("sessions are a cause although the fitness is high")
	}
	in.Fitness.Score = 0.95
	in.Findings.Sessions = &attribution.SessionTime{Calls: 0.9, Waiting: 0.8}
	checkText(t, "waiting", in.SessionCause().Text,
		"model calls wait 80.0 % of the sessions' E2E before they are served")
	if in.Findings.Sessions = (&attribution.SessionTime{Calls: 1}); in.SessionCause() != nil {
		t.Error("sessions without tools, joins and waiting have a cause")
	}
}

// TestFitnessLine: it has the references, with what is known about noise, and the gates.
func TestFitnessLine(t *testing.T) {
	in := &Input{Metrics: &metrics.Raw{}, Fitness: &fitness.Result{Score: 0.5,
		Gates: []fitness.Gate{{Passed: true}, {}}},
		References: []Reference{{Name: "baseline", Score: ptr(0.25), Lo: ptr(-0.1), Hi: ptr(0)}, {Name: "none"},
			{Name: "parent", Score: ptr(0.75), Lo: ptr(-0.3), Hi: ptr(-0.1)}, {Name: "plain", Score: ptr(0.5)},
			{Name: "other", Score: ptr(0.5), OtherWorkload: true}, {Name: "better", Score: ptr(0.4), Lo: ptr(0.01),
				Hi: ptr(0.2)}, {Name: "equal", Score: ptr(0.4), Lo: ptr(0), Hi: ptr(0.2)}}}
	fitness := func() string { return written(in, (*writer).fitness) }
	checkText(t, "fitness", fitness(), "fitness: 0.5000; baseline 0.2500 (+0.2500, within noise: 95 % CI -0.1000 to "+
		"+0.0000); parent 0.7500 (-0.2500, beyond noise: 95 % CI -0.3000 to -0.1000); plain 0.5000 (+0.0000); other "+
		"0.5000 (+0.0000, of ANOTHER workload); better 0.4000 (+0.1000, beyond noise: 95 % CI +0.0100 to +0.2000); "+
		"equal 0.4000 (+0.1000, within noise: 95 % CI +0.0000 to +0.2000); gates: 1 of 2 passed.\n")
	in.References, in.Fitness.Gates, in.DefaultFitness = nil, nil, true
	checkText(t, "default", fitness(),
		"fitness: 0.5000 = 0.1 + 0.9 x the share of completed requests (default).\n")
	in.Metrics.Goodput = &metrics.Goodput{}
	checkText(t, "targets", fitness(), "fitness: 0.5000 = 0.1 + 0.9 x the share of met requests (default).\n")
	if in.Fitness = nil; fitness() != "" {
		t.Error("no fitness has a line")
	}
}

// TestHeadlineParts: the other lines of the headline.
func TestHeadlineParts(t *testing.T) {
	in := smallRun()
	in.Integrity, in.Selection, in.Findings.Regret = "damaged: the end is missing", "class chat",
		&attribution.Regret{Decisions: 9, HindsightMS: 900, AvoidableMS: -5}
	in.Warnings = append(in.Warnings, "another")
	got := written(in, headline.write)
	for _, want := range []string{"integrity: damaged: the end is missing.\n", "selection: class chat.\n",
		"regret (estimated, E2E): 900 ms in hindsight, none (-5.0 ms) avoidable with visible signals, over 9 " +
			"decisions.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "another") {
		t.Errorf("a warning that is not about policies is in\n%s", got)
	}
	in.Header.Run, in.Findings, in.Shards = nil, nil, 3
	got = written(in, headline.write)
	if !strings.HasSuffix(got, "run: blis-sim 1.2.3, workload fedcba987654; 12.500 s.\n"+
		"merged from the runs of 3 shards: the summary of each run has its causes.\nnote: policies: a weight is 0\n") {
		t.Errorf("%s", got)
	}
	if got = written(in, more.write); got != "blis-summarize RUN without --merge explains the run of a shard\n" {
		t.Errorf("%s", got)
	}
	in.Shards = 0
	if got = written(in, headline.write); !strings.Contains(got,
		"the run holds no outcomes (--trace minimal): causes are unknown.\n") {
		t.Errorf("%s", got)
	}
	if got = written(in, more.write); got != "blis-sim --trace decisions ... records the causes\n" {
		t.Errorf("%s", got)
	}
}

// TestScoreSection has the terms and the gates of a fitness that the user gave.
func TestScoreSection(t *testing.T) {
	in := &Input{Fitness: &fitness.Result{Warnings: []string{"a term is constant"},
		Terms: []fitness.Term{{Name: "latency", Weight: 0.75, Value: 0.5, Ideal: 1, Lost: 0.3375}},
		Gates: []fitness.Gate{{Name: "goodput", Expr: "goodput.ratio >= 0.9", Passed: true},
			{Name: "tail", Expr: "ttft.p99 <= 500", Distance: 0.2, Detail: "ttft.p99 (625) <= 500"}}}}
	checkText(t, "score", written(in, score.write), `
term     weight   value   ideal    lost
latency  0.7500  0.5000  1.0000  0.3375
gate goodput passed: goodput.ratio >= 0.9
gate tail FAILED by 0.2000: ttft.p99 <= 500 (is 625)
note: a term is constant
`)
	in.DefaultFitness = true
	if got := written(in, score.write); got != "" {
		t.Errorf("the default: %s", got)
	}
}

// TestComparison has the metrics that both runs have; a ? marks a p99 of fewer than 1000 samples.
func TestComparison(t *testing.T) {
	own, other := smallRun().Metrics, smallRun().Metrics
	other.Goodput, other.TTFT, other.E2E = nil, &metrics.Distribution{Count: 1000, P99: 850},
		&metrics.Distribution{Count: 5, P99: 2000}
	other.Requests.Completed = 2010
	in := &Input{Metrics: own, References: []Reference{{Name: "baseline", Metrics: other}}}
	checkText(t, "comparison", written(in, comparison.write), `
metric         run  baseline  difference
met_pct       91.0         -           -
completed     2000      2010       -10.0
ttft_p99_ms    900       850       +50.0
e2e_p99_ms   2000?     2000?        +0.0
`)
}

// TestLossSection without requests that completed: there is no table.
func TestLossSection(t *testing.T) {
	in := smallRun()
	l := in.Findings.Loss
	l.MetParts, l.ExcessMS = attribution.PartMeans{}, 0
	checkText(t, "one row", written(in, loss.write), `
mean ms  requests  queue  decode   all
missed        150    400     600  1000
misses by the part furthest above its mean in met requests of the class: queue 170, decode 10
`)
	l.LostParts, l.Kind, l.ExcessMS = attribution.PartMeans{}, attribution.LossLate, 5
	checkText(t, "no rows", written(in, loss.write),
		"late requests by the part furthest above its mean in not lost requests of the class: queue 170, decode 10\n")
	if l.Lost = 0; written(in, loss.write) != "" {
		t.Error("nothing is lost, and there is a section")
	}
}

// TestExamples: what the router saw, the queues, the outcome and the counterfactuals of a request.
func TestExamples(t *testing.T) {
	in := smallRun()
	in.Analyzer.Decision(&stream.Decision{ID: "dec-1", Stage: stream.StageRouting, Request: "req-1", Deployment: "main",
		Considered: []stream.Candidate{stream.NewCandidate("main", 0), stream.NewCandidate("main", 1)}})
	e := in.Findings.Worst[0]
	e.Queue.ShortestAt, e.Labels.Tenant = e.Replica, ""
	e.Latency = attribution.Latency{TTFTMS: 20, TPOTMS: -1, E2EMS: -1}
	e.Outcome.State, e.Outcome.Reason = stream.StateTimedOut, "deadline"
	e.Chosen = &attribution.ReplicaView{Inflight: 4, Queue: 3, Running: -1, Prefix: 0, KV: 0.5, Score: 0.25,
		AgeUS: 2500}
	e.NextBest = &attribution.ReplicaView{Replica: 1, Inflight: 1, Queue: -1, Running: -1, Prefix: -1, KV: -1,
		Score: math.NaN()}
	e.Estimate = &attribution.Estimate{Best: "main/1", BestMS: 700, ChosenMS: 1000, AvoidableMS: 250}
	worse := &stream.Difference{SLOGained: 2, SLOLost: 1, E2EMS: 5}
	better := &stream.Difference{SLOGained: 2, E2EMS: 300}
	all := &stream.Difference{SLOGained: 7, SLOLost: 3, E2EMS: 1500}
	e.Exact = &attribution.Exact{Alternatives: []stream.Alternative{{Deployment: "main", Replica: 1, Own: worse,
		All: all}, {Verdict: "reject", Own: better, All: all}, {Deployment: "main", Replica: 2, Own: worse, All: all}},
		Sensitivity: stream.Sensitivity{Controls: 2, E2EMS: 40}}
	checkText(t, "example", Example(in, &e), `
dec-000007 for req-7, class chat, arrived at 3.250 s
   chose main/0: queue 3, prefix tokens 0, kv 50.0 %, inflight 4, score 0.250, 2.5 ms old (rule root)
   next best main/1: inflight 1
   actual queue 9, shortest 2; waited while 5000 tokens started
   timed_out (deadline); TTFT 20.0 ms
   best other main/1: E2E 700 ms, chosen 1000 (estimated); avoidable by signals 250
   re-simulated, best reject: own E2E 300 ms less; all: SLOs gained 7, lost 3, E2E 1500 ms less (own sensitivity 40.0)
`)
	e.Exact.Alternatives[1].Insensitive = true
	if got := exact(e.Exact); !strings.HasSuffix(got, "less, within the run's own sensitivity (40.0)") {
		t.Error(got)
	}
	e.Outcome.State, e.Latency.TTFTMS = stream.StateCompleted, 0
	checkText(t, "no time", smallWriter().outcome(&e), "TTFT 0.0 ms")
	if got := exact(&attribution.Exact{Alternatives: []stream.Alternative{{Own: worse}}}); got !=
		"re-simulated: nothing recorded" {
		t.Error(got)
	}
	w := &writer{Input: in, Options: &Options{}, limit: 100}
	if w.example("", &e); len(w.text) > 0 {
		t.Errorf("an example is cut: %s", w.text)
	}
}

// TestFocusComesFirst: patterns and examples of a part of the time.
func TestFocusComesFirst(t *testing.T) {
	in := smallRun()
	in.Findings.Worst = append(in.Findings.Worst, attribution.Example{Request: "req-8", Pattern: 1,
		Queue: attribution.ActualQueue{Own: -1}, Latency: attribution.Latency{TTFTMS: -1, TPOTMS: -1, E2EMS: -1}},
		attribution.Example{Request: "req-9", Pattern: -1, Queue: attribution.ActualQueue{Own: -1}})
	w := &writer{Input: in, Options: &Options{Focus: []string{"prefill"}, Examples: 2}, limit: maxSectionLength}
	worst.write(w)
	if got := string(w.text); !strings.HasPrefix(got, "W1 of P2: req-8, arrived at 0.000 s\n") ||
		!strings.Contains(got, "W2 of P1: dec-000007") || strings.Contains(got, "req-9") {
		t.Errorf("%s", got)
	}
	w.text = nil
	patterns.write(w)
	if got := string(w.text); strings.Index(got, "P2 cold_prefix") > strings.Index(got, "P1 long_queue") {
		t.Errorf("%s", got)
	}
}

// TestPatternTexts: lifts, rules and what never fired.
func TestPatternTexts(t *testing.T) {
	for want, s := range map[string]attribution.Support{"lift > 100": {Lift: 101}, "lift 100.0": {Lift: 100},
		"nearly all: no lift": {}, "lift 2.5 by ms lost": {Lift: 2.5, ByMS: true},
		"without that time 3 of these would meet their targets": {MetWithout: 3}} {
		checkText(t, "lift", lift(&s), want)
	}
	in := smallRun()
	f := in.Findings
	p := f.Patterns[0]
	p.NeverFired = &metrics.Rule{Path: "admission.root.then"}
	checkText(t, "rule", decider(&p), "routing weighted, rule admission.root.then")
	for range 4 {
		f.NeverFired = append(f.NeverFired, f.NeverFired[0])
	}
	f.Admission.Delays, f.Unexplained.Lost = 1, 35
	got := written(in, patterns.write)
	if strings.Count(got, "NEVER fired: ") != maxNeverFired || strings.Contains(got, "admission expression NEVER") ||
		!strings.HasSuffix(got, "and 1 more that NEVER fired\n") || strings.Contains(got, "not explained: ") {
		t.Errorf("%s", got)
	}
	f.Patterns, f.NeverFired, f.Unexplained.Lost = nil, nil, 36
	checkText(t, "no patterns", written(in, patterns.write), `
no pattern explains at least 5.0 % of the loss with a lift of 1.5.
not explained: 36 of 180 misses, most of them in decode
`)
}

// TestMeasuredHints are shown without --hints.
func TestMeasuredHints(t *testing.T) {
	in := smallRun()
	if got := written(in, hints.write); got != "" {
		t.Errorf("%s", got)
	}
	f := in.Findings
	f.Hints[0].Measured = &attribution.Measured{Score: 0.5, Gain: -0.01}
	f.Hints[1].Measured = &attribution.Measured{Error: "unknown replicas"}
	for range 2 {
		f.Hints = append(f.Hints, f.Hints[0])
	}
	f.Hints[0].Command = "blis-sim --set " + strings.Repeat("a", 32)
	checkText(t, "hints", written(in, hints.write), `
P1: avoid long_queue
   up to 4.5 % of the requests: a command with a long name: see hints in --format json
   measured: fitness 0.5000 (-0.0100)
   or add a replica:
   up to 4.5 % of the requests: blis-sim --set deployments.main.replicas=4
   not simulated: unknown replicas
   up to 4.5 % of the requests: blis-sim --set policies.routing=least-loaded
   measured: fitness 0.5000 (-0.0100)
and 1 more hints (--format json)
P2: avoid cold_prefix
also small_batch: raise max_num_seqs
   up to 1.0 % of the requests: blis-sim --set deployments.main.engine.max_num_seqs=16
`)
}

// TestErrorText: an error that is not of an earlier stage is broken into lines.
func TestErrorText(t *testing.T) {
	word := strings.Repeat("abcd-", 6)[:29]
	checkText(t, "error", string(Failure(errors.New(strings.Repeat(word+" ", 3)+word))), "[blis-summary/1] does not "+
		"load: fitness 0.0000\n[ERROR]\n"+word+" "+word+" "+word+"\n  "+word+"\n")
	got := string(Failure(&stream.UpstreamError{Fault: stream.ErrorRecord{Tool: "blis-sim", File: "a.yaml", Line: 3,
		Col: 7, Msg: "routing.weighted: unknown scorer"}}))
	if !strings.Contains(got, "where: a.yaml, line 3, column 7\nwhat: routing.weighted: unknown scorer\n[EXAMPLE] "+
		"routing in a bundle (-p), or under policies in a cluster file, that loads\n  routing: {type: weighted,") {
		t.Errorf("%s", got)
	}
}

// smallWriter is a writer of smallRun.
func smallWriter() *writer {
	return &writer{Input: smallRun(), Options: &Options{}, limit: maxSectionLength}
}

// TestRecordingsOfClients: without times of the first batch, the time before the first token is not called prefill. A
// recording that has them, and a simulation, distinguish the queue from the prefill.
func TestRecordingsOfClients(t *testing.T) {
	const unknown = "before the first token (queue and prefill)"
	for _, c := range []struct {
		isRecording, hasQueue bool
		want                  string
	}{{true, false, unknown}, {true, true, "prefill"}, {false, false, "prefill"}} {
		in := smallRun()
		l := in.Findings.Loss
		l.Main = []attribution.Group{{Part: attribution.PartPrefill, N: 1041, Loss: l.Total}}
		l.LostParts.MS = [attribution.PartCount]float64{attribution.PartPrefill: 900}
		l.MetParts.MS, l.Dominant = l.LostParts.MS, [attribution.PartCount]int64{attribution.PartPrefill: 7}
		in.Findings.Unexplained.Part, in.Findings.Unexplained.Lost = attribution.PartPrefill, l.Lost
		if c.isRecording {
			in.Header.Recording = &stream.RecordingHeader{}
		}
		if c.hasQueue {
			in.Metrics.Queue = &metrics.Distribution{Count: 1}
		}
		e := attribution.Example{Latency: attribution.Latency{TTFTMS: 5, TPOTMS: -1, E2EMS: -1}}
		e.Outcome.State, e.Latency.PartsMS[attribution.PartPrefill] = stream.StateCompleted, 882
		checkText(t, "outcome", written(in, func(w *writer) { w.line("%s", w.outcome(&e)) }),
			"ms: "+c.want+" 882; TTFT 5.0 ms\n")
		for _, x := range []struct {
			write func(w *writer)
			want  string
		}{
			{func(w *writer) { w.line("%s", w.mainLoss()[0]) }, "where: " + c.want + " 1041; 100.0 %"},
			{loss.write, "requests  " + c.want}, {loss.write, "class: " + c.want + " 7"},
			{patterns.write, "most of them in " + c.want + "\n"},
		} {
			if got := written(in, x.write); !strings.Contains(got, x.want) {
				t.Errorf("%+v: %q is not in\n%s", c, x.want, got)
			}
		}
	}
}
