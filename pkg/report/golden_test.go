package report

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// condition is one that is no entry of the table, so that its texts stay.
func condition(name, component string) *attribution.Condition {
	return &attribution.Condition{Name: name, Doc: "it holds for " + name, Hint: "avoid " + name,
		Component: &attribution.Component{Name: component}}
}

// smallRun is an input with findings made by hand: of 2,000 requests with targets 180 missed theirs.
func smallRun() *Input {
	h := &stream.Header{Tool: "blis-sim", Version: "1.2.3", Run: &stream.RunHeader{
		Key: stream.SimulationKey{Policy: "0123456789abcdef", WorkloadSeed: 1, SimSeed: 2, JitterSeed: 3},
		Config: map[string]any{"policies": map[string]any{"routing": map[string]any{"type": "weighted"},
			"scheduler": map[string]any{"type": "fcfs"}}}}}
	m := &metrics.Raw{DurationS: 12.5}
	m.Requests = metrics.Requests{Offered: 2050, Completed: 2000, Rejected: 30, TimedOut: 20}
	m.Goodput = &metrics.Goodput{Ratio: 0.91, Met: 1820, Offered: 2000}
	m.TTFT = &metrics.Distribution{Count: 2000, P50: 100, P99: 900}
	m.E2E = &metrics.Distribution{Count: 999, P50: 1000, P99: 2000}
	queueing, cold := condition("long_queue", "routing"), condition("cold_prefix", "cache")
	f := &attribution.Findings{
		Loss: &attribution.Loss{Kind: attribution.LossMisses, Lost: 180, Judged: 2000, Total: 180,
			LostParts: attribution.PartMeans{Requests: 150,
				MS: [attribution.PartCount]float64{attribution.PartQueue: 400, attribution.PartDecode: 600}},
			MetParts: attribution.PartMeans{Requests: 1820,
				MS: [attribution.PartCount]float64{attribution.PartQueue: 20, attribution.PartDecode: 500}},
			Missed: attribution.MissCounts{TTFT: 120, E2E: 10, Incomplete: 50,
				States: []attribution.Count{{Name: "rejected", N: 30}, {Name: "timed_out", N: 20}}},
			Dominant: [attribution.PartCount]int64{attribution.PartQueue: 170, attribution.PartDecode: 10},
			Main: []attribution.Group{{Class: "chat", Part: attribution.PartQueue, N: 100, Loss: 100},
				{Part: attribution.PartQueue, N: 50, Loss: 50}, {Part: attribution.PartDecode, N: 12, Loss: 12}},
			ExcessMS: 4567},
		Patterns: []attribution.Pattern{
			{Condition: queueing, Policy: "weighted", Rule: "routing.root",
				Support: attribution.Support{Lost: 90, All: 300, Lift: 4.4}, Loss: 0.5,
				Part: attribution.PartQueue, Cause: "requests queue behind long prompts"},
			{Condition: cold, Value: "tenant-1", Support: attribution.Support{Lost: 30, All: 600, MetWithout: 20},
				Loss: 1. / 6, Part: attribution.PartPrefill, Cause: "prompts are computed again"}},
		Unexplained: attribution.Unexplained{Lost: 60, Part: attribution.PartDecode},
		Hints: []attribution.Hint{
			{Pattern: 1, Condition: "long_queue", Component: "routing", Advice: "avoid long_queue",
				Change:       attribution.Change{Path: "policies.routing", From: "weighted", To: "least-loaded"},
				ExpectedGain: 0.045, Command: "blis-sim --set policies.routing=least-loaded"},
			{Pattern: 1, Condition: "long_queue", Component: "routing", Advice: "add a replica",
				Change:       attribution.Change{Path: "deployments.main.replicas", From: 3, To: 4},
				ExpectedGain: 0.045, Command: "blis-sim --set deployments.main.replicas=4"},
			{Pattern: 0, Condition: "small_batch", Component: "engine", Advice: "raise max_num_seqs",
				Change:       attribution.Change{Path: "deployments.main.engine.max_num_seqs", From: 8, To: 16},
				ExpectedGain: 0.01, Command: "blis-sim --set deployments.main.engine.max_num_seqs=16"}},
		NeverFired: []metrics.Rule{{Path: "admission.root", Rule: "req.tier == 1", Evaluated: 2050}},
		Admission:  &attribution.Admission{Policy: "expression", Decisions: 2050},
		LossWindow: attribution.LossWindow{FromUS: 2_000_000, UntilUS: 4_500_000, RunUS: 12_500_000},
		Worst: []attribution.Example{{Decision: "dec-000007", Request: "req-7", Pattern: 0,
			Labels: attribution.Labels{Tenant: "t1", Class: "chat", Rule: "root"}, ArrivalUS: 3_250_000,
			Replica: "main/0", Queue: attribution.ActualQueue{Own: 9, Shortest: 2, ShortestAt: "main/1",
				TokensStarted: 5000},
			Outcome: attribution.Outcome{State: stream.StateCompleted, Lost: true},
			Latency: attribution.Latency{PartsMS: [attribution.PartCount]float64{attribution.PartQueue: 700,
				attribution.PartDecode: 300}, TTFTMS: 800, TPOTMS: 10, E2EMS: 1000,
				Targets: stream.Targets{TTFTMS: 500, TPOTMS: 10}}}},
		Waiting: attribution.Waiting{WaitMS: 250, E2EMS: 1000},
		Strengths: []attribution.Strength{
			{Kind: attribution.StrengthClass, Name: "batch", Met: 300, All: 300, OtherMet: 1520, OtherAll: 1700},
			{Kind: attribution.StrengthCached, Met: 99, All: 100}},
		Anomalies: []stream.Anomaly{{Type: "queue_growth", Deployment: "main", Replica: 1, StartUS: 1_000_000,
			EndUS: 3_000_000, Severity: 0.5, Text: "the queue grows"},
			{Type: "slo_violation", SLOClass: "chat", Replica: stream.NoIndex, StartUS: 2_000_000, EndUS: 2_500_000,
				Severity: 0.75, Text: "a third misses"}},
		Conditions: func() []attribution.ConditionCount {
			return []attribution.ConditionCount{
				{Condition: queueing, Support: attribution.Support{Lost: 90, All: 300, Lift: 4.4}},
				{Condition: cold, Value: "tenant-1", Support: attribution.Support{Lost: 30, All: 600}}}
		},
		Rules: []attribution.RuleCount{{Rule: "root", Reason: "best", Requests: 1500, Judged: 1400, Lost: 140,
			Estimated: 10, Better: 4, HindsightMS: 900, AvoidableMS: 300}, {Reason: "only one", Requests: 550}},
	}
	return &Input{Header: h, WorkloadDigest: "fedcba9876543210", Metrics: m, Analyzer: attribution.New(h), Findings: f,
		Warnings: []string{"policies: a weight is 0"}}
}

// checkText compares a text with lines.
func checkText(t *testing.T, name, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
	}
}

// TestTextOfSmallRun has all sections for which the run has something to say.
func TestTextOfSmallRun(t *testing.T) {
	checkText(t, "the text", string(Text(smallRun(), &Options{MaxTokens: maxTokens, Hints: true})), `
[blis-summary/1] routing weighted
[HEADLINE]
state: degraded. 1820 of 2000 requests met their SLO targets (91.0 %), 180 missed: TTFT 120, E2E 10, rejected 30, `+
		`timed_out 20.
where: queue (chat) 100, queue 50, 1 more; 90.0 % of the misses.
when: 90.0 % of the misses arrived from 2.0 s to 4.5 s.
top cause: P1 long_queue explains 50.0 % of the misses: requests queue behind long prompts.
change: policies.routing: weighted -> least-loaded (these misses are 4.5 % of the requests)
requests: 2050 offered, 2000 completed, 30 rejected, 20 timed out; TTFT ms p50 100 p99 900; E2E ms p50 1000 p99 2000? `+
		`(? few samples).
run: policy 0123456789ab, workload fedcba987654, seeds workload 1, sim 2, jitter 3; 12.500 s.
note: policies: a weight is 0
[HINTS]
P1: avoid long_queue
   up to 4.5 % of the requests: blis-sim --set policies.routing=least-loaded
   or add a replica:
   up to 4.5 % of the requests: blis-sim --set deployments.main.replicas=4
P2: avoid cold_prefix
also small_batch: raise max_num_seqs
   up to 1.0 % of the requests: blis-sim --set deployments.main.engine.max_num_seqs=16
[PATTERNS]
P1 long_queue, routing weighted, rule routing.root
   90 of 180 misses (50.0 %); 300 requests match, lift 4.4
   requests queue behind long prompts
P2 cold_prefix tenant-1, cache
   30 of 180 misses (16.7 %); 600 requests match, without that time 20 of these would meet their targets
   prompts are computed again
lift: loss rate or ms lost of requests that match / of others that no earlier cause explains.
not explained: 60 of 180 misses, most of them in decode
NEVER fired: admission.root (req.tier == 1), 0 of 2050
admission expression NEVER rejected or delayed: 0 of 2050
[LOSS]
mean ms  requests  queue  decode   all
missed        150    400     600  1000
met          1820   20.0     500   520
misses by the part furthest above its mean in met requests of the class: queue 170, decode 10; above target by `+
		`4567 ms
[SETUP]
policies: routing weighted; others default
engine:
cluster: ; snapshots
[WORST]
W1 of P1: dec-000007 for req-7, class chat, tenant t1, arrived at 3.250 s
   actual queue 9, shortest 2 at main/1; waited while 5000 tokens started
   ms: queue 700 | decode 300; TTFT 800 ms (MISSED 500); TPOT 10.0 ms (limit 10); E2E 1000 ms
[STRENGTHS]
class batch: 300 of 300 met their targets, others 1520 of 1700
at least half of the prompt cached: 99 of 100 met their targets
[ANOMALIES]
slo_violation of chat, 2.000 s to 2.500 s, severity 0.75: a third misses
queue_growth at main/1, 1.000 s to 3.000 s, severity 0.50: the queue grows
[HEADROOM]
waiting (admission, flow, frontend, queue, preempted): 250 of 1000 ms E2E of completed requests (25.0 %); `+
		`the rest is prefill and decode.
alternatives not evaluated: use blis-sim --counterfactual 3; for whole policies: scripts/headroom.
[MORE]
blis-sim --set policies.routing=least-loaded
blis-summarize --explain dec-000007 RUN
blis-summarize --explain req-7 RUN
blis-summarize --explain 2.2s:4.2s RUN
blis-summarize --component routing RUN
blis-summarize --strategy decision_audit|counterfactual|pattern_mining RUN
[NOTES]
policies: a weight is 0
`)
}

// sectionsOf are the sections of the small run by name, and their names in order.
func sectionsOf(o *Options) (text map[string]string, names string) {
	text = map[string]string{}
	for _, s := range Sections(smallRun(), o)[1:] {
		text[s.Name] = strings.TrimPrefix(s.Text, "["+s.Name+"]\n")
		names += s.Name + " "
	}
	return text, strings.TrimSpace(names)
}

// TestStrategiesOfSmallRun: each strategy has its sections in its order.
func TestStrategiesOfSmallRun(t *testing.T) {
	for _, c := range []struct{ strategy, order, section, text string }{
		{"decision_audit", "HEADLINE SETUP DECISIONS PATTERNS STRENGTHS ANOMALIES MORE NOTES", "DECISIONS", `
admission expression: 2050 decisions, 0 rejected, 0 delays
routing rule  requests  judged  lost  lost_pct
root (best)       1500    1400   140      10.0
only one           550       0     0         -
`},
		{"counterfactual", "HEADLINE REGRET HEADROOM PATTERNS MORE NOTES", "REGRET",
			"none recorded: blis-sim --counterfactual 3, or exact:20\n"},
		{"pattern_mining", "HEADLINE PATTERNS CONDITIONS STRENGTHS MORE NOTES", "CONDITIONS", `
condition             component  lost  match  lost_pct  lift
long_queue              routing    90    300      30.0   4.4
cold_prefix tenant-1      cache    30    600       5.0     -
lost of 180, match of 2000; conditions overlap; --component NAME explains them
`},
	} {
		text, order := sectionsOf(&Options{Strategy: c.strategy})
		checkText(t, c.strategy, order, c.order)
		checkText(t, c.strategy, text[c.section], c.text)
	}
}

// TestComponentOfSmallRun: a text about one component leaves out the patterns, hints and conditions of others.
func TestComponentOfSmallRun(t *testing.T) {
	text, order := sectionsOf(&Options{Component: "routing", Hints: true})
	checkText(t, "order", order, "HEADLINE PATTERNS HINTS DECISIONS CONDITIONS WORST MORE NOTES")
	checkText(t, "patterns", text["PATTERNS"], `
P1 long_queue, routing weighted, rule routing.root
   90 of 180 misses (50.0 %); 300 requests match, lift 4.4
   requests queue behind long prompts
lift: loss rate or ms lost of requests that match / of others that no earlier cause explains.
NEVER fired: admission.root (req.tier == 1), 0 of 2050
admission expression NEVER rejected or delayed: 0 of 2050
`)
	checkText(t, "hints", text["HINTS"], `
P1: avoid long_queue
   up to 4.5 % of the requests: blis-sim --set policies.routing=least-loaded
   or add a replica:
   up to 4.5 % of the requests: blis-sim --set deployments.main.replicas=4
`)
	checkText(t, "conditions", text["CONDITIONS"], `
condition   component  lost  match  lost_pct  lift
long_queue    routing    90    300      30.0   4.4
lost of 180, match of 2000; conditions overlap; --component NAME explains them
`)
	if _, order = sectionsOf(&Options{Component: "engine"}); strings.Contains(order, "WORST") {
		t.Errorf("an example of routing is in the text about engines: %s", order)
	}
}

// TestFewTokens: where few tokens are left, hints are first reduced to the best one of each pattern, and then the
// headline to its beginning.
func TestFewTokens(t *testing.T) {
	in := smallRun()
	for i, gain := range []float64{0.01, 0.25} {
		in.Findings.Hints[i].Measured = &attribution.Measured{Score: 0.5 + gain, Gain: gain}
	}
	in.Findings.Hints[1].Advice = strings.Repeat("words ", 40) + "at the end"
	text := string(Text(in, &Options{MaxTokens: 420}))
	if !strings.Contains(text, "measured: fitness 0.7500 (+0.2500)\nand 1 more hints (--format json)\n") ||
		strings.Contains(text, "0.5100") {
		t.Errorf("not only the best hint:\n%s", text)
	}
	in.Metrics.Warnings = []string{"few samples", "deployment main: step times are sums; of kernels: measured",
		"deployment b: x"}
	in.Warnings = append(slices.Clone(in.Metrics.Warnings), strings.Repeat("many words ", 40))
	text = string(Text(in, &Options{MaxTokens: 420}))
	if !strings.HasSuffix(text, ", NOTES (step times are sums)\n") {
		t.Errorf("not what the first warning says of the step times at the end:\n%s", text)
	}
	in.Warnings = []string{"policies: " + strings.Repeat("many words ", 40)}
	in.Selection = strings.Repeat("a selection ", 20)
	if text = string(Text(in, &Options{MaxTokens: minTokens})); strings.Contains(text, "selection: ") ||
		!strings.Contains(text, "[CUT] at --max-tokens 300: ") || !strings.Contains(text, "change: ") {
		t.Errorf("the headline is not reduced to its beginning:\n%s", text)
	}
}
