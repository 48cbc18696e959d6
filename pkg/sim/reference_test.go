package sim

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
	"blis/pkg/internal/mutation"
	"blis/pkg/internal/reference"
	"blis/pkg/latency"
	"blis/pkg/metrics"
	"blis/pkg/model"
	"blis/pkg/policy"
	"blis/pkg/stream"

	"github.com/cockroachdb/datadriven"
	gocmp "github.com/google/go-cmp/cmp"
)

// TestReferenceOnFollowers has prompts that contain the output of a request admitted later. Both
// write those tokens, one or two per step, and the first to complete a block determines which copy
// others hit.
func TestReferenceOnFollowers(t *testing.T) {
	for seed := range randomCases(400, 40) {
		c, requests := followers(seed)
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("seed %d: the reference (-) and the simulator (+) differ:\n%+v\n%s", seed, c, diff)
		}
	}
}

func followers(seed uint64) (reference.Config, []reference.Request) {
	d := rand.New(rand.NewPCG(seed, 77))
	size := 1 + d.IntN(2)
	c := reference.Config{Replicas: 1, MaxNumSeqs: 256, MaxNumBatchedTokens: 64, BlockSize: size,
		NumBlocks: 1 + 24/size + d.IntN(40), Chunked: true, PrefixCaching: true, LongPrefillThreshold: 1 + d.IntN(2),
		Switches: reference.Switches{Async: d.IntN(2) == 0},
		Beta:     []float64{10, 0, 0}, Routing: "round-robin", HorizonUS: reference.Never}
	switch d.IntN(4) {
	case 0:
		c.Groups = []reference.Group{{BlockSize: size, State: true}, {BlockSize: size}}
		c.States = reference.States{Chunks: "blocks", NextStep: true}
		c.NumBlocks *= 2
	case 1: // all groups together fill blocks of 2 or 4 tokens only
		c.Groups = []reference.Group{{BlockSize: size}, {BlockSize: size, Window: 2 + d.IntN(6)}, {BlockSize: 2 * size}}
		c.BlockSize, c.NumBlocks = 2*size, 3*c.NumBlocks
	}
	var all []reference.Request
	add := func(id string, at int, prompt []reference.Segment, unique, output int) {
		r := reference.Request{ID: id, ArrivalUS: int64(at), DeadlineUS: reference.Never, Input: unique, Output: output,
			Prompt: prompt}
		for _, s := range prompt {
			r.Input += s.Tokens
		}
		if n := len(all); n > 0 {
			r.ArrivalUS = max(r.ArrivalUS, all[n-1].ArrivalUS)
		}
		all = append(all, r)
	}
	for g := range 3 {
		at, writer, long := 60*g, fmt.Sprintf("w%d", g), 4+d.IntN(6)
		start := reference.Segment{ID: "p", Tokens: 1 + d.IntN(3)}
		follow := []reference.Segment{start, {ID: writer + ".out", Tokens: long}}
		for i := range 1 + d.IntN(2) {
			add(fmt.Sprintf("f%d-%d", g, i), at, follow, d.IntN(3), 1+d.IntN(12))
		}
		add(writer, at+5*d.IntN(2), []reference.Segment{start}, 0, long+d.IntN(8))
		for i := range 3 {
			add(fmt.Sprintf("l%d-%d", g, i), at+20+d.IntN(8), follow, d.IntN(4), 1+d.IntN(6))
		}
	}
	return c, all
}

// compareSeeds compares the simulator with the reference on the cases of this many seeds, of fewer in short tests and
// under the race detector. The seeds named first come first: their cases notice rules that few others do.
func compareSeeds(t *testing.T, cases, fewer uint64, draw func(uint64) (reference.Config, []reference.Request),
	first ...uint64,
) {
	t.Helper()
	for _, seed := range seeds(cases, fewer, first...) {
		c, requests := draw(seed)
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("seed %d: the reference (-) and the simulator (+) differ:\n%+v\n%s", seed, c, diff)
		}
	}
}

// seeds are the seeds of randomCases, after those named first.
func seeds(cases, fewer uint64, first ...uint64) []uint64 {
	if *oneSeed >= 0 {
		return []uint64{uint64(*oneSeed)}
	}
	if *firstSeed > 0 {
		first = nil
	}
	for i := range randomCases(cases, fewer) {
		first = append(first, *firstSeed+i)
	}
	return first
}

// firstSeed is the flag -from, for clusters that no test has drawn before.
var firstSeed = flag.Uint64("from", 0, "first seed of the random cases")

// clusters is the flag -clusters, for comparisons by hand.
var clusters = flag.Uint64("clusters", 0, "random cases in each test; 0: a fifth of those that mutations get")

// oneSeed is the flag -seed, to see one case again.
var oneSeed = flag.Int64("seed", -1, "compare only the random case of this seed; -1: all")

// randomCases is how many random cases a test has. A broken rule must be noticed in the first of all, the tests
// themselves have a fifth of them, and with -short or the race detector fewer.
func randomCases(all, fewer uint64) uint64 {
	switch {
	case *clusters > 0:
		return *clusters
	case raceEnabled || testing.Short():
		return fewer
	case mutation.Active():
		return all
	}
	return max(all/5, fewer)
}

// TestReference compares the simulator with the plain reference on random small clusters: all times,
// counts and steps must be equal.
func TestReference(t *testing.T) {
	compareSeeds(t, 2500, 300, reference.Random)
}

// TestReferenceOnGroups is TestReference with KV cache groups.
func TestReferenceOnGroups(t *testing.T) {
	compareSeeds(t, 1500, 200, reference.RandomGroups, 44, 50, 79, 84, 114, 116, 208, 478, 972, 1100,
		1371)
}

// TestReferenceOnSessions is TestReference with steps of sessions, issued when others have
// completed.
func TestReferenceOnSessions(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomSessions, 48, 103, 122, 248, 352, 356)
}

// TestReferenceOnRetries is TestReference with clients that send requests again.
func TestReferenceOnRetries(t *testing.T) {
	compareSeeds(t, 2000, 200, reference.RandomRetries, 1623)
}

// TestSessionCutByHorizon has a session of two steps, one of which would be issued after the horizon. The run ends
// at 25 µs, when the other one times out: no step ends after that.
func TestSessionCutByHorizon(t *testing.T) {
	c := reference.Config{Replicas: 1, MaxNumSeqs: 8, MaxNumBatchedTokens: 64, BlockSize: 4, NumBlocks: 100,
		Chunked: true, PrefixCaching: true, Beta: []float64{10, 0, 0}, Routing: "round-robin", HorizonUS: 1000,
		Switches: reference.Switches{Async: true}}
	requests := []reference.Request{
		{ID: "b", Input: 4, Output: 1, DeadlineUS: reference.Never,
			SessionStep: reference.SessionStep{Session: "b", TimeoutUS: reference.Never, DelayUS: 2000}},
		{ID: "a", Input: 4, Output: 9, DeadlineUS: reference.Never,
			SessionStep: reference.SessionStep{Session: "b", TimeoutUS: 25}},
	}
	if diff := compare(t, c, requests); diff != "" {
		t.Fatalf("the reference (-) and the simulator (+) differ:\n%s", diff)
	}
}

// TestReferenceOnComputedSteps is TestReference with step times computed from models and GPUs, which
// depend on all sums of a batch.
func TestReferenceOnComputedSteps(t *testing.T) {
	var specs []replicaSpec
	var windows []int
	for _, d := range []string{
		"{id: a, model: Qwen/Qwen3-8B, gpu: A100}",
		"{id: A, model: Qwen/Qwen3-8B, gpu: A100, latency: {model: roofline}}",
		"{id: b, model: openai/gpt-oss-20b, gpu: L40S, latency: {model: roofline}}",
		"{id: B, model: openai/gpt-oss-20b, gpu: L40S}",
		"{id: c, model: google/gemma-3-12b-it, gpu: H100, engine: {tensor_parallel_size: 2}}",
		"{id: C, model: google/gemma-3-12b-it, gpu: H100, engine: {tensor_parallel_size: 2}, " +
			"latency: {model: roofline}}",
		"{id: d, model: deepseek-ai/DeepSeek-V3, gpu: H200, " +
			"engine: {tensor_parallel_size: 8, data_parallel_size: 2, moe: {enable_all_to_all: true}}}",
		"{id: e, model: meta-llama/Llama-3.3-70B-Instruct, gpu: H100, " +
			"engine: {tensor_parallel_size: 2, pipeline_parallel_size: 2}}",
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		must(os.WriteFile(file, []byte("version: 1\ndeployments: ["+d+"]\n"), 0o666))
		c, err := cluster.Load(file, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := "operators"
		if strings.Contains(d, "roofline") {
			want = "roofline"
		}
		if have := c.Deployments[0].Latency.Model; have != want {
			t.Fatalf("%s has the latency model %s", d, have)
		}
		specs = append(specs, mustSpecs(c)...)
		windows = append(windows, c.Deployments[0].Computed.WindowTokens)
	}
	for seed := range randomCases(800, 80) {
		r := specs[seed%uint64(len(specs))]
		c, requests := reference.Random(seed)
		c.Window = windows[seed%uint64(len(windows))]
		c.StepTime = func(b reference.Batch) int64 { return r.model.Step(latency.Batch(b)) }
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("seed %d: the reference (-) and the simulator (+) differ:\n%+v\n%s", seed, c, diff)
		}
	}
}

// TestStories runs the stories, whose times are computed by hand, on the simulator, which must agree
// with the reference. The reference's own test checks their output.
func TestStories(t *testing.T) {
	stories := 0
	datadriven.Walk(t, "../../testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			stories++
			c, requests, err := reference.ParseStory(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if diff := compare(t, c, requests); diff != "" {
				d.Fatalf(t, "the reference (-) and the simulator (+) differ:\n%s", diff)
			}
			return d.Expected
		})
	})
	if stories < 10 {
		t.Errorf("only %d stories", stories)
	}
}

// compare runs both and returns the difference.
func compare(t *testing.T, c reference.Config, requests []reference.Request) string {
	t.Helper()
	o := testOptions(c)
	path := pickerPath(&c)
	c.TieSeed = dist.NewStream(o.Seed, "ties"+path).Uint64()
	c.DrawSeed = dist.NewStream(o.Seed, "policy/routing"+path).Uint64()
	for i := range c.Profile {
		c.Profile[i].Seed = dist.NewStream(o.Seed, fmt.Sprintf("policy/routing.of[%d]", i)).Uint64()
	}
	seedPools(&c, o.Seed)
	if c.Admission != nil {
		c.Admission.Seed = dist.NewStream(o.Seed, "policy/admission").Uint64()
	}
	setDraws(&c, o.Seed)
	setCompileTimes(&c, o.Seed)
	want := reference.Run(c, requests)
	var out bytes.Buffer
	if err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out,
		o); err != nil {
		t.Fatalf("%v\n%+v\n%+v", err, c, requests)
	}
	got := readRun(t, out.Bytes(), len(want.Steps), want.Decode, startsOf(&c))
	plain := []outcomeFields{}
	var beyond, retries int64
	for i, w := range want.Outcomes {
		session := want.Requests[i].Session
		switch {
		case w.State == reference.BeyondHorizon:
			if session == "" || i == 0 || want.Requests[i-1].Session != session {
				beyond++
			}
			continue
		case w.State == reference.NotOffered || want.Requests[i].Tool:
			continue
		}
		if w.RetryOf != "" {
			retries++
		}
		plain = append(plain, outcomeFields{ID: w.ID, State: w.State, Reason: w.Reason,
			Times: [7]int64{w.ArrivalUS, w.AdmittedUS, w.RoutedUS, w.EnqueuedUS, w.ScheduledUS, w.FirstTokenUS,
				w.CompletedUS},
			Replica: w.Replica, Redirects: w.Redirects, Handoff: handoffOf(&w), Generated: w.Generated,
			Retry:  retryFields{w.RetryOf, w.RetryUS, w.Retried},
			Cached: w.Cached, Loaded: w.Loaded, FromStorage: w.FromStorage, Expected: w.ExpectedCached,
			Preemptions: w.Preemptions, Waited: w.PreemptedUS, Stopped: stoppedOf(&w),
			Gaps: gapsOf(w.SeenUS), Encoded: [2]int64{w.EncodedUS, w.EmbeddingsUS}})
		last := &plain[len(plain)-1]
		if last.Longest = longest(last.Gaps); !o.ITL {
			last.Gaps = nil
		}
	}
	ordered := make([]outcomeFields, 0, len(plain))
	for _, w := range plain {
		ordered = append(ordered, got.outcomes[w.ID])
	}
	if diff := difference(plain, ordered); diff != "" {
		return diff
	}
	if len(got.outcomes) != len(plain) || got.counts.Offered+retries != int64(len(plain)) ||
		got.counts.Retries != retries || got.metrics.Requests.Retries != retries ||
		got.counts.BeyondHorizon != beyond {
		return fmt.Sprintf("%d outcomes, %+v; want %d and %d beyond the horizon", len(got.outcomes), got.counts,
			len(plain), beyond)
	}
	if diff := difference(want.Fleet, got.fleet); diff != "" {
		return diff
	}
	if diff := difference(stepsOf(want.Steps), got.steps); diff != "" {
		return diff
	}
	if diff := diffTransfers(want.Transfers, got.transfers); diff != "" {
		return diff
	}
	if diff := difference(want.Embeddings, got.embeddings); diff != "" {
		return diff
	}
	if diff := difference(dpOf(want.Ranks), got.metrics.DP); diff != "" {
		return diff
	}
	if diff := compareGrammars(want.Grammars, got.metrics.StructuredOutput); diff != "" {
		return diff
	}
	if c.Disaggregation != nil { // which pool had what else is not known
		return got.tierTotals(want)
	}
	return cmp.Or(got.totals(want, c.NumBlocks-1), got.tierTotals(want), got.stageTotals(want), got.encodeTotals(want))
}

// difference is gocmp.Diff, which takes long also where nothing differs.
func difference(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return gocmp.Diff(want, got)
}

// totals reports replica metrics that are not the sums over the replica's requests and steps.
func (got *runFields) totals(want reference.Result, blocks int) string {
	for i, r := range got.metrics.Replicas {
		var preemptions, queried, cached, prefill, decode, batch, used int64
		for k, o := range want.Outcomes {
			if o.Replica == i {
				preemptions += int64(o.Preemptions)
				if o.ScheduledUS != reference.Never {
					queried, cached = queried+int64(want.Requests[k].Input), cached+int64(o.Cached)
				}
			}
		}
		for _, s := range want.Steps[i] {
			prefill, decode = prefill+s.Prefill, decode+s.Decode
			batch, used = max(batch, int64(s.Running)), max(used, int64(s.UsedBlocks))
		}
		hit := 0.0
		if queried > 0 {
			hit = float64(cached) / float64(queried)
		}
		if slices.ContainsFunc(want.Outcomes, func(o reference.Outcome) bool { return o.Redirects > 0 }) {
			preemptions, hit = r.Preemptions, -1 // the replica that had them is not known
			r.PrefixHitRatio = &hit
		}
		if r.Preemptions != preemptions || r.PrefillTokens != prefill || r.DecodeTokens != decode ||
			r.PeakBatch < batch ||
			r.PrefixHitRatio != nil && *r.PrefixHitRatio != hit ||
			r.KVUtilMax != nil &&
				*r.KVUtilMax < float64(used)/float64(blocks) {
			return fmt.Sprintf("replica %d: %d preemptions, %d prefill and %d decode tokens, hit ratio %g, "+
				"batches up to %d, %d blocks; its metrics are %+v",
				i, preemptions, prefill, decode, hit, batch, used, r)
		}
	}
	return ""
}

// testOptions vary: --check, which visits every sequence and could hide a missing update, in half of
// the clusters, and --itl in two thirds.
func testOptions(c reference.Config) Options {
	o := Options{Trace: "full", Plain: true, ITL: c.NumBlocks%3 != 0, Check: c.NumBlocks%2 == 0,
		Seed: uint64(c.NumBlocks)}
	if c.HorizonUS != reference.Never {
		o.Horizon = &Horizon{c.HorizonUS}
	}
	return o
}

// outcomeFields are the fields of an outcome that both simulators have.
type outcomeFields struct {
	ID, State, Reason                        string
	Times                                    [7]int64
	Replica, Redirects                       int
	Generated, Cached, Expected, Preemptions int
	Loaded, FromStorage                      int
	Handoff                                  handoffFields
	Waited                                   int64 // after preemptions
	Stopped                                  [6]int64
	Longest                                  int64 // inter-token latency, Never if none
	Gaps                                     [][2]int64
	Retry                                    retryFields
	Encoded                                  [2]int64 // at encode replicas, and when the embeddings had come
}

type retryFields struct {
	Of      string
	US      int64
	Retried bool
}

// stoppedOf are the times in the queue for each reason.
func stoppedOf(o *reference.Outcome) (us [6]int64) {
	copy(us[:], o.StoppedUS[1:])
	us[5] = o.GrammarUS
	return us
}

func longest(gaps [][2]int64) int64 {
	most := int64(stream.Never)
	for _, g := range gaps {
		most = max(most, g[0])
	}
	return most
}

type stepFields struct {
	Start, End, Masks, MaskUS, MaskWait, Prefill, Decode, Preempted, Used, Running, Waiting int64
	Batch                                                                                   []stream.BatchEntry
}

type runFields struct {
	outcomes map[string]outcomeFields
	fleet    []string
	steps    [][]stepFields
	counts   stream.Counts
	metrics  metrics.Record
	// transfers of each replica
	transfers [][]reference.Transfer
	// embeddings are the transfers from encode replicas.
	embeddings []reference.EmbeddingsTransfer
}

func readRun(t *testing.T, run []byte, replicas, decode int, numbers fleetNumbers) runFields {
	t.Helper()
	got := runFields{outcomes: map[string]outcomeFields{}, steps: make([][]stepFields, replicas),
		transfers: make([][]reference.Transfer, replicas)}
	r := stream.NewReader(bytes.NewReader(run))
	for r.Next() {
		switch r.Kind() {
		case stream.KindScaling, stream.KindScalingChoice, stream.KindReplicaState:
			got.fleet = append(got.fleet, readFleet(t, r, numbers))
		case stream.KindOutcome:
			var o stream.Outcome
			if err := r.Outcome(&o); err != nil {
				t.Fatal(err)
			}
			got.outcomes[o.ID] = outcomeFields{ID: o.ID, State: o.State, Reason: o.Reason,
				Times: [7]int64{int64(o.ArrivalUS), int64(o.AdmittedUS), int64(o.RoutedUS), int64(o.EnqueuedUS),
					int64(o.ScheduledUS), int64(o.FirstTokenUS), int64(o.CompletedUS)},
				Replica: numbers.of(o.Deployment, o.Replica), Redirects: int(o.Redirects),
				Retry:     retryFields{o.RetryOf, o.RetryUS, o.Retried},
				Generated: int(o.GeneratedTokens), Cached: int(o.CachedTokens),
				Expected: int(o.ExpectedCachedTokens), Preemptions: int(o.Preemptions), Waited: o.PreemptedUS,
				Stopped: [6]int64{o.SlotWaitUS, o.BudgetWaitUS, o.BlockWaitUS, o.AdapterWaitUS, o.EncoderWaitUS,
					o.GrammarWaitUS},
				Longest: int64(o.ITLMaxUS), Gaps: o.ITLUS, Loaded: loadedTokens(&o),
				FromStorage: promotedTokens(&o), Handoff: readHandoff(&o),
				Encoded: [2]int64{int64(o.EncodedUS), int64(o.EmbeddingsUS)}}
		case stream.KindTransfer:
			var x stream.Transfer
			if err := r.Decode(&x); err != nil {
				t.Fatal(err)
			}
			at := int(x.Replica)
			if x.Deployment == "main.prefill" {
				at += decode
			}
			if x.Type == stream.TransferEncoded {
				got.embeddings = append(got.embeddings, embeddingsOf(&x, at))
				continue
			}
			got.transfers[at] = append(got.transfers[at], transferOf(&x))
		case stream.KindMetrics:
			if err := r.Decode(&got.metrics); err != nil {
				t.Fatal(err)
			}
		case stream.KindStep:
			var s stream.Step
			if err := r.Decode(&s); err != nil {
				t.Fatal(err)
			}
			at := numbers.of(s.Deployment, s.Replica)
			if s.Deployment == "main.prefill" {
				at += decode
			}
			got.steps[at] = append(
				got.steps[at],
				stepFields{int64(s.StartUS), int64(s.EndUS), s.Masks, s.MaskUS, s.MaskWaitUS, s.PrefillTokens,
					s.DecodeTokens, s.Preempted, s.UsedBlocks, s.Running, s.Waiting, s.Batch},
			)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	got.counts = *r.End().Requests
	return got
}

func stepsOf(steps [][]reference.Step) [][]stepFields {
	all := make([][]stepFields, len(steps))
	for i := range steps {
		for _, s := range steps[i] {
			var batch []stream.BatchEntry
			for _, x := range s.Shares {
				batch = append(batch, stream.BatchEntry{Request: x.ID, Tokens: int64(x.Tokens)})
			}
			all[i] = append(
				all[i],
				stepFields{s.StartUS, s.EndUS, int64(s.Masks), s.MaskUS, s.MaskWaitUS, int64(s.Prefill),
					int64(s.Decode),
					int64(s.Preempted),
					int64(s.UsedBlocks), int64(s.Running), int64(s.Waiting), batch},
			)
		}
	}
	return all
}

// gapsOf is the run-length encoded list of inter-token latencies.
func gapsOf(tokens []int64) [][2]int64 {
	var gaps [][2]int64
	for i := 1; i < len(tokens); i++ {
		gap := tokens[i] - tokens[i-1]
		if n := len(gaps); n > 0 && gaps[n-1][0] == gap {
			gaps[n-1][1]++
		} else {
			gaps = append(gaps, [2]int64{gap, 1})
		}
	}
	return gaps
}

// clusterOf converts the reference's configuration.
func clusterOf(c reference.Config) *cluster.Config {
	d := deploymentOf(c)
	setGroups(&d, &c)
	setTier(&d, &c)
	setPools(&d, &c)
	setEncodePool(&d, &c)
	one := &cluster.Config{Version: 1, Deployments: deploymentsOf(d, &c),
		ControlPlane: cluster.ControlPlane{AdmissionLatencyUS: c.AdmissionLatencyUS,
			RoutingLatencyUS: c.RoutingLatencyUS, ShadowBlocks: cmp.Or(c.ShadowBlocks, policy.ShadowBlocks)},
		Policies: policy.Bundle{Routing: routingOf(&c),
			Scheduler: policy.Spec{Type: c.Scheduler}, Preemption: policy.Spec{Type: c.Preemption}}}
	if c.Scheduler != "" || c.Preemption != "" { // requests have priorities
		one.Policies.Priority.Type = "slo-based"
	}
	if x := c.Disaggregation; x != nil {
		prefill := routingOf(&x.Pool)
		one.Policies.PrefillRouting = &prefill
	}
	one.ControlPlane.Snapshots.Default = "immediate"
	if c.SnapshotUS > 0 {
		one.ControlPlane.Snapshots.Default = cluster.Refresh(fmt.Sprintf("periodic %dus", c.SnapshotUS))
	}
	setNamedRouter(one, &c)
	setFlow(one, c.Flow)
	setScaling(one, &c)
	setFailures(one, c.Failures)
	if a := c.Admission; a != nil {
		one.Policies.Admission = policy.Spec{Type: "probabilistic-admitter", Params: map[string]any{
			"queueDepthThreshold": a.Queue, "kvCacheUtilThreshold": a.KV, "power": a.Power, "k": a.K}}
	}
	if l := c.TenantLimits; l != nil {
		one.Policies.Admission = tenantLimitsOf(l)
	}
	one.Policies.Complete()
	one.ControlPlane.Snapshots.SetDefaults(c.Host != nil)
	return one
}

// routingOf converts the reference's router.
func routingOf(c *reference.Config) policy.Spec {
	s := policy.Spec{Type: c.Routing, Params: map[string]any{}}
	if c.Routing == "least-snapshot" {
		s.Type, s.Params["load"] = "least-loaded", "snapshot"
	}
	for _, x := range c.Scorers {
		s.Params[x.Name] = x.Weight
		if x.Name == "tiered-prefix" {
			s.Params["tiered_prefix_cpu"], s.Params["tiered_prefix_storage"] = c.TierWeights[1], c.TierWeights[2]
		}
	}
	if c.Routing == "weighted" {
		s.Params["picker"] = cmp.Or(c.Picker, "max-score")
	}
	if c.Routing != "round-robin" {
		s.Params["tie"] = cmp.Or(c.Tie, "first")
	}
	return s
}

// deploymentOf converts the engines of the reference's configuration, without groups and tiers.
func deploymentOf(c reference.Config) cluster.Deployment {
	d := cluster.Deployment{ID: "main", Model: "m", Replicas: c.Replicas,
		Computed: &cluster.Computed{KVBlocks: c.NumBlocks}}
	d.Latency.Model, d.Latency.AlphaUS, d.Latency.BetaUS = "linear", c.Alpha[:], c.Beta
	e := &d.Engine
	e.TensorParallelSize, e.PipelineParallelSize, e.DataParallelSize = 1, 1, 1
	e.MaxNumSeqs, e.MaxNumBatchedTokens, e.BlockSize = c.MaxNumSeqs, c.MaxNumBatchedTokens, c.BlockSize
	e.EnableChunkedPrefill, e.EnablePrefixCaching = c.Chunked, c.PrefixCaching
	e.LongPrefillTokenThreshold, e.MaxModelLen = c.LongPrefillThreshold, c.MaxModelLen
	e.AsyncScheduling, e.ReserveFullSequence, e.Watermark = c.Async, c.ReserveFull, c.Watermark
	e.LongPrefillTokenThresholdLone, e.LongPrefillTokenThresholdAdaptive = !c.SpareLone, c.Adaptive
	e.IdleVictimSkipsNext = c.SkipAfterIdle
	e.PrefillScheduleInterval = c.PrefillInterval
	if c.ContinueAfterSelf {
		e.AfterSelfPreemption = cluster.ContinueScheduling
	}
	if c.UnhashedFirst {
		e.FreeOrder = cluster.UnhashedFirst
	}
	e.SpeculativeConfig = speculativeConfigOf(c.Speculation)
	if l := c.LoRA; l != nil {
		e.LoRA = cluster.LoRA{MaxLoras: l.Max, MaxCPULoras: l.MaxHost, LoadUS: new(float64(l.LoadUS)),
			CopyUS: new(float64(l.CopyUS)), StepFactor: &l.Factor, AdapterUS: l.EachUS}
	}
	if x := c.Ranks; x != nil {
		d.Replicas = c.Replicas / x.Size
		e.DataParallelSize, e.DataParallelExternalLB, e.DPSyncInterval = x.Size, x.External, x.Interval
		d.Computed.Lockstep = x.Lockstep
	}
	if g := c.Grammars; g != nil {
		e.StructuredOutput = cluster.StructuredOutput{CompileUS: new(float64(g.MeanUS)), CompileCV: grammarCV,
			Workers: g.Workers, MaskUS: &g.MaskUS, SamplingUS: new(float64(g.SamplingUS))}
	}
	setPipeline(&d, &c)
	if x := c.Encoder; x != nil {
		e.Encoder = cluster.Encoder{MaxTokensPerItem: min(x.Budget, x.Cache), MaxNumInputTokens: x.Budget,
			CacheSize:           x.Cache,
			DisableChunkedInput: x.Whole, TokenUS: &x.TokenUS, ItemUS: x.ItemUS}
	}
	e.MaxNumQueuedReqs, e.MaxNumQueuedTokens = c.Door.Reqs, c.Door.Tokens
	if c.Door.RunnerSeqs > 0 {
		e.MaxNumSeqs, e.MaxNumActiveSeqs = c.Door.RunnerSeqs, c.MaxNumSeqs
	}
	return d
}

// setGroups sets the KV cache groups of the reference and the rules for them.
func setGroups(d *cluster.Deployment, c *reference.Config) {
	e := &d.Engine
	d.Computed.WindowTokens = c.Window
	for _, g := range c.Groups {
		k := model.KVGroup{Kind: model.KVFull, BlockSize: g.BlockSize, WindowTokens: g.Window + g.Chunk, Layers: 1}
		switch {
		case g.State:
			k.Kind = model.KVState
		case g.Window > 0:
			k.Kind = model.KVWindow
		case g.Chunk > 0:
			k.Kind = model.KVChunked
		}
		d.Computed.KVGroups = append(d.Computed.KVGroups, k)
	}
	if e.PrefixCacheRetentionInterval = -1; c.Sparse {
		e.PrefixCacheRetentionInterval = c.Interval
	}
	e.MambaChunks = cmp.Or(c.States.Chunks, "prompts")
	if c.States.Checkpoint {
		e.NumPrefillCheckpointBlocks = 1
	}
	if c.States.NextStep {
		e.MambaFreshHits = cluster.FreshNextStep
	}
	if e.MambaRelease = cluster.MambaReleaseAll; c.States.LastOnly {
		e.MambaRelease = "last"
	}
	if c.HashAll {
		e.HashedBlocks = cluster.HashAll
	}
	if c.KeepUntilComputed {
		e.WindowRelease = cluster.ReleaseComputed
	}
	if c.ReserveWindow {
		e.WindowReserve = cluster.ReserveWindow
	}
}

// testSpecs are the replica specs of the reference's configuration.
func testSpecs(c reference.Config) []replicaSpec {
	s := mustSpecs(clusterOf(c))
	if x := c.Scaling; x != nil && len(x.Fleet) > 0 && c.StepTime != nil {
		for k := range x.Fleet {
			s[k].model = stepTimes{s[k].model, c.Member(k).StepTime}
		}
		return s
	}
	if c.StepTime != nil {
		s[0].model = stepTimes{s[0].model, c.StepTime}
	}
	if c.Ranks != nil && c.Ranks.Size > 1 && c.StepTime != nil {
		s[0].model = latency.OneRank(s[0].model)
	}
	if x := c.Disaggregation; x != nil && x.Pool.StepTime != nil {
		s[1].model = stepTimes{s[1].model, x.Pool.StepTime}
	}
	return s
}

func mustSpecs(c *cluster.Config) []replicaSpec {
	s, err := replicaSpecs(c, 0)
	must(err)
	return s
}

// stepTimes is a latency model with the reference's step times.
type stepTimes struct {
	latency.Model
	of func(reference.Batch) int64
}

func (m stepTimes) Step(b latency.Batch) des.Time { return max(1, m.of(reference.Batch(b))) }

func workloadOf(requests []reference.Request) []byte {
	var out bytes.Buffer
	w := stream.NewWriter(&out, true)
	var classes []stream.SLOClass // one for each priority
	for _, r := range requests {
		c := stream.SLOClass{Name: className(r), Tier: "standard", Priority: r.Priority,
			Targets: stream.Targets{TTFTMS: r.TTFTTargetMS}}
		if r.Sheddable {
			c.Tier = policy.Sheddable
		}
		if c.Name != "" && !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	must(
		w.Header(
			&stream.Header{Stream: stream.StreamWorkload, StreamVersion: stream.StreamVersion, Tool: "test",
				SLOClasses: classes},
		),
	)
	for i, r := range requests {
		if r.Session != "" {
			if i == 0 || requests[i-1].Session != r.Session {
				must(w.Session(sessionOf(requests[i:], i)))
			}
			continue
		}
		q := stream.Request{ID: r.ID, ArrivalUS: stream.Micros(r.ArrivalUS), InputTokens: int64(r.Input),
			OutputTokens: int64(r.Output), DeadlineUS: stream.Micros(r.DeadlineUS),
			PredictedOutputTokens: int64(r.Predicted), Tenant: r.Tenant, SLOClass: className(r), Retry: retryOf(r),
			Adapter: r.Adapter, Grammar: r.Grammar}
		if r.EOS {
			q.Stop = stream.StopEOS
		}
		q.DraftAcceptance = r.DraftAcceptance
		for _, s := range r.Prompt {
			q.Prompt = append(q.Prompt, stream.Segment{ID: s.ID, Tokens: int64(s.Tokens), Media: mediaOf(s)})
		}
		must(w.Request(&q))
	}
	must(w.End(&stream.End{}))
	must(w.Close())
	return out.Bytes()
}

// mediaOf is what a segment is, "" for text.
func mediaOf(s reference.Segment) string {
	if !s.Media {
		return ""
	}
	return []string{stream.MediaImage, stream.MediaAudio, stream.MediaVideo}[s.Tokens%3]
}

// retryOf converts the retries of a request, nil if there are none.
func retryOf(r reference.Request) *stream.Retry {
	if r.On == nil {
		return nil
	}
	return &stream.Retry{On: r.On, BackoffUS: r.BackoffUS}
}

// className names the class of requests like this one, if they need one.
func className(r reference.Request) string {
	if r.Priority == 0 && !r.Sheddable && r.TTFTTargetMS == 0 {
		return ""
	}
	return fmt.Sprint(r.Priority, r.Sheddable, r.TTFTTargetMS)
}

// sessionOf converts the session at the start of requests, whose first one is at a position in the
// stream. The session has the class of its first step.
func sessionOf(requests []reference.Request, at int) *stream.Session {
	s := &stream.Session{ID: requests[0].Session, ArrivalUS: stream.Micros(requests[0].ArrivalUS),
		UntilUS: stream.Never, Tenant: requests[0].Tenant, SLOClass: className(requests[0]),
		Adapter: requests[0].Adapter}
	for _, r := range requests {
		if r.Session != s.ID {
			break
		}
		step := stream.SessionStep{ID: r.ID, DelayUS: r.DelayUS, OutputTokens: int64(r.Output), Extends: stream.NoIndex}
		for _, parent := range r.After {
			step.After = append(step.After, stream.Index(parent-at))
		}
		if r.Tool {
			step.Tool, step.LatencyUS = "tool", r.ToolUS
		} else {
			step.InputTokens, step.PredictedOutputTokens, step.TimeoutUS = int64(r.Input), int64(r.Predicted),
				max(0, r.TimeoutUS)
			step.Retry = retryOf(r)
			if r.EOS {
				step.Stop = stream.StopEOS
			}
			step.DraftAcceptance, step.Grammar = r.DraftAcceptance, r.Grammar
			for _, p := range r.Prompt {
				step.Prompt = append(step.Prompt, stream.Segment{ID: p.ID, Tokens: int64(p.Tokens), Media: mediaOf(p)})
			}
		}
		s.Steps = append(s.Steps, step)
	}
	return s
}
