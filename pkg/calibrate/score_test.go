package calibrate

import (
	"strings"
	"testing"

	"blis/pkg/hardware"
)

// TestEvaluationWhereRequestsQueue: an evaluation of the coefficients that a recording has, on a server whose
// requests wait for a batch slot, has ranges around its metrics; one with enough slots has none.
func TestEvaluationWhereRequestsQueue(t *testing.T) {
	truth := coefficients{5000, 0, 0, 0, 6200, 16, 22, 0.1565}
	load := twoRates
	load.perRate = 100
	for _, c := range []struct {
		engine string
		queued bool
	}{
		{"{max_num_seqs: 12, preset: vllm-0.15}", true},
		{"{max_num_seqs: 128, preset: vllm-0.15}", false},
	} {
		load.engine = c.engine
		s, run := load.record(t, 1, truth)
		run.engine.kvTokens = 1e6
		s.replays, s.options = []*replay{run}, &Options{Evaluate: "coefficients.yaml"}
		s.given = &hardware.Set{Latency: hardware.Latency{Model: "linear", AlphaUS: truth[:beta0],
			BetaUS: truth[beta0:]}}
		r, err := s.newReport(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Scores) != 1 || len(r.Scores[0].Metrics) != len(metrics) {
			t.Fatalf("%s: %+v", c.engine, r.Scores)
		}
		score := r.Scores[0]
		if (score.Queued >= minQueued) != c.queued || (score.StepUncertainty > 0) != c.queued ||
			strings.Contains(score.Why, "errors of their fit") != c.queued {
			t.Errorf("%s: %g of requests wait, uncertainty %g %%: %s", c.engine, score.Queued, score.StepUncertainty,
				score.Why)
		}
		for _, m := range score.Metrics {
			i := m.Uncertainty
			if (i != nil) != c.queued || i != nil && !(i.Lo < m.Simulated && m.Simulated < i.Hi) {
				t.Errorf("%s: %s is %g ms in %v", c.engine, m.Metric, m.Simulated, i)
			}
		}
	}
}
