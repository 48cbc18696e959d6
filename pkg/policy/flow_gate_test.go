package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestFlowBands: in bands of priorities 9, 5 and 0, a closed band also holds back the lower ones, and
// an empty one does so too.
func TestFlowBands(t *testing.T) {
	holdback := func(params map[string]any) *Spec {
		return &Spec{Type: "priority-holdback-policy", Params: params}
	}
	for _, c := range []struct {
		name       string
		limit      *Spec
		saturation float64
		want       string
	}{
		{"open", nil, 0.99, "9a 9b 5a 0a 0b"},
		{"closed", nil, 1, ""},
		{"static", &Spec{Type: "static-usage-limit-policy", Params: map[string]any{"threshold": 0.5}}, 0.5, ""},
		{"ceilings 1, 0.5 and 0", holdback(nil), 0.4, "9a 9b 5a"},
		{"the highest only", holdback(nil), 0.5, "9a 9b"},
		{"ceilings 1, 5/9 and 0", holdback(map[string]any{"domain": "value"}), 0.55, "9a 9b 5a"},
		{"ceilings 0.8, 0.5 and 0.2", holdback(map[string]any{"minCeiling": 0.2, "maxCeiling": 0.8}), 0.19,
			"9a 9b 5a 0a 0b"},
		{"below 1 - 1/4 and 1 - 2/4", &Spec{Type: "soft-reflective-ceiling-policy"}, 0.25, "9a 9b 5a 0a 0b"},
		{"below 1 - 0.4", &Spec{Type: "soft-reflective-ceiling-policy"}, 0.4, "9a 9b 5a 0a 0b"},
		{"one in three decisions", &Spec{Type: "soft-reflective-ceiling-policy"}, 0.75, "9a 9b 5a"},
		{"saturated", &Spec{Type: "soft-reflective-ceiling-policy"}, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _, err := NewGate(GateConfig{UsageLimit: c.limit, Threshold: 1})
			if err != nil {
				t.Fatal(err)
			}
			f := NewFlow(FlowConfig{Bands: true})
			names := []string{"0a", "5a", "9a", "0b", "9b"}
			for slot, name := range names {
				f.Push(int32(slot), &Request{Priority: float64(name[0] - '0')}, 0)
			}
			var have []string
			for f.Len() > 0 {
				slot, ok := f.Clone().Pop(g.Clone(), c.saturation)
				again, same := f.Pop(g, c.saturation)
				if slot != again || ok != same {
					t.Fatalf("the clone pops %d (%v), the original %d (%v)", slot, ok, again, same)
				}
				if !ok {
					break
				}
				have = append(have, names[slot])
			}
			if text := strings.Join(have, " "); text != c.want {
				t.Errorf("%q leave, want %q", text, c.want)
			}
		})
	}
}

// TestFlowOrders: five requests of two tenants.
func TestFlowOrders(t *testing.T) {
	type waiting struct {
		tenant       string
		at, deadline int64
		target       float64
		tenantID     int32
	}
	all := []waiting{
		{tenant: "z", at: 0, deadline: -1, target: 90}, {tenant: "z", at: 1e3, deadline: 20e3},
		{tenant: "a", at: 2e3, deadline: -1, target: 1, tenantID: 1},
		{tenant: "a", at: 3e3, deadline: 8e3, tenantID: 1}, {tenant: "z", at: 4e3, deadline: -1, target: 2},
	}
	for _, c := range []struct{ order, fairness, want string }{
		{"fifo", "none", "0 1 2 3 4"},
		{"fcfs-ordering-policy", "global-strict-fairness-policy", "0 1 2 3 4"},
		{"deadline", "none", "3 1 0 2 4"},
		{"edf-ordering-policy", "none", "3 0 1 2 4"}, // out at 8, 10, 11, 12, 14 ms
		{"slo-deadline-ordering-policy", "none", "2 4 0 1 3"},
		{"fifo", "round-robin", "0 2 1 3 4"},
		{"fifo", "round-robin-fairness-policy", "2 0 3 1 4"},
		{"slo-deadline-ordering-policy", "round-robin-fairness-policy", "2 4 3 0 1"},
	} {
		t.Run(c.order+" "+c.fairness, func(t *testing.T) {
			f := NewFlow(FlowConfig{Order: c.order, Fairness: c.fairness, TTLUS: 10e3})
			for slot, w := range all {
				f.Push(int32(slot), &Request{Tenant: w.tenant, TenantID: w.tenantID, DeadlineUS: w.deadline,
					TTFTTargetMS: w.target, ArrivalUS: w.at}, w.at)
			}
			var have []string
			for f.Len() > 0 {
				slot, _ := f.Pop(openGate, 0)
				have = append(have, fmt.Sprint(slot))
			}
			if text := strings.Join(have, " "); text != c.want {
				t.Errorf("%s leave, want %s", text, c.want)
			}
		})
	}
}

// TestFlowStartsAgain: llm-d's round robin starts at the first name once nothing waits.
func TestFlowStartsAgain(t *testing.T) {
	f := NewFlow(FlowConfig{Order: "fifo", Fairness: fairnessRoundRobin})
	push := func(slot, tenant int32) {
		f.Push(slot, &Request{TenantID: tenant, Tenant: string(rune('a' + tenant))}, 0)
	}
	var have []int32
	pop := func() {
		slot, _ := f.Pop(openGate, 0)
		have = append(have, slot)
	}
	push(0, 0)
	pop()
	push(1, 1)
	push(2, 0)
	pop() // of a, not of b, whose turn it would be
	push(3, 0)
	pop()
	pop()
	if want := []int32{0, 2, 1, 3}; !slices.Equal(have, want) {
		t.Errorf("%v leave, want %v", have, want)
	}
}

// TestGateErrors: wrong parameters of flow control.
func TestGateErrors(t *testing.T) {
	for want, c := range map[string]GateConfig{
		`detector.type: unknown saturation detector "utilization"`: {Detector: &Spec{Type: "utilization"}},
		"usage_limit.params.minCeiling: must be below maxCeiling (0.5), is 0.6": {UsageLimit: &Spec{
			Type: "priority-holdback-policy", Params: map[string]any{"minCeiling": 0.6, "maxCeiling": 0.5}}},
	} {
		if _, _, err := NewGate(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("have %v, want %s", err, want)
		}
	}
}
