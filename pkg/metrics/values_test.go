package metrics

import (
	"fmt"
	"testing"

	"blis/pkg/record"

	"github.com/google/go-cmp/cmp"
)

// TestValues: paths in the tree's order, maps by key, and nothing of what is absent.
func TestValues(t *testing.T) {
	half := 0.5
	r := &Raw{FromUS: record.Never, UntilUS: 7, DurationS: 2}
	r.TTFT = &Distribution{Count: 1, P99: 3}
	r.Anomalies = map[string]int64{"b": 2, "a": 1}
	r.Replica = []Replica{{Deployment: "main", Index: 4, Utilization: &half}}
	r.Cls = map[string]*Group{"y": {}, "x": {AdmissionRate: &half}}
	r.Control = &Control{Rules: []Rule{{Hits: 9}}}
	want := map[string]float64{"until_us": 7, "duration_s": 2, "ttft.p99": 3, "anomalies.a": 1, "anomalies.b": 2,
		"replica[0].utilization": 0.5, `cls["x"].admission_rate`: 0.5}
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
	for _, path := range []string{"from_us", "tpot.p99", `cls["y"].admission_rate`, "replica[0].index", "control.rules[0].hits", "sessions.offered"} {
		if _, ok := have[path]; ok {
			t.Errorf("%s is there", path)
		}
	}
	inOrder := []string{"until_us", "duration_s", "ttft.p99", "replica[0].utilization", "anomalies.a", "anomalies.b", `cls["x"].admission_rate`}
	if d := cmp.Diff(inOrder, order); d != "" {
		t.Error(d)
	}
	if a, b := fmt.Sprint(Values(r)), fmt.Sprint(Values(r)); a != b {
		t.Error("two calls differ")
	}
}
