package fitness

import (
	"math"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/strictyaml"
)

// FuzzLoad: no fitness file crashes; what one makes of a run is a number or an error.
func FuzzLoad(f *testing.F) {
	for _, text := range []string{
		`{version: 1, score: m.goodput.ratio}`,
		`{version: 1, score: 'm.cls["critical"].ttft.p99 / base.ttft.p99',
			gates: [{name: served, expr: m.requests.completed > 3}]}`,
		`{version: 1, score: 'atMost(m.ttft.p99, 200)', objectives: {cost: m.duration_s},
			features: {x: kv.y}, aggregate: cvar}`,
		`{version: 1, score: "1 +", slo: {critical: {ttft_ms: -1}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := strictyaml.Parse("fitness.yaml", []byte(text))
		if err != nil {
			return
		}
		fitness, err := load(doc)
		if err != nil {
			return
		}
		fitness.Empty()
		for _, m := range []*metrics.Raw{healthyMetrics(), rejectedMetrics(), nil} {
			result, err := fitness.Evaluate(runOf(m, rejectedMetrics()))
			if err == nil && (math.IsNaN(result.Score) || math.IsInf(result.Score, 0)) {
				t.Errorf("the score of %q is %v", text, result.Score)
			}
		}
	})
}
