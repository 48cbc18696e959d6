package report

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// hexDigits is a digest of 64 characters.
var hexDigits = strings.Repeat("0123456789abcdef", 4)

// names are what workloads and policies may call things.
var names = rapid.OneOf(
	rapid.SampledFrom([]string{"", "critical", "batch", "t1", "admission.root.then", "token", "my password",
		"token: abc", "TOKEN=x y", "password=1", "# heading", "```", "a\nb\n[LOSS]", "caf\u00e9 \u2028", `a"b\c`,
		hexDigits[:32], "sk-" + hexDigits[:48], strings.Repeat("long-name-", 20)}),
	rapid.StringN(0, 60, -1),
)

// drawHeader is a header with any names of classes, policies and the deployment.
func drawHeader(t *rapid.T, targets stream.Targets, deployment string, classes []string) *stream.Header {
	policies := map[string]any{}
	for _, stage := range []string{"admission", "priority", "routing", "scheduler", "preemption"} {
		policies[stage] = map[string]any{"type": names.Draw(t, stage)}
	}
	config := map[string]any{"policies": policies, "deployments": []any{
		map[string]any{"id": deployment, "model": "m", "replicas": 3, "engine": map[string]any{"block_size": 16}}}}
	h := &stream.Header{Stream: stream.StreamRun, Tool: "blis-sim", Version: "0.1.0", Run: &stream.RunHeader{
		Key: stream.SimulationKey{Policy: hexDigits}, ConfigDigest: hexDigits, Config: config}}
	for _, c := range classes {
		h.SLOClasses = append(h.SLOClasses, stream.SLOClass{Name: c, Targets: targets, Priority: float64(len(c))})
	}
	return h
}

// drawRun is an Input of any requests, decisions and names.
func drawRun(t *rapid.T) *Input {
	deployment := names.Draw(t, "deployment")
	targets := stream.Targets{TTFTMS: rapid.SampledFrom([]float64{0, 0.5, 2}).Draw(t, "ttft target"),
		E2EMS: rapid.SampledFrom([]float64{0, 5}).Draw(t, "e2e target")}
	classes := []string{names.Draw(t, "class"), names.Draw(t, "class"), names.Draw(t, "class")}
	tenants := []string{names.Draw(t, "tenant"), names.Draw(t, "tenant"), names.Draw(t, "tenant")}
	h := drawHeader(t, targets, deployment, classes)
	a := attribution.New(h)
	m := metrics.New(h.SLOClasses)
	some := rapid.SliceOfN(names, 4, 4).Draw(t, "names")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	anyName := func() string { return some[rng.IntN(len(some))] }
	upTo := func(n int) stream.Micros { return stream.Micros(rng.IntN(n)) }
	for i := range rapid.IntRange(0, 150).Draw(t, "requests") {
		at := upTo(20) * 1000
		o := stream.Outcome{PrefillReplica: stream.NoIndex, ID: fmt.Sprint(anyName(), i), ArrivalUS: at,
			State:  stream.StateRejected,
			Reason: stream.ReasonAdmission, EndedUS: at, Tenant: tenants[rng.IntN(3)], SLOClass: classes[rng.IntN(3)],
			InputTokens: 1 + int64(upTo(9000)), OutputTokens: 3, AdmittedUS: -1, RoutedUS: -1, EnqueuedUS: -1,
			ScheduledUS:  -1,
			FirstTokenUS: -1, CompletedUS: -1, Replica: stream.NoIndex}
		if rng.IntN(10) == 0 {
			a.Decision(&stream.Decision{ID: fmt.Sprintf("dec-a%06d", i), Stage: stream.StageAdmission, Request: o.ID,
				Verdict: "reject", Rule: anyName(), AtUS: at})
		} else {
			serve(&o, deployment, i, upTo)
			decide(a, &o, upTo, anyName)
		}
		o.SLOMet = metrics.SLOMet(&o, targets)
		a.Outcome(&o, false)
		m.Add(&o)
	}
	for range rapid.IntRange(0, 9).Draw(t, "anomalies") {
		a.Anomaly(&stream.Anomaly{Type: "slo_violation", Severity: 0.5, SLOClass: names.Draw(t, "of"),
			Text: names.Draw(t, "text"), Replica: stream.NoIndex})
	}
	raw := m.Raw()
	a.Metrics(raw)
	if rapid.Bool().Draw(t, "computed") {
		raw.Warnings = append(raw.Warnings, "deployment "+names.Draw(t, "computed"))
	}
	in := &Input{Header: h, WorkloadDigest: strings.Repeat("f", 64), Metrics: raw, Analyzer: a, Findings: a.Find(),
		Warnings: []string{names.Draw(t, "warning")}}
	if rapid.Bool().Draw(t, "fitness") {
		in.Fitness = &fitness.Result{Score: 0.25, Terms: []fitness.Term{{Name: names.Draw(t, "term"), Expr: "1.0"}},
			Gates: []fitness.Gate{{Name: "g", Expr: names.Draw(t, "gate"), Detail: names.Draw(t, "detail")}}}
	}
	return in
}

// decide records the routing decision about o, and for half of them its regret.
func decide(a *attribution.Analyzer, o *stream.Outcome, upTo func(int) stream.Micros, anyName func() string) {
	a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, Request: o.ID, AtUS: o.ArrivalUS,
		Deployment: o.Deployment, Replica: o.Replica, Candidates: 3, Rule: anyName(), Reason: anyName(),
		Scorers: []string{anyName()}, Considered: []stream.Candidate{
			{Deployment: o.Deployment, Replica: o.Replica, QueueDepth: 3, AgeUS: int64(upTo(400_000)),
				Terms: []float64{1}},
			{Deployment: o.Deployment, Replica: (o.Replica + 1) % 3}}})
	if upTo(2) == 0 {
		x := float64(upTo(1000))
		a.Regret(&stream.Regret{Decision: o.Decision, Request: o.ID, Stage: stream.StageRouting,
			Method: stream.MethodEstimated, HindsightMS: &x, AvoidableMS: &x,
			Alternatives: []stream.Alternative{{Deployment: o.Deployment, Replica: 1, E2EMS: &x}}})
	}
}

// serve makes o a request that completes.
func serve(o *stream.Outcome, deployment string, i int, upTo func(int) stream.Micros) {
	o.State, o.Reason, o.EndedUS = stream.StateCompleted, "", stream.Never
	o.Deployment, o.Replica, o.Decision = deployment, stream.Index(upTo(3)), fmt.Sprintf("dec-%06d", i)
	o.AdmittedUS, o.RoutedUS, o.EnqueuedUS = o.ArrivalUS, o.ArrivalUS, o.ArrivalUS
	o.ScheduledUS = o.ArrivalUS + upTo(4000)
	o.FirstTokenUS = o.ScheduledUS + upTo(4000)
	o.CompletedUS = o.FirstTokenUS + upTo(4000)
	o.ExpectedCachedTokens, o.GeneratedTokens = 512, 3
}

func drawOptions(t *rapid.T) *Options {
	o := &Options{Strategy: rapid.SampledFrom(append(Strategies.Names(), "")).Draw(t, "strategy"),
		MaxTokens: rapid.SampledFrom([]int{0, minTokens, 400, 1500, maxTokens}).Draw(t, "tokens"),
		Examples:  rapid.IntRange(0, maxExamples).Draw(t, "examples"),
		Component: rapid.SampledFrom(append(attribution.Components().Names(), "")).Draw(t, "component"),
		Focus:     rapid.SliceOfN(rapid.SampledFrom(attribution.Parts().Names()), 0, 2).Draw(t, "focus"),
		Hints:     rapid.Bool().Draw(t, "hints")}
	if o.Component != "" {
		o.Strategy = ""
	}
	return o
}
