package attribution

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// 2000 requests wait 0 to 1999 ms in the order of their ids; the target of their class is 1 ms, which the step of 1 ms
// uses up, so that all but the first miss it. Those from the percentile 98 on make p99: 40 of them, which wait 1960 ms
// and more.
func TestTailOfPercentile(t *testing.T) {
	a := New(header(2))
	for i := range int64(2000) {
		o := served(fmt.Sprintf("r%04d", i), 0, 0, i)
		a.Outcome(&o, false)
	}
	l := a.Find(LossSource{Term: "t", Path: "ttft.p99", Lost: 0.4}).Loss
	if l.Kind != LossFitness || l.Judged != 2000 || l.Lost != 40 || math.Abs(l.Total-0.4) > 1e-12 ||
		l.Missed.TTFT != 40 {
		t.Errorf("%+v", l)
	}
	for _, r := range a.requests.all() {
		if lost := r.id() >= "r1960"; r.lost() != lost || lost && math.Abs(r.verdict.loss-0.01) > 1e-12 {
			t.Errorf("%s lost %v", r.id(), r.verdict.loss)
		}
	}
}

// waits is a run in which requests wait for these times in ms; below 0 they are rejected.
func waits(ms ...int64) *Analyzer {
	a := New(header(2))
	for i, wait := range ms {
		o := served(fmt.Sprintf("r%04d", i), 0, 0, wait)
		if wait < 0 {
			o.State, o.EndedUS, o.CompletedUS = stream.StateRejected, 0, never
			o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS = never, never, never
		}
		a.Outcome(&o, false)
	}
	return a
}

// Which requests lose by a number, and how much, by hand. The steps take 1 ms, and E2E is TTFT.
func TestSharesByHand(t *testing.T) {
	tail := append(slices.Repeat([]int64{0}, 980), slices.Repeat([]int64{99}, 20)...)
	for _, c := range []struct {
		name     string
		source   LossSource
		waits    []int64
		lost     int64
		last     float64 // the loss of the last request
		excessMS float64
	}{
		{"p99", LossSource{Path: "ttft.p99", Lost: 1}, tail, 20, 1. / 20, 99},
		// Only 20 of the 100 that make p95 are above the limit.
		{"p95 above a limit", LossSource{Path: "ttft.p95", Lost: 1, Limit: 50}, tail, 20, 1. / 20, 50},
		{"nothing above the limit", LossSource{Path: "ttft.p95", Lost: 1, Limit: 100}, tail, 0, 0, 0},
		// A request that was not served is as long as the run in a mean: 100 ms, 99 ms above the fastest.
		{"mean", LossSource{Path: "e2e.mean", Lost: 1}, append(slices.Clone(tail), -1), 21, 1. / 21, 99},
		{"mean of the served", LossSource{Path: "e2e.mean", Lost: 1, Served: true}, append(slices.Clone(tail), -1), 20,
			0, 0},
		{"rejected", LossSource{Path: "requests.rejected", Lost: 1}, append(slices.Clone(tail), -1), 1, 1, 0},
		{"completed", LossSource{Path: "requests.completed", Lost: 1}, append(slices.Clone(tail), -1, -1), 2, 0.5, 0},
		{"of a class", LossSource{Path: `cls["fast"].ttft.p99`, Lost: 1}, tail, 20, 1. / 20, 99},
		{"of another class", LossSource{Path: `cls["slow"].ttft.p99`, Lost: 1}, tail, 0, 0, 0},
	} {
		a := waits(c.waits...)
		l := &Loss{}
		a.derive()
		a.markFitness(l, []LossSource{c.source})
		lost := int64(0)
		for _, r := range a.requests.all() {
			if r.verdict.loss > 0 {
				lost++
			}
		}
		v := &a.requests.at(a.requests.len() - 1).verdict
		if lost != c.lost || math.Abs(v.loss-c.last) > 1e-12 || math.Abs(v.excessMS-c.excessMS) > 1e-9 {
			t.Errorf("%s: %d lose, the last one %v and %v ms", c.name, lost, v.loss, v.excessMS)
		}
	}
}

// A fitness of the attainment alone counts misses, as no fitness does.
func TestAttainmentIsMisses(t *testing.T) {
	for _, sources := range [][]LossSource{nil, {{Path: attainmentPath, Lost: 0.2}},
		{{Path: attainmentPath, Lost: 0.2}, {Path: "cost.gpu_s", Lost: 0.1}}} {
		if l := staleRun(20).Find(sources...).Loss; l.Kind != LossMisses || l.Total != 38 {
			t.Errorf("%v: %+v", sources, l)
		}
	}
	weighted := LossSource{Path: attainmentPath, Lost: 0.2, Weights: map[string]float64{"fast": 3}}
	if l := staleRun(20).Find(weighted).Loss; l.Kind != LossFitness || l.Lost != 38 || l.Missed.TTFT != 38 {
		t.Errorf("%+v", l)
	}
}

// All that the sources lose is divided between requests, and patterns and what they do not explain add up to it.
func TestFitnessLossAddsUp(t *testing.T) {
	paths := []string{"ttft.p99", "ttft.p50", "ttft.mean", "e2e.p95", "e2e.max", "queue.p90", "goodput.ratio",
		"requests.completed", `cls["fast"].ttft.p90`, "tail_blowup", "cost.gpu_s", "replicas[0].queue.mean"}
	rapid.Check(t, func(t *rapid.T) {
		var sources []LossSource
		for _, path := range rapid.SliceOfN(rapid.SampledFrom(paths), 1, 4).Draw(t, "paths") {
			sources = append(sources, LossSource{Path: path, Lost: rapid.Float64Range(0.01, 0.3).Draw(t, "lost"),
				Limit: rapid.SampledFrom([]float64{0, 5, 20}).Draw(t, "limit")})
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		ms := make([]int64, rapid.IntRange(0, 200).Draw(t, "requests"))
		for i := range ms {
			ms[i] = int64(rng.ExpFloat64()*10) - 1
		}
		f := waits(ms...).Find(sources...)
		if f.Loss.Kind != LossFitness {
			return
		}
		want, explained := 0.0, 0.0
		for _, s := range f.Loss.Sources {
			if s.Requests > 0 {
				want += s.Lost
			}
		}
		for i := range f.Patterns {
			p, sum := &f.Patterns[i], 0.0
			for _, s := range p.Sources {
				sum += s.Lost
			}
			explained += p.Loss
			if math.Abs(sum-p.Loss*f.Loss.Total) > 1e-9 {
				t.Fatalf("pattern %s: %v by source, %v in all", p.Condition.Name, sum, p.Loss*f.Loss.Total)
			}
		}
		if math.Abs(f.Loss.Total-want) > 1e-9 || explained > 1+1e-9 {
			t.Fatalf("the requests lose %v of %v; patterns explain %v", f.Loss.Total, want, explained)
		}
	})
}
