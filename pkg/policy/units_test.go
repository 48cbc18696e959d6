package policy

import (
	"strings"
	"testing"
)

// TestFilter: another policy chooses among the candidates that the filter keeps, and among all if it keeps none or
// fails.
func TestFilter(t *testing.T) {
	for _, c := range []struct {
		filter string
		want   int
		failed int64
	}{
		{"replica.queue_depth < 10", 2, 0},
		{"replica.queue_depth > 100", 0, 1},
		{"replica.queue_depth / (replica.inflight - replica.inflight) < 1", 0, 1},
	} {
		p := mustPlane(t, "routing", Spec{Type: "filter", Filter: c.filter, Use: &Spec{Type: "least-loaded"}})
		v := viewOf(3)
		for i, load := range []int32{2, 9, 5} {
			v.Replicas[i].Inflight, v.Replicas[i].QueueDepth = load, []int32{20, 3, 4}[i]
		}
		got := p.Routing.Route(v)
		if failed := p.Routing.Rules()[0].Failed; got.Candidate != c.want || failed != c.failed {
			t.Errorf("%s: candidate %d, %d failures; want %d, %d", c.filter, got.Candidate, failed, c.want, c.failed)
		}
	}
}

// TestPrefixAffinityLimit: the replica with the longest prefix is chosen up to max_imbalance * mean + 4 requests.
func TestPrefixAffinityLimit(t *testing.T) {
	p := mustPlane(t, "routing", Spec{Type: "prefix-affinity", Params: map[string]any{"max_imbalance": 1.0}})
	for inflight, want := range map[int32]int{8: 0, 9: 1} { // the limits are 8 and 8.5
		v := viewOf(2)
		v.Replicas[0].Inflight, v.Replicas[0].Matched, v.Replicas[0].Blocks = inflight, 3, 4
		if got := p.Routing.Route(v).Candidate; got != want {
			t.Errorf("%d in flight: candidate %d, want %d", inflight, got, want)
		}
	}
}

// TestPredictiveBudget: a request is admitted up to its budget, exactly.
func TestPredictiveBudget(t *testing.T) {
	p := mustPlane(t, "admission", Spec{Type: "predictive-slo", Params: map[string]any{"avg_step_us": 100.0,
		"headroom": 2.0, "budget_ms": map[string]any{Standard: 250.0, Sheddable: 500.0}}})
	// The standard tier is tolerated up to twice its budget.
	for tier, most := range map[string]int32{Standard: 2 * 2 * 2500, Sheddable: 2 * 5000} {
		for depth, want := range map[int32]Action{most: Admit, most + 1: Reject} {
			v := viewOf(1)
			v.Request.Tier, v.Replicas[0].QueueDepth = tier, depth
			if got := p.Admission.Admit(v).Action; got != want {
				t.Errorf("%s, %d in the queue: %v, want %v", tier, depth, got, want)
			}
		}
	}
}

// TestDynamoCredit: with decay 1, the credit of cached blocks is divided by 1 and the waiting prefills in prompts.
func TestDynamoCredit(t *testing.T) {
	d := &dynamoKV{credit: 1, decay: 1, prefillScale: 1, trackPrefill: true}
	r := &Replica{Snapshot: Snapshot{Cached: 3}, Stats: &Stats{Active: ActiveMatch{BlockTokens: 16}, PrefillTokens: 64}}
	// 17 tokens are 2 blocks, and 64 tokens wait, twice as many: a third of 3 blocks counts.
	if got, want := d.cost(17, r, 0), (64+17)/16.0-1; got != want {
		t.Errorf("the cost is %v, want %v", got, want)
	}
}

// TestUnusedParameters: a parameter that another one switches off is reported, unless it has its default.
func TestUnusedParameters(t *testing.T) {
	p := mustPlane(t, "routing", Spec{Type: "dynamo-kv", Params: map[string]any{"router_track_prefill_tokens": false,
		"prefill_load_scale": 2.0, "overlap_score_credit_decay": 0.0}})
	if len(p.Unused) != 1 || p.Unused[0].Path != "routing.params.prefill_load_scale" {
		t.Errorf("unused: %v", p.Unused)
	}
}

// TestNamesOfHints: expressions read hints by name.
func TestNamesOfHints(t *testing.T) {
	for name, ok := range map[string]bool{"a_1": true, "1a": false, "a-b": false, "": false} {
		_, err := planeWith("priority", Spec{Type: "expression", Priority: "1", Hints: map[string]string{name: "2"}})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "is not a hint name") {
			t.Errorf("hint %q: %v", name, err)
		}
	}
}

// TestClonesCountAlone: a copy of a plane shares no counts with it, at any stage.
func TestClonesCountAlone(t *testing.T) {
	for stage, s := range map[string]Spec{
		"admission":  {Type: "expression", Admit: "true"},
		"priority":   {Type: "expression", Priority: "1"},
		"routing":    {Type: "expression", Score: "1"},
		"scheduler":  {Type: "expression", Order: "req.input_tokens"},
		"preemption": {Type: "expression", Victim: "seq.blocks"},
	} {
		p := mustPlane(t, stage, s)
		shared, found := map[*Rule]bool{}, 0
		for _, policy := range p.stages() {
			for _, r := range policy.Rules() {
				shared[r] = true
			}
		}
		for _, policy := range p.Clone().stages() {
			for _, r := range policy.Rules() {
				if found++; shared[r] {
					t.Errorf("%s: the copy counts in %s of the original", stage, r.Path)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s has no rules", stage)
		}
	}
}
