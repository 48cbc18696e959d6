package sim

import (
	"bytes"
	"cmp"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/internal/reference"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// TestReferenceOnDisaggregation compares random clusters with prefill and decode pools with the plain reference: all
// times, counts, steps and transfers must be equal.
func TestReferenceOnDisaggregation(t *testing.T) {
	compareSeeds(t, 400, 100, reference.RandomDisaggregation, 1460, 3576)
}

// TestReferenceOnDisaggregationFailures is TestReferenceOnDisaggregation with replicas of both pools that fail.
func TestReferenceOnDisaggregationFailures(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomDisaggregationFailures, 7384)
}

// TestReferenceOnDisaggregationFleets is TestReferenceOnDisaggregation with an auto-scaler of one pool or both, and
// with replicas that fail.
func TestReferenceOnDisaggregationFleets(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomDisaggregationFleets, 5551, 10371)
}

// TestReferenceOnDisaggregationTiers is TestReferenceOnDisaggregation with tiers in both pools or one of them, and
// sometimes with an auto-scaler or replicas that fail.
func TestReferenceOnDisaggregationTiers(t *testing.T) {
	compareSeeds(t, 3000, 200, reference.RandomDisaggregationHosts)
}

// TestReferenceOnPrefillFirst is TestReferenceOnDisaggregation with prefill replicas that are chosen first.
func TestReferenceOnPrefillFirst(t *testing.T) {
	compareSeeds(t, 1500, 200, reference.RandomPrefillFirst)
}

// TestReferenceOnPieces is TestReferenceOnDisaggregation with blocks that move in pieces while the prompt is computed,
// and requests that run while the last of them arrive, sometimes with tiers or with prefill replicas chosen first.
func TestReferenceOnPieces(t *testing.T) {
	compareSeeds(t, 3000, 300, reference.RandomPieces)
}

// TestRedirectedPromptIsReported has a decode replica that drains and sends a request back to routing. Its prompt,
// which names nothing, is in the cache of the prefill replica, and the router reads that in a snapshot.
func TestRedirectedPromptIsReported(t *testing.T) {
	c, requests, err := reference.ParseStory(`
cluster beta=1000,10,100 replicas=2
pools link=0:100:100:1000
scale policy=threshold up=100 down=1.5 max=2 interval=6000 drain=redirect
arrive id=a at=0 in=84 out=7
arrive id=b at=1 in=84 out=4`)
	must(err)
	one := clusterOf(c)
	one.Policies.PrefillRouting = &policy.Spec{Type: "weighted", Params: map[string]any{"precise-prefix": 1}}
	one.ControlPlane.Snapshots.Cache = "periodic 1ms"
	var out bytes.Buffer
	must(runCluster(t.Context(), one, testSpecs(c), bytes.NewReader(workloadOf(requests)), &out, testOptions(c)))
	for _, o := range readOutcomes(t, out.Bytes()) {
		if want := 80 * o.Redirects; o.ExpectedCachedTokens != want || o.Redirects > 0 != (o.ID == "b") {
			t.Errorf("%s: %d redirects, %d cached tokens expected, want %d", o.ID, o.Redirects,
				o.ExpectedCachedTokens, want)
		}
	}
}

// TestPrefillAlternatives has two prefill replicas, and b goes to that of a because of a prefix of 80 tokens. There it
// waits until 1840 and computes 84 tokens until 3680. The other one would have computed all 164 until 2641.
func TestPrefillAlternatives(t *testing.T) {
	c, requests, err := reference.ParseStory(`
cluster beta=1000,10,100 replicas=2
pools link=0:100:100:1000 replicas=2 routing=prefix-affinity
arrive id=a at=0 in=84 out=1 prompt=p:84
arrive id=b at=1 in=164 out=1 prompt=p:84`)
	must(err)
	o := testOptions(c)
	must(o.Counterfactual.UnmarshalText([]byte("exact:9")))
	var out bytes.Buffer
	must(runCluster(t.Context(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out, o))
	r, regrets := stream.NewReader(bytes.NewReader(out.Bytes())), map[string]float64{}
	for r.Next() {
		if r.Kind() != stream.KindRegret {
			continue
		}
		var x stream.Regret
		must(r.Decode(&x))
		ms := 0.0
		if x.Method == stream.MethodEstimated {
			ms = *x.HindsightMS
		} else {
			ms = x.Alternatives[0].Own.E2EMS
		}
		regrets[x.Request+" "+x.Stage+" "+x.Method] = ms
	}
	must(r.Err())
	for _, method := range []string{stream.MethodEstimated, stream.MethodExact} {
		if ms := regrets["b prefill_routing "+method]; ms != 1.039 {
			t.Errorf("%s regret of b at the prefill replica: %g ms, want 1.039", method, ms)
		}
		if ms := regrets["a prefill_routing "+method]; ms != 0 {
			t.Errorf("%s regret of a at the prefill replica: %g ms, want 0", method, ms)
		}
	}
	if len(regrets) != 8 {
		t.Errorf("%d regrets: %v", len(regrets), regrets)
	}
}

// handoffFields are what only outcomes with a prefill replica have.
type handoffFields struct {
	Replica, Blocks, Cached int
	Times                   [5]int64
}

func handoffOf(o *reference.Outcome) handoffFields {
	return handoffFields{o.PrefillReplica, o.TransferBlocks, o.DecodeCached,
		[5]int64{o.PrefillEnqueuedUS, o.PrefillScheduledUS, o.PrefilledUS, o.TransferStartedUS, o.TransferredUS}}
}

func readHandoff(o *stream.Outcome) handoffFields {
	return handoffFields{int(o.PrefillReplica), int(o.TransferBlocks), int(o.DecodeCachedTokens),
		[5]int64{int64(o.PrefillEnqueuedUS), int64(o.PrefillScheduledUS), int64(o.PrefilledUS),
			int64(o.TransferStartedUS), int64(o.TransferredUS)}}
}

// setPools sets the prefill pool of the reference and the links from it.
func setPools(d *cluster.Deployment, c *reference.Config) {
	x := c.Disaggregation
	if x == nil {
		return
	}
	p := deploymentOf(x.Pool)
	setGroups(&p, &x.Pool)
	setTier(&p, &x.Pool)
	p.Computed.KVBlockBytes, d.Computed.KVBlockBytes = int64(x.BlockBytes), int64(x.BlockBytes)
	d.Architecture = cluster.Disaggregated
	d.Prefill = &cluster.Pool{Replicas: p.Replicas, Engine: p.Engine, Latency: p.Latency, KVTiers: p.KVTiers,
		KVOffload: p.KVOffload, Computed: p.Computed}
	d.Transfer = &cluster.PDTransfer{LatencyUS: x.LatencyUS, OutGBPerS: x.OutGBPerS, InGBPerS: x.InGBPerS,
		Granularity: cmp.Or(x.Granularity, "request"), Pipeline: x.Pipeline, HopUS: x.HopUS,
		LeaseS: float64(x.LeaseUS) / 1e6, OnExpiry: "fail"}
	if x.LeaseUS == 0 {
		d.Transfer.LeaseS = 1e6
	}
	if x.Recompute {
		d.Transfer.OnExpiry = "recompute"
	}
	if x.MaxWaiting > 0 {
		d.Backpressure = &cluster.Backpressure{MaxWaiting: x.MaxWaiting}
	}
	d.Decider = &cluster.Decider{Type: x.Decider, NonCachedTokens: int64(x.NonCached),
		PromptTokens: int64(x.PromptTokens)}
	switch x.Decider {
	case "prefix":
		d.Decider.Type = cluster.DeciderPrefix
	case "conditional":
		d.Decider = &cluster.Decider{Type: cluster.DeciderConditional, NewTokens: int64(x.NonCached),
			NewRatio: x.NewRatio}
	}
	if x.PrefillFirst {
		d.StageOrder = cluster.PrefillFirst
	}
}

// seedPools sets the random numbers with which the reference chooses prefill replicas.
func seedPools(c *reference.Config, seed uint64) {
	if c.Disaggregation == nil {
		return
	}
	x := *c.Disaggregation
	x.Pool.TieSeed = dist.NewStream(seed, "tiesprefill_routing").Uint64()
	x.Pool.DrawSeed = dist.NewStream(seed, "policy/prefill_routing").Uint64()
	c.Disaggregation = &x
}
