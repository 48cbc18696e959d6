package sweep

import (
	"encoding/json"
	"testing"

	"blis/pkg/fitness"
)

// TestTop: configurations are ranked by mean score, and those with a failed or shortened run are none of the best.
func TestTop(t *testing.T) {
	result := func(replicas int, score float64, change func(*Result)) *Result {
		r := &Result{Set: map[string]any{"replicas": replicas}, Metrics: json.RawMessage("{}"),
			Fitness: &fitness.Result{Score: score, Terms: []fitness.Term{{Name: "a", Value: 2 * score}}}}
		if change != nil {
			change(r)
		}
		return r
	}
	results := []*Result{
		result(1, 0.5, nil), result(1, 0.25, nil), // mean 0.375
		result(2, 1, nil), result(2, 0, func(r *Result) { r.Metrics, r.Error = nil, "no" }),
		result(3, 0.75, nil), result(3, 0.25, nil), // mean 0.5
		result(4, 1, func(r *Result) { r.Prefix = 10 }), result(4, 1, func(r *Result) { r.Prefix = 10 }),
		result(5, 0.375, nil), result(5, 0.375, nil),
	}
	best, err := Top(results, 2)
	if err != nil || len(best) != 2 || best[0].Set["replicas"] != 3 || best[0].Score != 0.5 ||
		best[0].Terms()["a"] != 1 || best[1].Set["replicas"] != 1 || best[1].Score != 0.375 ||
		len(best[1].Results) != 2 {
		t.Errorf("%v %+v", err, best)
	}
	if best, err = Top(results, 9); err != nil || len(best) != 3 || best[2].Set["replicas"] != 5 {
		t.Errorf("%v %+v", err, best)
	}
	if _, err = Top(results[6:8], 1); err == nil {
		t.Error("configurations of early rounds are exported")
	}
}
