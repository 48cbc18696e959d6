package calibrate

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/recording"
	"blis/pkg/stream"
)

// warningsOf are the warnings of a check.
func warningsOf(c check, r *report) []string {
	c(r)
	return r.setup.warnings
}

// TestSuggestedBenchmarkIsNoOverload: with costly prompts, the high rate keeps GPUs busy for
// half of the time.
func TestSuggestedBenchmarkIsNoOverload(t *testing.T) {
	d := &cluster.Deployment{}
	d.Engine.MaxModelLen, d.Engine.MaxNumSeqs = 8192, 256
	f := &fitResult{}
	f.value = coefficients{beta0: 8000, 25, 60, 0.0391}
	a := (&setup{deployment: d}).suggestBenchmark(f, true)
	number := func(of string) float64 {
		v, err := strconv.ParseFloat(regexp.MustCompile(of + `: ([0-9.]+)`).FindStringSubmatch(a.Spec)[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	high := number("aggregate_rate") * number("start_time: 300000000, multiplier")
	if busy := high * (25*(128+4096)/2 + 256*60) * 1e-6; busy > 0.55 || busy < 0.3 {
		t.Errorf("%g requests/s keep GPUs busy for %g of the time", high, busy)
	}
}

// TestNearConstantPromptLengths: prompts of 500 to 540 tokens are a warning, of 500 to 1000 not.
func TestNearConstantPromptLengths(t *testing.T) {
	for most, want := range map[int64]bool{540: true, 1000: false} {
		r := shortRun(40)
		for i := range r.requests {
			r.requests[i].InputTokens = 500 + int64(i%2)*(most-500)
		}
		s := &setup{replays: []*replay{r}}
		if got := s.nearConstantLength(); (got != "") != want {
			t.Errorf("500 to %d: %q", most, got)
		}
	}
}

// TestMisfits: a beta[0] of 0, or that is the host's alone, a median error of steps and an error
// of mean E2E above 20 % are warnings.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		base, host, percent, e2e float64
		want                     string
	}{
		{7000, 0, 19, -19, ""}, {7000, 800, 19, 19, ""},
		{0, 0, 19, 19, "beta[0] is 0"}, {800, 800, 19, 19, "beta[0] is 0"},
		{7000, 0, 21, 19, "median error is 21 %"}, {7000, 0, 19, -21, "error of mean E2E is -21 %"},
	} {
		r := &report{setup: &setup{}, StepScore: &stepScore{"phases", c.percent}, fit: fitResult{method: "by hand"},
			Scores: []*score{{Metrics: []metricError{{Metric: "ttft.p99", Percent: 99},
				{Metric: "e2e.mean", Percent: c.e2e}}}}}
		if c.host > 0 {
			r.Host = &host{US: c.host}
		}
		r.fit.value[beta0] = c.base
		warnings := warningsOf(checkMisfit, r)
		got := strings.Join(warnings, "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || len(warnings) > 1 {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestStepKindErrors: a model whose decode steps are half as long again is a warning about
// decode alone.
func TestStepKindErrors(t *testing.T) {
	for beta, want := range map[float64]int{10000: 0, 15000: 1} {
		m, err := shape{}.model(coefficients{beta0: beta, 20, 50, 0}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var decode []recording.Step
		for _, x := range alternatingSteps() {
			if x.Prefill == 0 {
				decode = append(decode, x)
			}
		}
		warnings := warningsOf(checkStepKinds, &report{setup: &setup{steps: decode}, stepModel: m})
		if len(warnings) != want || want > 0 && !strings.Contains(warnings[0], "20 steps of decode") {
			t.Errorf("beta[0] %g: %v", beta, warnings)
		}
	}
}

// TestHeldOutStallIsAWarning: a holdout that begins with a stall is a warning with its length;
// one behind it, or without, is not.
func TestHeldOutStallIsAWarning(t *testing.T) {
	for _, c := range []struct {
		stalled int
		from    stream.Micros
		want    string
	}{{30, 0,
		"the part: the server stalled while it warmed up: 30 requests of the first 29 s got their first tokens late, " +
			"by a median of 0.8 s"}, {30, 60e6, ""}, {0, 0, ""}} {
		run := shortRun(300)
		p := holdout{name: "the part", run: run, selected: run.arrivalsBetween(c.from, 300e6)}
		for i, m := range run.measured {
			p.simulated = append(p.simulated, m)
			run.measured[i].ttft += 100 * float64(i%5)
			if i < c.stalled {
				run.measured[i].ttft += 800e3
			}
		}
		got := strings.Join(warningsOf(checkWarmup, &report{setup: &setup{}, holdouts: []holdout{p}}), "; ")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d stalled, held out from %d on: %q, want %q", c.stalled, c.from, got, c.want)
		}
	}
}

// TestLoadBeyondCapacityIsAWarning: ten requests at a time, of 20 tokens each, are a warning for
// an engine with eight batch slots, and for one whose KV blocks hold 100 tokens.
func TestLoadBeyondCapacityIsAWarning(t *testing.T) {
	for _, c := range []struct {
		seqs, tokens int
		want         string
	}{
		{10, 200, ""}, {8, 200, "10 sequences decode concurrently, but max_num_seqs is 8"},
		{10, 100, "concurrent sequences hold 9 KV blocks"},
	} {
		run := shortRun(10)
		run.engine.maxSeqs, run.engine.kvTokens = c.seqs, c.tokens
		for i := range run.requests {
			run.requests[i].ArrivalUS = 0
		}
		s := &setup{deployment: &cluster.Deployment{Computed: &cluster.Computed{}}, replays: []*replay{run}}
		s.deployment.Engine.BlockSize = 16
		got := strings.Join(warningsOf(checkCapacity, &report{setup: s}), "; ")
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d slots, %d tokens: %q, want %q", c.seqs, c.tokens, got, c.want)
		}
	}
}

// TestFullBatchIsAWarning: where max_num_seqs bound in the recording, a higher one is a warning. A load that
// it does not bind is none, and neither is one with a constant number of users.
func TestFullBatchIsAWarning(t *testing.T) {
	truth := coefficients{5000, 0, 0, 0, 6200, 16, 22, 0.1565}
	load := twoRates
	load.perRate = 300
	for _, c := range []struct {
		recorded string
		assumed  int
		want     string
	}{
		{"{max_num_seqs: 12, preset: vllm-0.15}", 128, "at most 12 sequences decode at once while others wait, " +
			"but max_num_seqs is 128 here"},
		{"{max_num_seqs: 12, preset: vllm-0.15}", 12, ""},
		{"{max_num_seqs: 128, preset: vllm-0.15}", 256, ""},
	} {
		load.engine = c.recorded
		s, r := load.record(t, 1, truth)
		r.engine.maxSeqs = c.assumed
		s.replays = []*replay{r}
		got := strings.Join(warningsOf(checkSlots, &report{setup: s}), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("recorded with %s, %d assumed: %q", c.recorded, c.assumed, got)
		}
	}
	users := shortRun(400)
	for i := range users.requests { // eight users, each of whose requests follows the last one's answer
		users.requests[i].ArrivalUS, users.measured[i] = stream.Micros(i/8*1e6+i%8*1e3), timing{1e5, 9e5, 0}
	}
	users.engine.maxSeqs = 128
	if got := warningsOf(checkSlots, &report{setup: &setup{replays: []*replay{users}}}); got != nil {
		t.Errorf("eight users: %q", got)
	}
}

// TestOnlyUnstatedSettingsAreAssumed: a setting that the recording states is not listed as assumed, too.
func TestOnlyUnstatedSettingsAreAssumed(t *testing.T) {
	d := &cluster.Deployment{Computed: &cluster.Computed{KVBlocks: 99}}
	d.Engine.MaxNumSeqs, d.Engine.MaxNumBatchedTokens, d.Engine.Preset = 128, 2048, "vllm-0.15"
	const give = ": give them with --cluster"
	for _, c := range []struct {
		settings []string
		want     string
	}{
		{nil, "engine settings are unknown and assumed to be max_num_seqs 128, max_num_batched_tokens 2048, " +
			"99 KV blocks, async_scheduling false" + give},
		{[]string{"max_num_batched_tokens=2048", "max_num_seqs=128"}, "the recording states " +
			"max_num_batched_tokens=2048, max_num_seqs=128; other engine settings are assumed to be " +
			"99 KV blocks, async_scheduling false" + give},
		{[]string{"async_scheduling=false", "max_num_batched_tokens=2048", "max_num_seqs=128",
			"num_gpu_blocks_override=99"}, "the recording states async_scheduling=false, " +
			"max_num_batched_tokens=2048, " +
			"max_num_seqs=128, num_gpu_blocks_override=99; other engine settings are assumed to be " +
			"the engine's defaults" + give},
	} {
		r := &report{setup: &setup{assumed: true, deployment: d, settings: c.settings}}
		if got := warningsOf(checkSettings, r); len(got) != 1 || got[0] != c.want {
			t.Errorf("%v: %q, want %q", c.settings, got, c.want)
		}
	}
}
