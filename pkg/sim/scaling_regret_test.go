package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// scheduled is a cluster whose number of replicas grows from 1 to 3 at one look and shrinks at another, counted from 0.
func scheduled(t *testing.T, up, down int) *cluster.Config {
	t.Helper()
	c, err := cluster.Parse("c", fmt.Appendf(nil, `version: 1
deployments:
  - {id: main, model: m, replicas: 1, max_replicas: 4, engine: {num_gpu_blocks_override: 400, max_num_seqs: 4},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
policies:
  routing: {type: least-loaded}
  autoscale: {type: expression, desired: "state.n >= %d && state.n < %d ? 3 : 1",
    state: {n: {init: 0, update: state.n + 1}}, interval: 1s, stabilization: {down: 0s},
    actuation: {provision: 200ms, load: 300ms, warmup: {duration: 0s}}}
`, up, down), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// scheduledWorkload has 8 requests a second for 12 s with targets that some miss.
func scheduledWorkload() io.Reader {
	var out bytes.Buffer
	w := stream.NewWriter(&out, true)
	must(w.Header(&stream.Header{Stream: stream.StreamWorkload, Tool: "test", SLOClasses: []stream.SLOClass{
		{Name: "a", Tier: "standard", Targets: stream.Targets{E2EMS: 400}}}}))
	for i := range int64(96) {
		must(w.Request(&stream.Request{ID: fmt.Sprint("r", i), ArrivalUS: stream.Micros(125_000 * i), SLOClass: "a",
			DeadlineUS: stream.Never, InputTokens: 100 + 37*i%200, OutputTokens: 20 + 13*i%30}))
	}
	must(w.End(&stream.End{}))
	must(w.Close())
	return &out
}

// scalingRun returns the outcomes and the GPU seconds of a run, and its records of scaling regret.
func scalingRun(t *testing.T, c *cluster.Config, o Options) (map[string]stream.Outcome, float64,
	[]stream.ScalingRegret) {
	t.Helper()
	var out bytes.Buffer
	if err := runLoaded(context.Background(), c, scheduledWorkload(), &out, o); err != nil {
		t.Fatal(err)
	}
	r := stream.NewReader(&out)
	defer r.Close()
	outcomes, gpuS, regrets := map[string]stream.Outcome{}, 0.0, []stream.ScalingRegret(nil)
	for r.Next() {
		switch r.Kind() {
		case stream.KindOutcome:
			var x stream.Outcome
			must(r.Decode(&x))
			outcomes[x.ID] = x
		case stream.KindScalingRegret:
			var x stream.ScalingRegret
			must(r.Decode(&x))
			regrets = append(regrets, x)
		case stream.KindMetrics:
			var m metrics.Record
			must(r.Decode(&m))
			gpuS = m.Cost.GPUS
		}
	}
	return outcomes, gpuS, regrets
}

// TestScalingRegret: the alternatives to a schedule of two changes are what other schedules give.
func TestScalingRegret(t *testing.T) {
	o := Options{Trace: "decisions", Plain: true}
	regretful := o
	must(regretful.Counterfactual.UnmarshalText([]byte("scaling:9")))
	actual, gpuS, regrets := scalingRun(t, scheduled(t, 3, 8), regretful)
	if len(regrets) != 2 || regrets[0].Current != 1 || regrets[0].Desired != 3 || regrets[1].Current != 3 ||
		regrets[1].Desired != 1 || regrets[0].AtUS != 4_000_000 || regrets[1].AtUS != 9_000_000 {
		t.Fatalf("%+v", regrets)
	}
	moved := 0
	for i, schedules := range []map[string][2]int{
		{stream.ScalingEarlier: {2, 8}, stream.ScalingLater: {4, 8}, stream.ScalingNever: {4, 8}},
		{stream.ScalingEarlier: {3, 7}, stream.ScalingLater: {3, 9}, stream.ScalingNever: {3, 9}},
	} {
		for _, a := range regrets[i].Alternatives {
			s := schedules[a.Change]
			changed, changedS, _ := scalingRun(t, scheduled(t, s[0], s[1]), o)
			want := stream.Difference{}
			for id, x := range actual {
				y := changed[id]
				if x.CompletedUS != y.CompletedUS || x.FirstTokenUS != y.FirstTokenUS {
					want.LatencyChanged++
					want.E2EMS += float64(x.CompletedUS-y.CompletedUS) / 1000
					want.TTFTMS += float64(x.FirstTokenUS-y.FirstTokenUS) / 1000
				}
				switch {
				case *y.SLOMet && !*x.SLOMet:
					want.SLOGained++
				case *x.SLOMet && !*y.SLOMet:
					want.SLOLost++
				}
			}
			moved += int(want.SLOGained + want.SLOLost)
			got := *a.All
			if math.Abs(got.E2EMS-want.E2EMS) < 1e-6 && math.Abs(got.TTFTMS-want.TTFTMS) < 1e-6 {
				want.E2EMS, want.TTFTMS = got.E2EMS, got.TTFTMS
			}
			if got != want || math.Abs(a.GPUS-(gpuS-changedS)) > 1e-6 || want.LatencyChanged == 0 {
				t.Errorf("change %d %s: %+v and %v GPU seconds, want %+v and %v", i, a.Change, got, a.GPUS, want,
					gpuS-changedS)
			}
		}
		if n := len(regrets[i].Alternatives); n != 3 {
			t.Errorf("change %d: %d alternatives", i, n)
		}
	}
	if moved == 0 {
		t.Error("no alternative changes which requests meet their targets")
	}
	if s := regrets[0].Sensitivity; s.Controls != scalingControls || s.E2EMS == 0 {
		t.Errorf("sensitivity %+v", s)
	}
}

// TestScalingRegretOfFirstLook: there is no look before it, and of several changes some at even distances are taken.
func TestScalingRegretOfFirstLook(t *testing.T) {
	o := Options{Trace: "decisions", Plain: true}
	must(o.Counterfactual.UnmarshalText([]byte("scaling:1")))
	_, _, regrets := scalingRun(t, scheduled(t, 0, 5), o)
	if len(regrets) != 1 || len(regrets[0].Alternatives) != 2 ||
		regrets[0].Alternatives[0].Change != stream.ScalingLater {
		t.Fatalf("%+v", regrets)
	}
}

// TestScalingRegretAddsOnlyItsRecords: with it, a run of a random cluster has the same other records.
func TestScalingRegretAddsOnlyItsRecords(t *testing.T) {
	total := 0
	for seed := range uint64(12) {
		c, requests := reference.RandomScaling(seed)
		run := func(o Options) (lines []string, regrets int) {
			var out bytes.Buffer
			if err := runCluster(t.Context(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out,
				o); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, `{"kind":"scaling_regret"`) {
					regrets++
				} else if !strings.HasPrefix(line, `{"kind":"header"`) && !strings.HasPrefix(line, `{"kind":"end"`) {
					lines = append(lines, line)
				}
			}
			return lines, regrets
		}
		o := Options{Trace: "decisions", Plain: true}
		plain, none := run(o)
		must(o.Counterfactual.UnmarshalText([]byte("scaling:3")))
		with, regrets := run(o)
		if strings.Join(plain, "") != strings.Join(with, "") || none != 0 {
			t.Errorf("seed %d: other records", seed)
		}
		total += regrets
	}
	if total < 12 {
		t.Errorf("only %d changes were re-simulated", total)
	}
}
