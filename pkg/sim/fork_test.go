package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
)

// forkPlanes cover every kind of state that a control plane can have.
var forkPlanes = []string{
	`policies: {routing: {type: round-robin}}`,
	`policies: {routing: {type: weighted, params: 
  {prefix-affinity: 3, queue-depth: 2, no-hit-lru: 1, session-affinity: 1}}}
control_plane: {shadow_blocks: 6, shadow_evictions: true, shadow_lag_us: 30}`,
	`policies: {routing: {type: weighted, params: {precise-prefix: 1, tiered-prefix: 1, active-requests: 1}}}
control_plane: {snapshots: {cache: periodic 40us, queue_depth: on-demand 30us}, routing_latency_us: 7}`,
	`policies: {admission: {type: chain, of: [
  {type: token-bucket, params: {capacity: 3, refill_per_s: 9000, per_tenant: true,
    capacities: {"": 2}, refills_per_s: {"": 8000}}},
  {type: rate-limit, params: {limit: 2, window_s: 0.0005, key: class, action: delay, delay_ms: 0.05}}]},
  routing: {type: random}}`,
	`policies: {admission: {type: tenant-quota},
  priority: {type: expression, priority: req.input_tokens, hints: {a: "req.arrival_s"}},
  routing: {type: power-of-two}, scheduler: {type: expression, order: "hint.a - req.priority"},
  preemption: {type: expression, victim: "seq.generated_tokens"}}`,
	`policies: {routing: {type: expression,
  score: "replica.recent_ttft_ms + replica.hit_rate - replica.est_wait_ms + tenant.rate + cluster.throughput"},
  scheduler: {type: sjf}}
control_plane: {snapshots: {default: periodic 60us},
  flow_control: {order: priority, fairness: round-robin, capacity: 4, saturation: 0.2, ttl_us: 900}}`,
	`policies: {admission: {type: predictive-slo, params: {budget_ms: {standard: 1}}},
  routing: {type: session-affinity}, preemption: {type: lowest-priority}}`,
	`policies: {routing: {type: pools, params: {by: slo_class, shares: {critical: 0.5}, spill_at: 3}}}`,
	`policies: {routing: {type: prefix-affinity}, priority: {type: deadline-aware}, scheduler: {type: priority-fcfs}}`,
	statefulPlane,
}

// statefulPlane has variables and random numbers in all stages.
const statefulPlane = `policies:
  admission: {type: expression, admit: "rand() < 0.95 || state.rejected > 2",
    state: {rejected: {init: 0, update: "decision.admitted ? 0 : state.rejected + 1"}}}
  priority: {type: tree, root: {if: "req.input_tokens > state.mean", then: 1, else: 2},
    state: {mean: {init: 20, update: "ema(state.mean, req.input_tokens, 0.2)"}}}
  routing: {type: filter, filter: "replica.index != state.last || state.turn % 3 == 0",
    use: {type: expression, score: "rand() < 0.3 ? rand() : -replica.inflight"},
    state: {last: {init: -1, update: replica.index}, turn: {init: 0, update: "state.turn + 1"}}}
  scheduler: {type: expression, order: "rand() - req.priority"}
  preemption: {type: expression, victim: "rand()"}`

// forkPools returns the settings of a deployment with prefill and decode pools for some seeds, and of tiers for half of
// these.
func forkPools(seed uint64, tiers bool) string {
	if seed%3 != 2 {
		return ""
	}
	const link = "{latency_us: 5, gb_per_s: 0.2}"
	text := `, architecture: disaggregated, prefill: {replicas: 2},
    decider: {type: prefix-based, non_cached_tokens: 6},
    transfer: {latency_us: 8, out_gb_per_s: 0.1, in_gb_per_s: 0.2, hop_us: 3`
	switch seed / 3 % 4 {
	case 1:
		text += ", granularity: chunk"
	case 2:
		text += ", granularity: block"
	}
	if tiers = tiers && seed%5 < 3; !tiers && seed/3%8 > 1 {
		text += ", pipeline: true"
	}
	text += "}"
	if seed%2 == 0 {
		text += ", backpressure: {max_waiting: 2}"
	}
	if tiers {
		text += ", kv_tiers: [{tier: cpu, blocks: 12, load: " + link + ", store: " + link + "}]"
	}
	return text
}

// forkStorage returns the settings of a tier with a storage below.
func forkStorage(seed uint64) string {
	const link = "load: {latency_us: 5, gb_per_s: 0.2}, store: {latency_us: 5, gb_per_s: 0.2}"
	return fmt.Sprintf(", kv_tiers: [{tier: cpu, blocks: 12, %s}, {tier: storage, blocks: 40, shared: %v, %s}], "+
		"kv_offload: {storage: %s}", link, seed%2 == 0, link, []string{"write-through", "on-eviction"}[seed/18%2])
}

// forkAdapters gives the requests of some seeds adapters, and returns the settings of their engine and, for half of
// these, of their control plane.
func forkAdapters(seed uint64, requests []reference.Request) (engine, plane string) {
	if seed%6 != 1 && seed%6 != 4 {
		return "", ""
	}
	for i := range requests {
		if r := &requests[i]; i > 0 && r.Session != "" && r.Session == requests[i-1].Session {
			r.Adapter = requests[i-1].Adapter
		} else {
			r.Adapter = fmt.Sprint("a", i%4)
		}
	}
	if seed%6 == 1 {
		plane = `policies: {routing: {type: llm-d, of: [{type: lora-affinity-scorer}]}}
control_plane: {snapshots: {queue_depth: periodic 40us}}`
	}
	return ", max_loras: 2, max_cpu_loras: 3, lora_load_us: 9, lora_copy_us: 4, lora_step_factor: 1.5", plane
}

// forkGrammars gives most requests one of four grammars, and returns the settings of their engine. Compilations and
// masks take as long as a few steps.
func forkGrammars(seed uint64, requests []reference.Request) (engine string) {
	for i := range requests {
		if r := &requests[i]; !r.Tool && i%5 < 4 {
			r.Grammar = fmt.Sprint("g", i%4)
		}
	}
	return fmt.Sprintf(", grammar_compile_us: %d, grammar_compile_cv: 0.5, grammar_workers: %d, grammar_mask_us: %d, "+
		"sampling_us: 2", []int{30, 200}[seed/4%2], 1+seed%2, seed/8%4)
}

// forkRanks returns the model and the settings of an engine with two data-parallel ranks for some seeds: those with
// experts run in lockstep.
func forkRanks(seed uint64, chunked bool) (model, engine string) {
	switch {
	case seed%6 != 0 && seed%6 != 3 || !chunked: // without chunks steps hold the longest prompt of the model
		return "", ""
	case seed%4 == 0:
		return ", model_config: Qwen/Qwen3-8B", ", data_parallel_size: 2"
	}
	return ", model_config: Qwen/Qwen3-30B-A3B", fmt.Sprintf(", data_parallel_size: 2, data_parallel_external_lb: %v, "+
		"dp_sync_interval: 3", seed%5 == 0)
}

// forkCase returns a cluster and a workload in memory.
func forkCase(t *testing.T, seed uint64) (*cluster.Config, workload, []stream.SLOClass) {
	t.Helper()
	c, requests := reference.RandomSessions(seed)
	c.Scheduler, c.Preemption = "", ""
	d := clusterOf(c).Deployments[0]
	e := d.Engine
	plane, pools := forkPlanes[seed%uint64(len(forkPlanes))], forkPools(seed, e.EnablePrefixCaching)
	adapters, affine := forkAdapters(seed, requests)
	served, ranks := forkRanks(seed, e.EnableChunkedPrefill)
	plane = cmp.Or(affine, plane)
	if seed%9 == 0 && e.EnablePrefixCaching {
		served, ranks, pools = "", "", forkStorage(seed)
	}
	if pools == "" && ranks == "" && seed%4 < 2 {
		adapters += fmt.Sprintf(", pipeline_parallel_size: 3, pipeline_hop_us: %d", seed%3)
	}
	if seed%4 >= 2 && pools == "" && ranks == "" {
		adapters += forkGrammars(seed, requests)
	}
	if pools == "" && seed%5 < 2 {
		adapters += ", prefill_schedule_interval: 7"
	}
	if seed%3 == 2 && pools != "" && plane == statefulPlane { // prefill routing has no variables
		plane = strings.Replace(plane, "  scheduler:", "  prefill_routing: {type: power-of-two}\n  scheduler:", 1)
	}
	text := fmt.Sprintf(`version: 1
deployments:
  - {id: main, model: m%s, replicas: %d,
    engine: {max_num_seqs: %d, max_num_batched_tokens: %d, block_size: %d, num_gpu_blocks_override: %d,
      enable_chunked_prefill: %v, enable_prefix_caching: %v, async_scheduling: %v, kv_bytes_per_block: 1000%s%s},
    latency: {model: linear, alpha_us: [1, 0.5, 2], beta_us: [10, 1, 1], jitter: {cv: %g}}%s}
%s
`, served, d.Replicas, min(e.MaxNumSeqs, e.MaxNumBatchedTokens), e.MaxNumBatchedTokens, e.BlockSize, c.NumBlocks,
		e.EnableChunkedPrefill, e.EnablePrefixCaching, e.AsyncScheduling, adapters, ranks, float64(seed%7%3)/10,
		pools, plane)
	file := filepath.Join(t.TempDir(), "c.yaml")
	must(os.WriteFile(file, []byte(text), 0o666))
	loaded, err := cluster.Load(file, cluster.Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	w, header := readWorkload(workloadOf(requests))
	return loaded, w, header.SLOClasses
}

// start returns a simulation of the case, with the first arrival read, and its results.
func (k workload) start(t *testing.T, c *cluster.Config, classes []stream.SLOClass) (*simulation, *results) {
	t.Helper()
	s, err := newSimulation(c, classes, mustSpecs(c), &Options{Seed: 7})
	must(err)
	f := &results{}
	s.feed = k.feed()
	s.observers.add(f)
	s.observers.add(checker{})
	must(s.readNext())
	return s, f
}

func (s *simulation) finishForTest() error {
	s.events.limit = 1 << 60
	if err := s.run(func() error { return nil }); err != nil {
		return err
	}
	return s.close()
}

// A fork continues exactly as the original does, and does not affect it.
func TestForkContinuesIdentically(t *testing.T) {
	cases := uint64(1200)
	if raceEnabled || testing.Short() {
		cases = 120
	}
	forked := 0
	for seed := range cases {
		c, k, classes := forkCase(t, seed)
		whole, want := k.start(t, c, classes)
		if whole.finishForTest() != nil {
			continue // a livelock: there is nothing to compare
		}
		s, got := k.start(t, c, classes)
		s.events.limit = int64(seed*7919) % (whole.events.count + 1)
		must(s.run(func() error { return nil }))
		before := slices.Clone(got.byPosition)
		later := &results{}
		f := s.fork(later)
		shareNothing(t, s, f)
		must(f.finishForTest())
		must(s.finishForTest())
		if diff := gocmp.Diff(want.byPosition, got.byPosition, gocmp.AllowUnexported(result{})); diff != "" {
			t.Fatalf("seed %d: forking changed the run:\n%s", seed, diff)
		}
		for i := range later.byPosition {
			if later.byPosition[i] != (result{}) {
				before = append(before, make([]result, max(0, i+1-len(before)))...)
				before[i] = later.byPosition[i]
			}
		}
		if diff := gocmp.Diff(want.byPosition, before, gocmp.AllowUnexported(result{})); diff != "" {
			t.Fatalf("seed %d: the fork at event %d went on otherwise:\n%s\n%+v", seed, s.events.limit, diff,
				c.Policies)
		}
		forked++
	}
	if forked < int(cases)*9/10 {
		t.Errorf("only %d of %d cases were forked", forked, cases)
	}
}

// shareNothing fails if two simulations share memory that either may change.
func shareNothing(t *testing.T, a, b *simulation) {
	t.Helper()
	seen, own := map[uintptr]string{}, map[uintptr]bool{}
	walk(reflect.ValueOf(a).Elem(), "", func(at uintptr, path string) bool {
		_, again := seen[at]
		seen[at] = path
		return !again
	})
	walk(reflect.ValueOf(b).Elem(), "", func(at uintptr, path string) bool {
		if other, shared := seen[at]; shared {
			t.Fatalf("the fork's %s is the %s of what it was forked from", path, other)
		}
		again := own[at]
		own[at] = true
		return !again
	})
}

// immutable lists the ends of paths to data that does not change during a simulation, and to
// policies, whose clones have their own test.
var immutable = []string{
	".models", ".feed", ".Steps", ".class", ".lastClass", ".eager", ".late", ".periodic", ".onDemand",
	".measuredRange", ".model", ".Model", ".out", ".FlowControl", ".SLOMet", ".classes", ".config", ".policies",
	".pool", ".LoRA", ".adapters", ".Pipeline",
}

// walk calls visit for all memory that v refers to, and continues from there if visit returns true.
func walk(v reflect.Value, path string, visit func(at uintptr, path string) bool) {
	for _, end := range immutable {
		if len(path) >= len(end) && path[len(path)-len(end):] == end {
			return
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && visit(v.Pointer(), path) {
			walk(v.Elem(), path, visit)
		}
	case reflect.Interface:
		walk(v.Elem(), path, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		if v.Cap() > 0 && !visit(v.Pointer(), path) {
			return
		}
		walkElements(v, path, visit)
	case reflect.Array:
		walkElements(v, path, visit)
	case reflect.Map:
		if !v.IsNil() && visit(v.Pointer(), path) {
			for i := v.MapRange(); i.Next(); {
				walk(i.Value(), path+"[]", visit)
			}
		}
	}
}

// walkElements walks the elements of a slice or an array, if they may refer to memory.
func walkElements(v reflect.Value, path string, visit func(at uintptr, path string) bool) {
	switch v.Type().Elem().Kind() {
	case reflect.Struct, reflect.Array, reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface:
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", visit)
		}
	}
}

// Alternatives give the same results concurrently and sequentially, with every kind of control
// plane. The race detector checks this too.
func TestConcurrentAlternativesMatchSequential(t *testing.T) {
	compared := 0
	for seed := range uint64(2 * len(forkPlanes)) {
		c, _, _ := forkCase(t, seed)
		_, requests := reference.RandomSessions(seed)
		o := Options{Trace: "decisions", Plain: true, Seed: 7}
		must(o.Counterfactual.UnmarshalText([]byte("exact:4:all")))
		if seed%2 == 1 {
			o.CounterfactualHorizon = &Horizon{Time: 200}
		}
		play := func() (string, error) {
			var out bytes.Buffer
			err := runLoaded(t.Context(), c, bytes.NewReader(workloadOf(requests)), &out, o)
			return out.String(), err
		}
		many, err := play()
		if err != nil {
			continue // a livelock
		}
		before := runtime.GOMAXPROCS(1)
		one, err := play()
		runtime.GOMAXPROCS(before)
		must(err)
		compared += strings.Count(many, `"method":"exact"`)
		if one != many {
			t.Errorf("seed %d: side by side is not one after the other:\n%s", seed, gocmp.Diff(one, many))
		}
	}
	if compared < 4*len(forkPlanes) {
		t.Errorf("only %d decisions were played", compared)
	}
}
