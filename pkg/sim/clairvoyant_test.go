package sim

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/internal/reference"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// The plan of a clairvoyant run is never worse than the policy or any rule alone, by its goal.
func TestPlansAreNotWorseThanTheirRules(t *testing.T) {
	better := 0
	for seed := range uint64(6 * len(forkPlanes)) {
		c, w, classes := forkCase(t, seed)
		goal := stream.ClairvoyantGoals[seed/uint64(len(forkPlanes))%2]
		p := &planner{targets: goal == stream.GoalTargets}
		follow := func(x *plan) total {
			s, results := w.start(t, c, classes)
			s.route(newClairvoyant(len(s.replicas), x))
			must(s.finishForTest())
			return results.total()
		}
		base, err := newSimulation(c, classes, mustSpecs(c), &Options{Seed: 7})
		must(err)
		base.feed = w.feed()
		_, calls, err := readAll(w.feed())
		must(err)
		made, err := makePlan(t.Context(), base, calls, goal)
		if err != nil {
			continue // a livelock
		}
		planned := follow(made)
		for _, number := range allRules() {
			alone := follow(&plan{rules: []int{number}, window: 1})
			if p.compare(planned, alone) > 0 {
				t.Errorf("seed %d, %s: %+v by the plan %v, %+v by rule %d", seed, goal, planned, made.rules, alone,
					number)
			} else if number == keepPolicy && p.compare(planned, alone) < 0 {
				better++
			}
		}
	}
	if better < 2*len(forkPlanes) {
		t.Errorf("only %d plans are better than the policy", better)
	}
}

// Where all requests complete, no router is below the bound of the mean E2E latency or above that of met targets.
func TestNoRouterBeatsTheBound(t *testing.T) {
	bounded := 0
	for seed := range uint64(12 * len(forkPlanes)) {
		c, _, _ := forkCase(t, seed)
		_, requests := reference.RandomSessions(seed)
		run := func(goal string) *metrics.Record {
			var out bytes.Buffer
			o := Options{Trace: stream.TraceLevels[0], Plain: true, Seed: 7, Clairvoyant: goal}
			if runLoaded(t.Context(), c, bytes.NewReader(workloadOf(requests)), &out, o) != nil {
				return nil // a livelock
			}
			return metricsOf(t, out.Bytes())
		}
		planned, policy := run(stream.GoalLatency), run("")
		if planned == nil || planned.Bound == nil || policy == nil {
			continue
		}
		for _, m := range []*metrics.Record{planned, policy} {
			if m.E2E == nil || m.Requests.Completed < m.Requests.Offered+m.Requests.NotIssued {
				continue
			}
			bounded++
			if m.E2E.Mean < planned.Bound.E2EMeanMS*(1-1e-12) {
				t.Errorf("seed %d: mean E2E %v ms, bound %v ms", seed, m.E2E.Mean, planned.Bound.E2EMeanMS)
			}
			if r := planned.Bound.GoodputRatio; r != nil && m.Goodput.Ratio > *r {
				t.Errorf("seed %d: %v met their targets, bound %v", seed, m.Goodput.Ratio, *r)
			}
		}
	}
	if bounded < 20 {
		t.Errorf("only %d runs have a bound", bounded)
	}
}

// The bound of two requests that share a document: each alone, with the 64 tokens cached that it shares.
func TestBound(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100, block_size: 16},
     latency: {model: linear, alpha_us: [500, 0, 100], beta_us: [1000, 10, 50]}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const workload = `{"kind":"request","id":"a","arrival_us":0,"input_tokens":100,"output_tokens":3,"slo_class":"x",` +
		`"prompt":[{"id":"doc","tokens":64}]}
{"kind":"request","id":"b","arrival_us":0,"input_tokens":80,"output_tokens":1,"prompt":[{"id":"doc","tokens":64}]}
`
	var out bytes.Buffer
	must(runLoaded(t.Context(), c, bytes.NewReader([]byte(workload)), &out,
		Options{Trace: stream.TraceLevels[0], Plain: true, Clairvoyant: stream.GoalLatency}))
	// a: 500 + (1000 + 36·10) + 2·(1000 + 50) + 100 us; b: 500 + (1000 + 16·10) + 100 us.
	if b := metricsOf(t, out.Bytes()).Bound; b == nil || b.E2EMeanMS != (4.06+1.76)/2 || b.GoodputRatio != nil {
		t.Errorf("%+v", b)
	}
}

// metricsOf reads the metrics of a run.
func metricsOf(t *testing.T, run []byte) *metrics.Record {
	t.Helper()
	r := stream.NewReader(bytes.NewReader(run))
	defer r.Close()
	m := &metrics.Record{}
	for r.Next() {
		if r.Kind() == stream.KindMetrics {
			must(r.Decode(m))
		}
	}
	must(r.Err())
	return m
}

// TestBoundOfOverload: with three times the load that two replicas can serve, requests wait for each other. The bound
// knows of it, and no router or scheduler is below it.
func TestBoundOfOverload(t *testing.T) {
	for seed := range uint64(4) {
		random := dist.NewStream(seed, "overload")
		var workload strings.Builder
		at := 0.0
		for i := range 300 {
			at += 16000 * random.ExpFloat64()
			fmt.Fprintf(&workload, `{"kind":"request","id":"%d","arrival_us":%d,"input_tokens":%d,"output_tokens":%d}
`, i, int64(at), 50+random.IntN(1500), 1+random.IntN(100))
		}
		run := func(sets ...string) *metrics.Record {
			var out bytes.Buffer
			o := Options{Trace: stream.TraceLevels[0], Plain: true, Seed: seed, Set: append(sets,
				"deployments.main.replicas=2", "deployments.main.engine.max_num_seqs=8")}
			if len(sets) == 0 {
				o.Clairvoyant = stream.GoalLatency
			}
			if err := Run(t.Context(), strings.NewReader(workload.String()), &out, o); err != nil {
				t.Fatal(err)
			}
			return metricsOf(t, out.Bytes())
		}
		planned := run()
		best := planned.E2E.Mean
		for _, sets := range [][]string{{"routing={type: round-robin}"}, {"routing={type: least-loaded}"},
			{"routing={type: least-loaded}", "scheduler={type: expression, order: req.input_tokens}"}} {
			best = min(best, run(sets...).E2E.Mean)
		}
		if bound := planned.Bound.E2EMeanMS; bound > best || bound < best/2 {
			t.Errorf("seed %d: bound %v ms, best %v ms, planned %v ms", seed, bound, best, planned.E2E.Mean)
		}
	}
}
