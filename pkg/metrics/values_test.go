package metrics

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestValues: paths are in the tree's order, maps by key; missing values are omitted.
func TestValues(t *testing.T) {
	half := 0.5
	r := &Raw{FromUS: stream.Never, UntilUS: 7, DurationS: 2}
	r.TTFT = &Distribution{Count: 1, P99: 3}
	r.Anomalies = map[string]int64{"b": 2, "a": 1}
	r.Replicas = []Replica{{Deployment: "main", Index: 4, Utilization: &half}}
	r.Cls = map[string]*Group{"y": {}, "x": {AdmissionRate: &half}}
	r.Control = &Control{Rules: []Rule{{Hits: 9}}}
	want := map[string]float64{"until_us": 7, "duration_s": 2, "ttft.p99": 3, "anomalies.a": 1, "anomalies.b": 2,
		"replicas[0].utilization": 0.5, `cls["x"].admission_rate`: 0.5}
	have := map[string]float64{}
	var order []string
	for _, v := range Values(r) {
		have[v.Path] = v.Value
		if _, ok := want[v.Path]; ok {
			order = append(order, v.Path)
		}
	}
	for path, x := range want {
		if got, ok := have[path]; !ok || got != x {
			t.Errorf("%s is %v (%v), want %v", path, got, ok, x)
		}
	}
	for _, path := range []string{"from_us", "tpot.p99", `cls["y"].admission_rate`, "replicas[0].index",
		"control.rules[0].hits", "sessions.offered"} {
		if _, ok := have[path]; ok {
			t.Errorf("%s is listed", path)
		}
	}
	inOrder := []string{"until_us", "duration_s", "ttft.p99", "replicas[0].utilization", "anomalies.a", "anomalies.b",
		`cls["x"].admission_rate`}
	if d := cmp.Diff(inOrder, order); d != "" {
		t.Error(d)
	}
	if a, b := fmt.Sprint(Values(r)), fmt.Sprint(Values(r)); a != b {
		t.Error("two calls differ")
	}
}

// TestLookupPath: every value of a tree has a path, and its meaning when missing is the
// one that expressions assume.
func TestLookupPath(t *testing.T) {
	half := 0.5
	d := &Distribution{Count: 1}
	g := Group{TTFT: d, TPOT: d, E2E: d, Queue: d, TailBlowup: &half, Throughput: &Throughput{},
		Goodput: &Goodput{RPS: &half}}
	r := &Raw{Group: g, ITL: d, Reasons: map[string]int64{"deadline": 1}, Anomalies: map[string]int64{"x": 1},
		Fairness: &Fairness{}, Cost: &Cost{PerMillion: &half},
		Cls: map[string]*Group{`odd "]name`: &g}, Replicas: []Replica{{}, {}},
		Regret:   &Regret{Reliability: &Reliability{}},
		Sessions: &Sessions{Tool: d}, Shadow: &Shadow{},
		Control: &Control{Flow: &Flow{}, SignalAgeMS: &Age{}}, Bound: &Bound{GoodputRatio: &half}}
	for _, v := range Values(r) {
		if _, ok := LookupPath(v.Path); !ok {
			t.Errorf("%s is not a known path", v.Path)
		}
	}
	for path, want := range map[string]Missing{"ttft.p99": MissingIsWorst, "ttft.count": MissingIsZero,
		`cls["a"].e2e.mean`: MissingIsWorst, "itl.max": MissingIsWorst,
		"tail_blowup": MissingIsWorst, "requests.rejected": MissingIsZero, "throughput.rps": MissingIsZero,
		"goodput.ratio": MissingIsUnknown, `tenants["t"].goodput.rps`: MissingIsUnknown,
		"kv.util_mean": MissingIsUnknown, "kv.tiers.cpu.evicted_blocks": MissingIsUnknown,
		"kv.prefix_hit_ratio": MissingIsZero, "kv.preemptions": MissingIsZero,
		"cost.gpu_s": MissingIsUnknown, "cost.per_million_tokens": MissingIsWorst,
		"energy.mean_w": MissingIsUnknown, "energy.j_per_output_token": MissingIsWorst,
		"regret.avoidable_ms": MissingIsUnknown, "sessions.offered": MissingIsUnknown,
		"sessions.e2e.p50": MissingIsWorst, "targeted.ttft.p99": MissingIsWorst,
		"targeted.e2e.coverage":  MissingIsZero,
		"anomalies.hol_blocking": MissingIsZero, "fairness.jain": MissingIsZero,
		"replicas[7].utilization": MissingIsUnknown, "control.delays": MissingIsZero,
		"shadow.diverged": MissingIsUnknown} {
		if p, ok := LookupPath(path); !ok || p.Missing != want {
			t.Errorf("%s is %+v, %v, want %v", path, p, ok, want)
		}
	}
	for _, path := range []string{"ttft", "ttft.p98", `cls["a"]`, "cls.a.ttft.p99", "replicas[1]", "warnings",
		"control.rules[0].hits", "anomalies"} {
		if p, ok := LookupPath(path); ok {
			t.Errorf("%s is a known path: %+v", path, p)
		}
	}
}

// TestHigherIsBetter: the direction of every number is listed here; a new one must be
// added.
func TestHigherIsBetter(t *testing.T) {
	higher := []string{"requests.admitted", "requests.completed", "admission_rate", "throughput.rps",
		"throughput.output_tok_s", "throughput.total_tok_s",
		"goodput.rps", "goodput.ratio", "goodput.met", "kv.prefix_hit_ratio", "fairness.jain", "replicas[*].completed",
		"kv.tiers.cpu.hit_tokens", "kv.tiers.cpu.hit_ratio",
		"kv.tiers.storage.hit_tokens", "kv.tiers.storage.hit_ratio",
		"replicas[*].prefix_hit_ratio",
		"shadow.cached_tokens", "regret.reliability.spearman_ttft", "regret.reliability.spearman_e2e",
		"scale.efficiency",
		"failures.availability", "sessions.completed", "sessions.fan_out_utilization", "sessions.attainment",
		"bound.goodput_ratio", "spec_decode.accepted_tokens", "spec_decode.acceptance_rate",
		"spec_decode.mean_acceptance_length", "encoder.cache_hits", "encoder.cache_hit_ratio", "encoder.prefix_hits",
		"encode_pool.cache_hits"}
	lower := []string{"from_us", "until_us", "duration_s", "requests.offered", "requests.rejected",
		"requests.timed_out", "requests.failed",
		"requests.unfinished", "requests.not_issued", "requests.retries", "requests.server_rejected",
		"tail_blowup", "goodput.offered", "goodput.not_issued",
		"kv.util_mean", "kv.util_max", "kv.preemptions", "kv.tiers.cpu.stored_blocks", "kv.tiers.cpu.loaded_blocks",
		"kv.tiers.cpu.evicted_blocks", "kv.tiers.cpu.refused_blocks", "kv.tiers.cpu.util_max", "kv.tiers.cpu.load_busy",
		"kv.tiers.cpu.store_busy", "kv.tiers.cpu.load_wait_ms.mean", "kv.tiers.cpu.load_wait_ms.max",
		"kv.tiers.storage.stored_blocks", "kv.tiers.storage.loaded_blocks", "kv.tiers.storage.evicted_blocks",
		"kv.tiers.storage.refused_blocks", "kv.tiers.storage.util_max", "kv.tiers.storage.load_busy",
		"kv.tiers.storage.store_busy", "kv.tiers.storage.load_wait_ms.mean", "kv.tiers.storage.load_wait_ms.max",
		"kv.thrashing_rate",
		"preemption_rate", "reasons.*", "cost.gpu_s", "cost.replica_s", "cost.per_million_tokens", "cost.total",
		"cost.per_million_tokens_within_slo", "cost.total_per_million_tokens_within_slo",
		"cost.deployment[*].gpu_s", "cost.deployment[*].replica_s", "cost.deployment[*].total",
		"cost.deployment[*].per_million_tokens_within_slo", "cost.deployment[*].total_per_million_tokens_within_slo",
		"energy.total_j", "energy.idle_j", "energy.j_per_output_token", "energy.mean_w", "energy.carbon_g",
		"scale.ups", "scale.downs", "scale.oscillations", "scale.avg_replicas", "scale.wait_for_capacity_ms",
		"failures.down", "failures.lost", "failures.redirected", "failures.refused", "failures.recover_ms",
		"failures.not_recovered",
		"load.offered_over_capacity", "load.uncached", "bound.e2e_mean_ms",
		"replicas[*].requests", "replicas[*].tokens", "replicas[*].prefill_tokens", "replicas[*].decode_tokens",
		"replicas[*].preemptions",
		"replicas[*].peak_queue", "replicas[*].peak_batch", "replicas[*].utilization", "replicas[*].kv_util_mean",
		"replicas[*].kv_util_max",
		"control.delays", "control.signal_age_ms.mean", "control.signal_age_ms.max", "control.flow.queued",
		"control.flow.peak",
		"control.flow.rejected", "control.flow.expired", "control.fallbacks", "shadow.requests", "shadow.diverged",
		"shadow.expected_tokens",
		"shadow.over_tokens", "shadow.under_tokens", "regret.decisions", "regret.hindsight_ms", "regret.avoidable_ms",
		"regret.hindsight_ttft_ms", "regret.reliability.alternatives",
		"regret.prefill_routing.decisions", "regret.prefill_routing.hindsight_ms",
		"regret.prefill_routing.avoidable_ms", "regret.prefill_routing.hindsight_ttft_ms",
		"anomalies.*",
		"pd.requests", "pd.held_back", "pd.held_back_peak", "pd.expired_leases", "pd.share", "pd.transfers",
		"pd.transferred_blocks", "pd.transferred_bytes",
		"pd.prefill.replicas", "pd.prefill.utilization", "pd.prefill.kv_util_mean",
		"pd.decode.replicas", "pd.decode.utilization", "pd.decode.kv_util_mean",
		"sessions.offered", "sessions.broken", "sessions.unfinished", "spec_decode.draft_tokens", "lora.loads",
		"lora.copies", "lora.load_ms", "dp.steps", "dp.idle_share", "dp.wait_share", "dp.imbalance",
		"structured_output.requests", "structured_output.compilations",
		"structured_output.waits", "structured_output.wait_ms", "structured_output.masks", "structured_output.mask_ms",
		"structured_output.step_wait_ms", "pipeline.stage_ms", "pipeline.bubble_share", "encoder.items",
		"encoder.tokens", "encoder.cuts", "encoder.ms", "encoder.loaded", "encode_pool.replicas", "encode_pool.items",
		"encode_pool.tokens", "encode_pool.utilization", "encode_pool.peak_queue", "encode_pool.transfers",
		"encode_pool.transferred_bytes"}
	for _, d := range []string{"ttft", "tpot", "e2e", "queue", "itl", "sessions.e2e", "sessions.critical_path",
		"sessions.tool_wait", "sessions.steps", "sessions.iterations", "targeted.ttft", "targeted.tpot",
		"targeted.e2e", "pd.transfer", "pd.kv_wait", "encode_pool.wait", "encode_pool.encode", "encode_pool.transfer"} {
		higher = append(higher, d+".count", d+".coverage")
		for _, v := range []string{".mean", ".p50", ".p90", ".p95", ".p99", ".max"} {
			lower = append(lower, d+v)
		}
	}
	for _, p := range Paths() {
		path := p.Path
		for _, group := range []string{"cls[*].", "tenants[*].", "models[*]."} {
			path = strings.TrimPrefix(path, group)
		}
		if up, down := slices.Contains(higher, path), slices.Contains(lower, path); up == down ||
			up != p.HigherIsBetter {
			t.Errorf("%s: HigherIsBetter is %v; in the lists: higher %v, lower %v", p.Path, p.HigherIsBetter, up, down)
		}
	}
}

// TestWithNulls: the keys are the same with and without numbers, and the numbers equal
// those of the plain encoding.
func TestWithNulls(t *testing.T) {
	a := New(nil)
	a.Add(&stream.Outcome{ID: "r", State: stream.StateCompleted, ArrivalUS: 1, AdmittedUS: 1, EnqueuedUS: 2,
		ScheduledUS: 3, FirstTokenUS: 4, CompletedUS: 9, InputTokens: 5, OutputTokens: 2, SLOClass: "c"})
	full, empty := decoded(t, WithNulls{a.Raw()}), decoded(t, WithNulls{})
	plain := decoded(t, a.Raw())
	var compare func(path string, whole, plain map[string]any)
	compare = func(path string, whole, plain map[string]any) {
		for k, x := range plain {
			if m, ok := x.(map[string]any); ok {
				below, _ := whole[k].(map[string]any)
				compare(path+"."+k, below, m)
			} else if !cmp.Equal(whole[k], x) {
				t.Errorf("%s.%s is %v, want %v", path, k, whole[k], x)
			}
		}
	}
	compare("", full, plain)
	full["cls"] = map[string]any{}
	if f, e := keysOf("", full), keysOf("", empty); !cmp.Equal(f, e) {
		t.Errorf("keys differ: %s", cmp.Diff(f, e))
	}
	if empty["ttft"].(map[string]any)["p99"] != nil || empty["requests"].(map[string]any)["offered"] != nil {
		t.Errorf("an empty tree has numbers: %v", empty)
	}
}

func decoded(t *testing.T, v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

func keysOf(path string, m map[string]any) (all []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, path+"."+k)
		if below, ok := m[k].(map[string]any); ok {
			all = append(all, keysOf(path+"."+k, below)...)
		}
	}
	return all
}
