package policy

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var testEnv = Env{Models: []string{"m", "n"}, Replicas: 20, Candidates: 20,
	Seed: func(s string) uint64 { return uint64(len(s)) }}

// composedExamples holds an example of each composed policy.
var composedExamples = map[string]Spec{
	"admission/expression": {Type: "expression", Admit: `req.tier != "sheddable" || best.queue_depth < 2`},
	"admission/tree": {
		Type: "tree",
		Root: &Node{If: `tenant.active > 2`, Then: &Node{Value: "delay"},
			Else: &Node{Use: &Spec{Type: "token-bucket"}}},
	},
	"admission/chain": {Type: "chain", Of: []Spec{{Type: "slo-gated"}, {Type: "rate-limit"}}},
	"priority/expression": {Type: "expression", Priority: "req.priority - req.input_tokens / 100",
		Hints: map[string]string{"a": "cluster.inflight"}},
	"priority/tree": {
		Type: "tree",
		Root: &Node{If: `req.input_tokens > 1000`, Then: &Node{Value: 3.0}, Else: &Node{Use: &Spec{Type: "slo-based"}}},
	},
	"routing/expression": {Type: "expression", Filter: "replica.kv_util < 0.9",
		Score: "replica.prefix_match - 0.1 * replica.queue_depth"},
	"routing/tree": {
		Type: "tree",
		Root: &Node{If: `req.input_tokens > 1000`, Then: &Node{Use: &Spec{Type: "least-loaded"}},
			Else: &Node{Use: &Spec{Type: "power-of-two"}}},
	},
	"routing/filter": {Type: "filter", Filter: "replica.capacity > 2", Use: &Spec{Type: "round-robin"}},
	"routing/llm-d": {Type: "llm-d", Of: []Spec{
		{Type: "utilization-filter", Params: map[string]any{"conditions": map[string]any{"waiting-queue": 1.0}}},
		{Type: "token-load-scorer"}, {Type: "queue-scorer"}, {Type: "weighted-random-picker"}}},
	"scheduler/expression": {Type: "expression", Order: "req.input_tokens - req.priority"},
	"scheduler/tree": {Type: "tree",
		Root: &Node{If: `req.input_tokens > 1000`, Then: &Node{Value: 3.0}, Else: &Node{Use: &Spec{Type: "sjf"}}}},
	"preemption/expression": {Type: "expression", Victim: "seq.blocks - req.priority"},
	"preemption/tree": {Type: "tree",
		Root: &Node{If: `seq.blocks > 10`, Then: &Node{Value: 3.0}, Else: &Node{Use: &Spec{Type: "lowest-priority"}}}},
	"admission/starlark": {Type: "starlark",
		Program: `def admit(req, best): return req.tier != "sheddable" or best.queue_depth < 2`},
	"priority/starlark": {Type: "starlark",
		Program: "def priority(req): return req.priority - req.input_tokens / 100\n" +
			"def hint_a(cluster): return cluster.inflight"},
	"routing/starlark": {Type: "starlark", Program: "def filter(replica): return replica.kv_util < 0.9\n" +
		"def score(replica): return replica.prefix_match - 0.1 * replica.queue_depth"},
	"scheduler/starlark":  {Type: "starlark", Program: "def order(req): return req.input_tokens - req.priority"},
	"preemption/starlark": {Type: "starlark", Program: "def victim(seq, req): return seq.blocks - req.priority"},
	"autoscale/starlark": {Type: "starlark",
		Program: "def desired(deployment): return deployment.inflight / 3 + deployment.load_history[1]"},
	"autoscale/expression": {Type: "expression", Desired: "deployment.inflight / 3 + deployment.load_history[1]"},
	"autoscale/tree": {Type: "tree", Root: &Node{If: `deployment.attainment["a"] < 0.9`,
		Then: &Node{Value: "deployment.replicas + deployment.kv_util"},
		Else: &Node{Use: &Spec{Type: "threshold"}}}},
}

// statefulExamples hold examples with random numbers and variables.
var statefulExamples = map[string]Spec{
	"admission": {Type: "expression", Admit: "rand() < 0.9 && state.n % 3 != 0", State: map[string]Variable{
		"n": {1, "decision.admitted ? state.n + 1 : state.n + rand() * 0 + 1"}}},
	"priority": {Type: "tree", Root: &Node{If: "state.mean > 900", Then: &Node{Value: 3.0},
		Else: &Node{Use: &Spec{Type: "expression", Priority: "rand() + state.mean",
			State: map[string]Variable{
				"mean": {0, "ema(state.mean, decision.priority, 0.5)"}}}}},
		State: map[string]Variable{"mean": {1000, "ema(state.mean, req.input_tokens, 0.1)"}}},
	"autoscale": {Type: "expression", Desired: "state.x + rand()", State: map[string]Variable{
		"x": {1, "ema(state.x, decision.replicas, 0.5)"}}},
	"routing": {Type: "filter", Filter: "state.last != replica.index",
		State: map[string]Variable{"last": {-1, "replica.index"}}, Use: &Spec{Type: "expression",
			Score: "rand() < 0.2 ? rand() : -replica.inflight * state.x", State: map[string]Variable{
				"x": {1, "-state.y"}, "y": {-2, "-state.x * (rand() < 0.5 ? 1 : 2) / 2"}}}},
	"scheduler":  {Type: "expression", Order: "rand() * req.input_tokens"},
	"preemption": {Type: "tree", Root: &Node{If: "rand() < 0.5", Then: &Node{Value: 3.0}, Else: &Node{Value: 2.0}}},
}

// TestStatefulPoliciesConform: variables and random numbers are part of what a clone copies.
func TestStatefulPoliciesConform(t *testing.T) {
	for stage, s := range statefulExamples {
		t.Run(stage, func(t *testing.T) { checkConformance(t, Entry{Stage: stage, Name: s.Type, Composed: true}, s) })
	}
}

// TestPoliciesConform checks what all policies have in common. A decision is valid, depends only on
// the fields that the policy needs, and leaves the view unchanged. A clone decides like the
// original without affecting it. Decisions do not allocate in the long run, but those of Starlark programs, whose
// numbers are objects. Unknown parameters are rejected.
func TestPoliciesConform(t *testing.T) {
	for _, e := range Entries() {
		if slices.Contains([]string{"scorer", StageDetector, StageUsageLimit}, e.Stage) {
			continue // weighted covers all scorers, flow control the others
		}
		t.Run(e.Stage+"/"+e.Name, func(t *testing.T) {
			s := Spec{Type: e.Name}
			if e.Stage == StageLLMD { // a profile with just this plugin
				s = Spec{Type: "llm-d", Of: []Spec{s}}
				if e.Name == "utilization-filter" {
					s.Of[0].Params = map[string]any{"conditions": map[string]any{"kv-cache-utilization": 0.5}}
				}
				e.Stage, e.Composed = "routing", true
			} else if e.Composed {
				var ok bool
				if s, ok = composedExamples[e.Stage+"/"+e.Name]; !ok {
					t.Fatal("no example")
				}
			}
			if e.Name == "weighted" {
				s.Params = map[string]any{}
				for _, scorer := range Scorers {
					s.Params[scorer.Name] = 1.0
				}
			}
			checkConformance(t, e, s)
			if e.Pathological != slices.Contains(
				[]string{"reject-all", "inverted-slo", "always-busiest", "reverse-priority", "oscillator"}, e.Name) {
				t.Errorf("pathological: %v", e.Pathological)
			}
			if e.Composed {
				return
			}
			s.Params = map[string]any{"no-such": 1.0}
			if _, err := planeWith(e.Stage, s); err == nil || !strings.Contains(err.Error(), e.Stage+".params") {
				t.Errorf("an unknown parameter: %v", err)
			}
		})
	}
}

// planeWith has the policy s at a stage and defaults elsewhere.
func planeWith(stage string, s Spec) (*Plane, error) {
	b := &Bundle{}
	if stage == "autoscale" {
		b.Autoscale = &Autoscale{Type: s.Type, Params: s.Params, Desired: s.Desired, Program: s.Program, Root: s.Root,
			State: s.State}
		b.Complete()
		return Build(b, testEnv)
	}
	*map[string]*Spec{"admission": &b.Admission, "priority": &b.Priority, "routing": &b.Routing,
		"scheduler": &b.Scheduler, "preemption": &b.Preemption}[stage] = s
	b.Complete()
	return Build(b, testEnv)
}

// hints is the output buffer of priority policies.
var hints [MaxHints]float64

// fleet is the input of auto-scaling policies.
var fleet Fleet

// traffic is that of trafficView.
var (
	trafficView *View
	traffic     *Traffic
)

// testEngine is a replica of which a step takes 1 ms, and 10 µs for each token.
var testEngine = Engine{MaxBatchedTokens: 2048, MaxSeqs: 64, KVTokens: 100000,
	StepUS: func(prefill, decode, _ int64) int64 { return 1000 + 10*(prefill+decode) }}

// trafficOf is some traffic that follows from a view.
func trafficOf(v *View) *Traffic {
	t := NewTraffic(0)
	for i := range v.Replicas {
		at := v.NowUS - int64(len(v.Replicas)-i)*1000
		t.Arrive(at)
		t.End(&Ended{AtUS: at, Class: []string{"a", "b"}[i%2], HasTargets: true, MetTargets: i%3 > 0, TTFTUS: at % 77,
			E2EUS: at % 99, Input: 100 + at%1000, Output: 1 + at%50, Cached: at % 100})
		if i%4 == 3 {
			t.Look(at)
		}
	}
	return t
}

// decision is the decision of any stage.
type decision struct {
	Verdict
	Choice
	number float64
	hints  [MaxHints]float64
}

func (p *Plane) decide(stage string, v *View, l *Local) (d decision) {
	switch stage {
	case "admission":
		d.Verdict = p.Admission.Admit(v)
	case "priority":
		d.number, _ = p.Priority.Priority(v, &hints)
		d.hints = hints
	case "routing":
		d.Choice = p.Routing.Route(v)
	case "scheduler":
		d.number = p.Scheduler.Order(l)
	case "preemption":
		d.number = p.Preemption.PreemptionScore(l)
	case "autoscale":
		fleet = Fleet{NowUS: v.NowUS, Replicas: v.Replicas, Loading: len(v.Replicas) % 3}
		if trafficView != v {
			trafficView, traffic = v, trafficOf(v)
		}
		fleet.Traffic, fleet.Engine = traffic, &testEngine
		n := p.Autoscale.Recommend(&fleet)
		d.number, d.Choice.Reason = float64(n.Replicas), n.Reason.Quantity
	}
	return d
}

func checkConformance(t *testing.T, e Entry, s Spec) {
	a, err := planeWith(e.Stage, s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := planeWith(e.Stage, s)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var clone *Plane
	for i := range 2000 {
		all, local := randomView(r, int64(i)*1000)
		v, l := a.obscure(e.Stage, all, local, r)
		before, here := copyView(v), *l
		first := a.decide(e.Stage, v, l)
		if !reflect.DeepEqual(before, v) || !reflect.DeepEqual(here, *l) {
			t.Fatal("the view has changed")
		}
		v, l = a.obscure(e.Stage, all, local, r)
		second := b.decide(e.Stage, v, l)
		if first != second {
			t.Fatalf("%+v and %+v for views that differ only in fields it does not need", first, second)
		}
		if c := first.Candidate; c < 0 || c >= len(v.Replicas) {
			t.Fatalf("candidate %d of %d", c, len(v.Replicas))
		}
		if first.Action > Delay || (first.Action == Delay) != (first.DelayUS > 0) {
			t.Fatalf("verdict %+v", first.Verdict)
		}
		if first.number != first.number {
			t.Fatal("not a number")
		}
		switch {
		case i == 1000:
			clone = a.Clone()
		case i > 1000 && i < 1500:
			if got := clone.decide(e.Stage, v, l); got != first {
				t.Fatalf("decision %d: the clone's is %+v, the original's %+v", i, got, first)
			}
		case i >= 1500 && i < 1700: // must not affect the original
			clone.decide(e.Stage, v, l)
			clone.decide(e.Stage, v, l)
		}
	}
	v, l := randomView(r, 2e6)
	v, l = a.obscure(e.Stage, v, l, r)
	n := testing.AllocsPerRun(1000, func() { v.NowUS += 1e5; l.NowUS += 1e5; a.decide(e.Stage, v, l) })
	if n != 0 && e.Name != "starlark" {
		t.Errorf("%v allocations per decision", n)
	}
}

// randomIndexes returns n replicas of the cluster, in order.
func randomIndexes(r *rand.Rand, n int) []int {
	all := r.Perm(testEnv.Replicas)[:n]
	slices.Sort(all)
	return all
}

// randomView returns a random state of a busy cluster.
func randomView(r *rand.Rand, now int64) (*View, *Local) {
	class := []string{"realtime", "standard", "batch"}[r.IntN(3)]
	tier := map[string]string{"realtime": "critical", "standard": "standard", "batch": "sheddable"}[class]
	q := &Request{Tenant: string(rune('a' + r.IntN(3))), TenantID: int32(r.IntN(3)), SessionID: int32(r.IntN(10) - 1),
		Class: class, Tier: tier, Model: "m", InputTokens: int64(r.IntN(3000)), Predicted: float64(r.IntN(500)),
		Priority: float64(r.IntN(100)), ArrivalUS: now, DeadlineUS: now + int64(r.IntN(1e6)) - 5e5,
		TTFTTargetMS: float64(r.IntN(3) * 100), Turn: int64(r.IntN(4))}
	if r.IntN(2) == 0 {
		q.DeadlineUS = -1
	}
	v := &View{
		NowUS:   now,
		Request: q,
		Tenant: Tenant{Requests: int64(r.IntN(100)), Active: int64(r.IntN(20)), ActiveSheddable: int64(r.IntN(5)),
			Rate: r.Float64() * 10, Burst: r.IntN(4) == 0},
		Cluster: Cluster{Inflight: int64(r.IntN(200)), Rate: r.Float64() * 100, Throughput: r.Float64() * 100,
			Tenants: 3},
	}
	for _, i := range randomIndexes(r, 1+r.IntN(testEnv.Replicas)) {
		x := Replica{
			Index:    int32(i),
			Inflight: int32(r.IntN(8)),
			Blocks:   32,
			Matched:  int32(r.IntN(33)) * int32(r.IntN(2)),
			Stats: &Stats{HitRate: r.Float64(), RecentTTFTMS: r.Float64() * 100, RecentTPOTMS: r.Float64() * 30,
				EstWaitMS: r.Float64() * 100, KVUtilCPU: r.Float64(), Loading: int32(r.IntN(4)),
				MaxSeqs: 8, StepUS: 1e4, PrefillUS: r.Float64() * 1e5,
				Prefix: PrefixMatch{int32(r.IntN(9)) * int32(r.IntN(2)), 8, 64}, PrefillTokens: int64(r.IntN(1e5)),
				Active:  ActiveMatch{r.IntN(1000), r.IntN(10), 16},
				Tiers:   TierMatch{int32(r.IntN(9)) * int32(r.IntN(2)), int32(r.IntN(9)) * int32(r.IntN(2))},
				Adapter: AdapterMatch{r.IntN(2) == 0, int32(r.IntN(4)), 3}},
		}
		x.Snapshot = Snapshot{QueueDepth: int32(r.IntN(4)), Running: int32(r.IntN(8)),
			FreeBlocks: int32(r.IntN(1000)), Cached: int32(r.IntN(33)), KVUtil: r.Float64()}
		for f := range x.Stats.TakenUS {
			x.Stats.TakenUS[f] = now - int64(r.IntN(1e5))
		}
		v.Replicas = append(v.Replicas, x)
	}
	l := &Local{NowUS: now, Request: q, Hints: [MaxHints]float64{r.Float64()}, Replica: v.Replicas[0].Snapshot,
		Sequence: Sequence{Generated: r.IntN(100), Computed: r.IntN(2000), Blocks: r.IntN(100)}}
	return v, l
}

// copyView returns a deep copy of v.
func copyView(v *View) *View {
	c := *v
	if v.Request != nil {
		q := *v.Request
		c.Request = &q
	}
	c.Replicas = slices.Clone(v.Replicas)
	for i := range c.Replicas {
		s := *c.Replicas[i].Stats
		c.Replicas[i].Stats = &s
	}
	return &c
}

// obscure returns a view with random values in all fields that the policy of the stage does not
// need.
func (p *Plane) obscure(stage string, v *View, l *Local, r *rand.Rand) (*View, *Local) {
	n := map[string]Policy{"admission": p.Admission, "priority": p.Priority, "routing": p.Routing,
		"scheduler": p.Scheduler, "preemption": p.Preemption, "autoscale": p.Autoscale}[stage].Needs()
	v = copyView(v)
	here := *l
	q := *l.Request
	here.Request = &q
	for _, q := range []*Request{v.Request, here.Request} {
		scramble(n&NeedTenant != 0, r, &q.TenantID)
		scramble(n&NeedSession != 0, r, &q.SessionID)
		scramble(n&NeedPredicted != 0, r, &q.Predicted)
		if stage != "admission" && stage != "priority" { // these see the priority of the class
			scramble(n&NeedPriority != 0, r, &q.Priority)
		}
	}
	if n&NeedRequest == 0 {
		v.Request = nil
	}
	scramble(n&NeedTenant != 0, r, &v.Tenant.Requests, &v.Tenant.Active, &v.Tenant.ActiveSheddable, &v.Cluster.Tenants)
	scramble(n&NeedRates != 0, r, &v.Tenant.Rate)
	v.Tenant.Burst = v.Tenant.Burst && n&NeedRates != 0
	scramble(n&NeedClusterRates != 0, r, &v.Cluster.Rate, &v.Cluster.Throughput)
	for i := range v.Replicas {
		x := &v.Replicas[i]
		s := x.Stats
		scramble(n&NeedQueueDepth != 0, r, &x.QueueDepth)
		scramble(n&NeedRunning != 0, r, &x.Running)
		scramble(n&needKVUtil != 0, r, &x.FreeBlocks)
		scramble(n&needKVUtil != 0, r, &x.KVUtil)
		scramble(n&NeedCache != 0, r, &x.Cached)
		scramble(n&NeedShadow != 0, r, &x.Matched)
		scramble(n&(NeedCache|NeedShadow) != 0, r, &x.Blocks)
		scramble(n&NeedHitRate != 0, r, &s.HitRate)
		scramble(n&NeedRecentTTFT != 0, r, &s.RecentTTFTMS)
		scramble(n&NeedRecentTPOT != 0, r, &s.RecentTPOTMS)
		scramble(n&NeedEstWait != 0, r, &s.EstWaitMS)
		scramble(n&NeedTier != 0, r, &s.KVUtilCPU)
		scramble(n&NeedTier != 0, r, &s.Loading)
		scramble(n&NeedEstimate != 0, r, &s.StepUS, &s.PrefillUS)
		scramble(n&NeedBlockIndex != 0, r, &s.Prefix.Matched, &s.Prefix.Blocks, &s.Prefix.BlockTokens)
		scramble(n&NeedPrefillTokens != 0, r, &s.PrefillTokens)
		scramble(n&NeedTierBlocks != 0, r, &s.Tiers.CPU, &s.Tiers.Storage)
		if n&NeedAdapter == 0 {
			s.Adapter = AdapterMatch{r.IntN(2) == 0, int32(r.IntN(1000)), int32(r.IntN(1000))}
		}
		if n&NeedActiveBlocks == 0 {
			s.Active = ActiveMatch{r.IntN(1000), r.IntN(1000), r.IntN(1000)}
		}
		for f := range Fields {
			scramble(n.Has(f), r, &s.TakenUS[f])
		}
	}
	return v, &here
}

// scramble replaces fields that are not needed by random numbers.
func scramble[N int32 | int64 | float64](needed bool, r *rand.Rand, fields ...*N) {
	for _, f := range fields {
		if !needed {
			*f = N(r.IntN(1000))
		}
	}
}

// TestNeedsOfFields: the needs of snapshot fields match the fields.
func TestNeedsOfFields(t *testing.T) {
	for f, n := range map[Field]Needs{FieldQueueDepth: NeedQueueDepth, FieldRunning: NeedRunning,
		FieldKVUtil: needKVUtil, FieldHitRate: NeedHitRate, FieldRecentTTFT: NeedRecentTTFT,
		FieldRecentTPOT: NeedRecentTPOT, FieldEstWait: NeedEstWait, FieldCache: NeedCache, FieldTier: NeedTier} {
		if !n.Has(f) || n&NeedsSnapshot != n || n&(n-1) != 0 {
			t.Errorf("field %s: needs %b", FieldNames[f], n)
		}
	}
	if NeedRequest&NeedsSnapshot != 0 || NeedRequest != NeedsSnapshot+1 {
		t.Errorf("the needs of fields are %b, the next one is %b", NeedsSnapshot, NeedRequest)
	}
}

// BenchmarkPolicies measures a decision among 16 candidates.
func BenchmarkPolicies(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var v *View
	var l *Local
	for v == nil || len(v.Replicas) != 16 {
		v, l = randomView(r, 1e6)
	}
	for _, e := range Entries() {
		s := Spec{Type: e.Name}
		if e.Composed {
			s = composedExamples[e.Stage+"/"+e.Name]
		}
		names := []string{""}
		if e.Name == "weighted" {
			names = append(names, Scorers.Names()...)
		}
		if slices.Contains([]string{"scorer", StageLLMD, StageDetector, StageUsageLimit}, e.Stage) {
			continue
		}
		for _, scorer := range names {
			name := e.Stage + "/" + e.Name
			if scorer != "" {
				s.Params = map[string]any{scorer: 1.0}
				name += "/" + scorer
			}
			p, err := planeWith(e.Stage, s)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					p.decide(e.Stage, v, l)
				}
				if e.Stage == "routing" {
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/16, "ns/candidate")
				}
			})
		}
	}
}
