package attribution

import "testing"

// Without CUDA graphs a missed TPOT has a cause where step times come from kernels; a missed TTFT has not.
func TestEagerSteps(t *testing.T) {
	for _, c := range []struct {
		eager  bool
		model  string
		missed targetSet
		want   bool
	}{
		{true, "operators", missedTPOT, true}, {true, "operators", missedTTFT, false},
		{true, "linear", missedTPOT, false}, {false, "operators", missedTPOT, false},
	} {
		h := header(1)
		d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
		d["latency"] = map[string]any{"model": c.model}
		d["engine"] = map[string]any{"enforce_eager": c.eager}
		a := New(h)
		o := served("r", 0, 0, 0)
		a.Outcome(&o, false)
		r := a.requests.at(0)
		a.derive()
		r.verdict.missed = c.missed
		if got := eagerSteps.holds(a, r); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
