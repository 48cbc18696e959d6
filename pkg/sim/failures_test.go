package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/scale"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestRandomFailures runs random schedules with checks. Every request must get one final state, and the failures
// that were drawn must give the same run if a file states them.
func TestRandomFailures(t *testing.T) {
	schedules := randomCases(1000, 100)
	failed := uint64(0)
	for seed := range schedules {
		c, requests := reference.RandomFailures(seed)
		c.Failures.Events = nil
		d := rand.New(rand.NewPCG(seed, 11))
		least := 20
		if len(c.Beta) > 0 { // some steps
			least += 10 * int(c.Beta[0]+20*c.Beta[1]+5*c.Beta[2])
		}
		mean := func() scale.Duration { return scale.Duration(fmt.Sprintf("%dus", least+d.IntN(2000))) }
		config := clusterOf(c)
		config.Failures.Random = &cluster.RandomFailures{MTBF: mean(), MTTR: mean(), Inflight: "fail"}
		if d.IntN(2) == 0 {
			config.Failures.Random.Inflight = "redirect"
		}
		drawn := failureRun(t, c, config, requests)
		config.Failures.Events, config.Failures.Random = drawn.events(config.Failures.Random.Inflight), nil
		stated := failureRun(t, c, config, requests)
		if diff := gocmp.Diff(drawn.outcomes, stated.outcomes); diff != "" {
			t.Fatalf("seed %d: the drawn failures (-) and the same ones in a file (+) differ:\n%s", seed, diff)
		}
		failed += uint64(len(config.Failures.Events))
	}
	if failed < schedules {
		t.Errorf("only %d failures in %d runs", failed, schedules)
	}
}

// Random failures take only the replicas of the deployments that they name.
func TestRandomFailuresOfDeployments(t *testing.T) {
	c, requests := reference.RandomFleets(3)
	config := clusterOf(c)
	last := config.Deployments[len(config.Deployments)-1].ID
	for _, only := range [][]string{nil, {last}} {
		config.Failures = &cluster.Failures{Restart: scale.DefaultRestart(),
			Random: &cluster.RandomFailures{MTBF: "300us", MTTR: "100us", Inflight: "redirect", Deployments: only}}
		failed := map[string]int{}
		for _, x := range failureRun(t, c, config, requests).states {
			if x.State == stream.ReplicaFailed {
				failed[x.Deployment]++
			}
		}
		if failed[last] == 0 || (len(failed) == 1) != (only != nil) {
			t.Errorf("only %q: failures by deployment %v", only, failed)
		}
	}
}

// failureRecords are the outcomes and the states of replicas of a run.
type failureRecords struct {
	outcomes map[string]string // by request
	states   []stream.ReplicaState
}

// failureRun runs a cluster with checks.
func failureRun(t *testing.T, c reference.Config, config *cluster.Config, requests []reference.Request) failureRecords {
	t.Helper()
	o := testOptions(c)
	o.Check, o.Trace = true, "decisions"
	var out bytes.Buffer
	if err := runCluster(context.Background(), config, testSpecs(c), bytes.NewReader(workloadOf(requests)), &out,
		o); err != nil {
		t.Fatalf("%v\n%+v", err, config.Failures)
	}
	got := failureRecords{outcomes: map[string]string{}}
	r := stream.NewReader(&out)
	for r.Next() {
		switch r.Kind() {
		case stream.KindOutcome:
			var x stream.Outcome
			if err := r.Outcome(&x); err != nil {
				t.Fatal(err)
			}
			if _, twice := got.outcomes[x.ID]; twice {
				t.Fatalf("request %s has two outcomes", x.ID)
			}
			got.outcomes[x.ID] = string(r.Bytes())
		case stream.KindReplicaState:
			var x stream.ReplicaState
			if err := r.Decode(&x); err != nil {
				t.Fatal(err)
			}
			got.states = append(got.states, x)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	n := r.End().Requests
	if int64(len(got.outcomes)) != n.Offered+n.Retries ||
		n.Offered != n.Completed+n.Rejected+n.TimedOut+n.Failed+n.Unfinished {
		t.Fatalf("%d outcomes of %+v", len(got.outcomes), n)
	}
	if c.HorizonUS == reference.Never && n.Unfinished > 0 {
		t.Fatalf("requests wait for ever: %+v", n)
	}
	return got
}

// events states the failures of a run as a file does.
func (r failureRecords) events(inflight string) (all []cluster.Failure) {
	for i, x := range r.states {
		if x.State != stream.ReplicaFailed {
			continue
		}
		us := int64(1e9) // it does not come back before the end
		for _, y := range r.states[i+1:] {
			if y.Replica == x.Replica && y.State == stream.ReplicaLoading {
				us = int64(y.AtUS - x.AtUS)
				break
			}
		}
		all = append(all, cluster.Failure{At: scale.Duration(fmt.Sprintf("%dus", x.AtUS)), Kind: cluster.FailureDown,
			Deployment: "main", Replica: int(x.Replica), For: scale.Duration(fmt.Sprintf("%dus", us)),
			Inflight: inflight})
	}
	return all
}

// TestFailureContradictions: what cannot be combined with failures is an error.
func TestFailureContradictions(t *testing.T) {
	c, requests := reference.RandomFailures(1)
	c.Scaling = nil
	for _, o := range []Options{{Trace: "decisions", Clairvoyant: "latency"},
		{Trace: "decisions", Counterfactual: Counterfactual{top: 1, text: "1"}}} {
		err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)),
			new(bytes.Buffer), o)
		if err == nil || !strings.Contains(err.Error(), "needs replicas that do not fail; remove failures") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}
