package calibrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/hardware"
	"blis/pkg/recording"
	"blis/pkg/sim"
	"blis/pkg/stream"
)

// recordPrefix records n requests at 8 per second whose prompts share a prefix, and hides it.
func recordPrefix(t *testing.T, model string, n int, prefix int64) (*setup, *replay) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	deployment := "version: 1\ndeployments: [{id: main, model: " + model + ", gpu: H100, " +
		"engine: {preset: vllm-0.19, max_model_len: 8192}, latency: {model: operators}}]\n"
	if err := os.WriteFile(name, []byte(deployment), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load(name, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &c.Deployments[0]
	r := &replay{name: "hidden", file: &recording.Recording{}, hasArrivals: true,
		engine: engine{replicas: 1, async: true, maxSeqs: d.Engine.MaxNumSeqs}}
	random, at := dist.NewStream(3, "hidden"), 0.0
	for range n {
		at += random.ExpFloat64() / 8 * 1e6
		r.requests = append(r.requests, stream.Request{ID: strings.Repeat("x", len(r.requests)+1),
			ArrivalUS: stream.Micros(at), DeadlineUS: stream.Never, InputTokens: prefix + 60 + random.Int64N(1200),
			OutputTokens: 50 + random.Int64N(200)})
		r.fitted = append(r.fitted, true)
	}
	if r.player, err = sim.NewPlayer(c); err != nil {
		t.Fatal(err)
	}
	m, err := d.LatencyModel()
	if err != nil {
		t.Fatal(err)
	}
	r.measured = make([]timing, n)
	if r.measured, err = r.simulateRequests(t.Context(), r.withPrefix(prefix), m); err != nil {
		t.Fatal(err)
	}
	s := &setup{options: &Options{}, deployment: d}
	if s.shape, err = newShape(d.Computed.Operators); err != nil {
		t.Fatal(err)
	}
	// The prior is a roofline's.
	o := cluster.Options{Overrides: []string{"deployments.main.latency={model: roofline}"}}
	if c, err = cluster.Load(name, o); err == nil {
		s.deployment = &c.Deployments[0]
		s.roofline, err = s.deployment.LatencyModel()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

const llama8B = "meta-llama/Llama-3.1-8B"

// TestInvisiblePrefixIsAskedFor: a few tokens of prompts need all experts of Qwen3-30B, so that prompts take
// hardly longer than without a shared prefix; the user is asked for it.
func TestInvisiblePrefixIsAskedFor(t *testing.T) {
	s, run := recordPrefix(t, "Qwen/Qwen3-30B-A3B", 300, 1024)
	runs := []*replay{run}
	f, err := s.fitShape(t.Context(), runs, loadOf(runs), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = (&report{setup: s}).findSharedPrefix(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(s.warnings, "\n"); run.prefix > 0 || !strings.Contains(all, "do not show whether") ||
		!strings.Contains(all, "--shared-prefix") {
		t.Errorf("prefix %d, warnings %q", run.prefix, all)
	}
}

// TestHiddenPrefixIsFound: a prefix of 1,024 tokens that a recording does not state is found and
// replayed, with a warning; where there is none, none is found.
func TestHiddenPrefixIsFound(t *testing.T) {
	for _, prefix := range []int64{1024, 0} {
		s, run := recordPrefix(t, llama8B, 600, prefix)
		runs := []*replay{run}
		f, err := s.fitShape(t.Context(), runs, loadOf(runs), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &report{setup: s}
		if f, err = r.findSharedPrefix(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		warned := strings.Contains(strings.Join(s.warnings, ""), "--shared-prefix")
		if run.prefix < prefix-100 || run.prefix > prefix+100 || warned != (prefix > 0) {
			t.Errorf("a prefix of %d tokens: found %d, warnings %v", prefix, run.prefix, s.warnings)
		}
		if got := f.value[beta1]; got < 0.85 || got > 1.2 {
			t.Errorf("a prefix of %d tokens: prefill takes %.3g of the kernels' time, want 1", prefix, got)
		}
	}
}

// TestStatedPrefixIsNotSearched: a stated number of tokens is used as it is.
func TestStatedPrefixIsNotSearched(t *testing.T) {
	s, run := recordPrefix(t, llama8B, 20, 1024)
	s.options.Given = []string{"shared-prefix"}
	if n := s.longestPrefix([]*replay{run}); n != 0 {
		t.Errorf("searched up to %d tokens", n)
	}
	s.options.Given = nil
	if n := s.longestPrefix([]*replay{run}); n < 1024 {
		t.Errorf("searched up to %d tokens only", n)
	}
	run.setPrefix(1024)
	if n := s.longestPrefix([]*replay{run}); n != 0 {
		t.Errorf("stated prompts: searched up to %d tokens", n)
	}
}

// TestLatencyOfFactors: the file of a fit with kernels has factors, and its model the kernels.
func TestLatencyOfFactors(t *testing.T) {
	s, _ := recordPrefix(t, llama8B, 2, 0)
	c := coefficients{beta0: 5000, beta1: 0.5, beta2: 10, beta3: 0.1}
	l := s.shape.latency(c, nil)
	if l.Model != "operators" || l.Factors == nil || l.Factors.Prefill != 0.5 {
		t.Errorf("%+v", l)
	}
	if l := (shape{}).latency(c, nil); l.Model != "linear" || l.Factors != nil {
		t.Errorf("%+v", l)
	}
	if _, err := s.shape.model(c, nil); err != nil {
		t.Error(err)
	}
	if _, err := (&hardware.Latency{Model: "operators", AlphaUS: []float64{0, 0, 0}}).Build(nil, nil); err == nil {
		t.Error("operators without kernels are no error")
	}
	if perToken := s.shape.perToken(1000); perToken < 10 || perToken > 40 {
		t.Errorf("a prompt token takes %g µs", perToken)
	}
}
