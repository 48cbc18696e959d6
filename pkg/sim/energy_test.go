package sim

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/internal/reference"
	"blis/pkg/latency"
	"blis/pkg/metrics"
	"blis/pkg/model"
	"blis/pkg/stream"
)

// tinyReplica needs 300 µs for the bytes of a step, and 2 µs for the FLOPs of a token.
var tinyReplica = latency.Replica{
	Work: model.Work{Layers: 1, Hidden: 1, KVHeads: 1, Dense: model.Weights{Params: 1e6, Bytes: 300e6}},
	Machine: latency.Machine{FLOPS: 1e12, AttentionFLOPS: 1e12, Bandwidth: 1e12, Link: 1e12, TensorParallel: 1,
		PipelineParallel: 1, DataParallel: 1,
		Efficiency: latency.Efficiency{Compute: 1, Attention: 1, Memory: 1, Link: 1, PriorContext: 1, Mixed: 1}},
}

// energyOf returns the energy of a run on GPUs of this power.
func energyOf(t *testing.T, c reference.Config, requests []reference.Request, watts hardware.Power, trace string,
) *metrics.Energy {
	t.Helper()
	intensity, err := latency.NewIntensity(&tinyReplica)
	if err != nil {
		t.Fatal(err)
	}
	one, specs := clusterOf(c), testSpecs(c)
	one.Energy = &cluster.Energy{}
	for i := range specs {
		specs[i].power = power{&watts, intensity}
	}
	var out bytes.Buffer
	o := testOptions(c)
	o.Trace = trace
	if err := runCluster(context.Background(), one, specs, bytes.NewReader(workloadOf(requests)), &out, o); err != nil {
		t.Fatal(err)
	}
	m := metricsOf(t, out.Bytes())
	if m.Energy == nil {
		t.Fatal("the run has no energy")
	}
	return m.Energy
}

// TestEnergyOfSteps: a step takes 1 ms. A prompt of 30 tokens is at 60/300 of the way from 200 to 700 W, which is
// 300 W; a decode sequence at 2/300, which is 203 1/3 W. Prompt and two tokens: 300 + 2 · 203 1/3 = 706 2/3 mJ. The
// other replica is idle for 3 ms: 300 mJ at 100 W. Both have drawn 1006 2/3 mJ for 3 tokens.
func TestEnergyOfSteps(t *testing.T) {
	c, requests, err := reference.ParseStory(`cluster beta=1000,0,0 replicas=2
arrive id=a at=500 in=30 out=3`)
	if err != nil {
		t.Fatal(err)
	}
	e := energyOf(t, c, requests, hardware.Power{IdleW: 100, DecodeW: 200, PrefillW: 700}, "decisions")
	near := func(name string, have, want float64) {
		t.Helper()
		if math.Abs(have-want) > 1e-9*want {
			t.Errorf("%s: %v, want %v", name, have, want)
		}
	}
	total := 0.3 + 0.3 + 2*(200+500.0/150)/1000
	near("idle", e.IdleJ, 0.3)
	near("total", e.TotalJ, total)
	near("per token", *e.PerOutputToken, total/3)
	near("mean", *e.MeanW, total/0.003)
	if e.CarbonG != nil {
		t.Errorf("%v g without a factor", *e.CarbonG)
	}
}

// TestRemovedReplicasDrawNothing: as in TestWaitForCapacity, replicas hold a GPU for 2.305 s in all, in 15 ms of which
// three steps run: 2.29 s at 100 W and 15 ms at 200 W.
func TestRemovedReplicasDrawNothing(t *testing.T) {
	c, requests, err := reference.ParseStory(`cluster beta=5000,0,0
flow
scale min=0 interval=1000000 target=2 provision=100000 load=200000
arrive id=a at=1500000 in=4 out=1 ttft=700
arrive id=b at=3600000 in=4 out=1 ttft=800
arrive id=c at=5400000 in=4 out=1`)
	if err != nil {
		t.Fatal(err)
	}
	e := energyOf(t, c, requests, hardware.Power{IdleW: 100, DecodeW: 200, PrefillW: 200}, "decisions")
	if math.Abs(e.IdleJ-229) > 1e-9 || math.Abs(e.TotalJ-232) > 1e-9 {
		t.Errorf("%+v", e)
	}
}

// TestEnergyIsThatOfTheReference: on random clusters the energy is the sum over the steps of the plain reference, also
// where replicas coast and steps are not recorded.
func TestEnergyIsThatOfTheReference(t *testing.T) {
	watts := hardware.Power{IdleW: 0, DecodeW: 200, PrefillW: 700}
	intensity, err := latency.NewIntensity(&tinyReplica)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for seed := range randomCases(400, 80) {
		c, requests := reference.Random(seed)
		c.HorizonUS = reference.Never
		if c.Routing != "round-robin" {
			continue
		}
		plain := reference.Run(c, requests)
		cut := func(o reference.Outcome) bool { return o.State != stream.StateCompleted }
		if slices.ContainsFunc(plain.Outcomes, cut) {
			continue // the run may end within a step, which the reference leaves out
		}
		want := 0.0
		for _, steps := range plain.Steps {
			for i := range steps {
				s := &steps[i]
				share := intensity.Of(latency.Batch(s.Batch))
				want += float64(s.EndUS-s.StartUS) * (200 + 500*share) / 1e6
			}
		}
		if want == 0 {
			continue
		}
		compared++
		for _, trace := range stream.TraceLevels {
			if e := energyOf(t, c, requests, watts, trace); math.Abs(e.TotalJ-want) > 1e-9*want || e.IdleJ != 0 {
				t.Fatalf("seed %d, %s: %v J, want %v", seed, trace, e.TotalJ, want)
			}
		}
	}
	if compared < 5 {
		t.Errorf("only %d clusters were compared", compared)
	}
}
