package attribution

import (
	"fmt"
	"math"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// withCapacity is a header of a run whose replicas have that many batch slots and blocks of 16 tokens.
func withCapacity(replicas, slots int, blocks int64) *stream.Header {
	h := header(replicas)
	d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
	d["engine"].(map[string]any)["max_num_seqs"] = slots
	d["computed"] = map[string]any{"kv_blocks": blocks + 1} // and the null block
	return h
}

// The occupancy while a request waited equals that of sampling the replica many times.
func TestOccupancyEqualsSampling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const replicas = 2
		a := New(withCapacity(replicas, 4, 100))
		for i := range rapid.IntRange(1, 15).Draw(t, "requests") {
			o := drawOutcome(t, i, replicas)
			o.GeneratedTokens = o.OutputTokens
			a.Outcome(&o, false)
		}
		a.derive()
		a.computeStats()
		a.measureReplicas()
		for i, r := range a.requests.all() {
			running, kvShare := sampleOccupancy(a, r, r.enqueued(), r.leftQueue())
			c := &r.contention
			if r.firstToken() != never && r.ended() != never {
				want, _ := sampleOccupancy(a, r, r.firstToken(), r.ended())
				if math.Abs(want-c.concurrent) > 1e-6 {
					t.Fatalf("request %d %+v: %v running while it decoded, sampled %v", i, r.times, c.concurrent, want)
				}
			}
			if math.Abs(running-c.running) > 1e-6 || math.Abs(kvShare-c.kvShare) > 1e-6 {
				t.Fatalf("request %d %+v: %v running, blocks held %v; sampled %v, %v", i, r.times, c.running, c.kvShare,
					running, kvShare)
			}
		}
	})
}

// sampleOccupancy samples each µs of a time of r 64 times, in the middle of each interval: that is exact for what
// grows evenly.
func sampleOccupancy(a *Analyzer, r *request, from, until stream.Micros) (running, kvShare float64) {
	if r.enqueued() == never || until <= from {
		return 0, 0
	}
	const samples = 64
	wait := int(until - from)
	for k := range wait * samples {
		at := float64(from) + (float64(k)+0.5)/samples
		for _, o := range a.requests.all() {
			if o.replica != r.replica || o.scheduled() == never || o.ended() == never || at < float64(o.scheduled()) ||
				at >= float64(o.ended()) {
				continue
			}
			running++
			kvShare += float64(o.tokens.input-o.tokens.cached) + 8
			if o.firstToken() != never && at > float64(o.firstToken()) && o.tokens.generated > 1 {
				kvShare += float64(o.tokens.generated-1) * (at - float64(o.firstToken())) /
					float64(o.ended()-o.firstToken())
			}
		}
	}
	return running / float64(wait*samples), kvShare / (float64(wait*samples) * 1600)
}

// firstPattern is that of the run, which must have one.
func firstPattern(t *testing.T, a *Analyzer) Pattern {
	t.Helper()
	f := a.Find()
	if len(f.Patterns) == 0 {
		t.Fatalf("no pattern of %+v", f.Loss)
	}
	return f.Patterns[0]
}

// oneAfterAnother is a run of 50 requests that arrive at once and have a replica to themselves for
// 200 ms each.
func oneAfterAnother(slots int, blocks int64) *Analyzer {
	a := New(withCapacity(1, slots, blocks))
	for i := range int64(50) {
		o := served(fmt.Sprint(i), 0, 0, 200*i)
		o.CompletedUS = o.ScheduledUS + 200_000
		o.InputTokens, o.GeneratedTokens = 300, 1
		a.Outcome(&o, false)
	}
	return a
}

// A request takes 308 tokens of the cache, which holds 320, 640 or 3,200.
func TestTooSmallReplicasAreReported(t *testing.T) {
	for _, c := range []struct {
		slots  int
		blocks int64
		want   string
	}{{256, 20, "cache_full"}, {1, 200, "batch_slots_full"}, {256, 200, "overload"}, {1, 40, "overload"}} {
		if p := firstPattern(t, oneAfterAnother(c.slots, c.blocks)); p.Condition.Name != c.want || p.Loss < 0.7 {
			t.Errorf("%d slots, %d blocks: %s explains %v, not %s", c.slots, c.blocks, p.Condition.Name, p.Loss, c.want)
		}
	}
}

// Groups of 200 arrive at once, at each replica in turn or all at the first of two, and are decoded
// together: a token takes a tenth of the group size in ms, with a target of 5. Groups of 20 meet it.
func TestFullBatchesAreReported(t *testing.T) {
	for _, c := range []struct {
		replicas int
		want     string
	}{{1, "imbalanced_batch"}, {2, "replicas_saturated"}} {
		h := withCapacity(2, 256, 20000)
		h.SLOClasses = append(h.SLOClasses, stream.SLOClass{Name: "even", Targets: stream.Targets{TPOTMS: 5}})
		a := New(h)
		for k := range 10 {
			n := []int{200, 20}[k%2]
			for i := range n * c.replicas {
				o := served(fmt.Sprintf("d%d-%d", k, i), stream.Index(i%c.replicas), int64(k)*500, 0)
				o.SLOClass, o.OutputTokens, o.GeneratedTokens = "even", 11, 11
				o.CompletedUS = o.FirstTokenUS + stream.Micros(n)*1000
				a.Outcome(&o, false)
			}
		}
		if p := firstPattern(t, a); p.Condition.Name != c.want || p.Part != PartDecode || p.Loss < 0.8 {
			t.Errorf("%d replicas: %+v, not %s", c.replicas, p, c.want)
		}
	}
}

// All requests at one replica of two are lost, all of one tenant: there is no control group, and yet
// the loss is that of the replica, not of the tenant.
func TestNearlyAllLostAtOneReplica(t *testing.T) {
	a := New(withCapacity(2, 256, 20000))
	for i := range int64(100) {
		o := served(fmt.Sprint(i), 0, 100*i, 0)
		o.FirstTokenUS, o.CompletedUS, o.Tenant = o.FirstTokenUS+20_000, o.CompletedUS+20_000, "a"
		a.Outcome(&o, false)
	}
	if p := firstPattern(t, a); p.Condition != &hotReplica || p.Lift != 0 || p.Value != "main/0" {
		t.Errorf("%+v", p)
	}
}

// A delay by admission is a loss there, by the rule that delayed: neither longer queues nor tenants
// explain it.
func TestDelaysAreReported(t *testing.T) {
	a := New(withCapacity(2, 256, 20000))
	for i := range int64(200) {
		o := served(fmt.Sprint(i), 0, 10*i+100, 0)
		o.ArrivalUS -= 100_000
		o.Delays = 2
		o.Tenant = []string{"a", "b"}[i%2]
		if i%2 == 1 {
			o.SLOClass = "slow"
		}
		for k, verdict := range []string{"delay", "delay", "admit"} {
			rule := "admission.delay"
			if verdict == "admit" {
				rule = "admission.admit"
			}
			a.Decision(&stream.Decision{ID: fmt.Sprint("dec-", i, "-", k), Stage: stream.StageAdmission, Request: o.ID,
				Verdict: verdict, Rule: rule})
		}
		a.Outcome(&o, false)
	}
	p := firstPattern(t, a)
	if p.Condition != &delayed || p.Rule != "admission.delay" || p.Lost != 100 || p.Part != PartAdmission ||
		p.Cause != "delayed 2.0 times by admission, 100 ms in total (means)" {
		t.Errorf("%+v", p)
	}
}

// A request that no replica can serve is not a loss of admission.
func TestUnservableRequestsAreReported(t *testing.T) {
	a := New(header(1))
	a.Metrics(&metrics.Raw{})
	for i := range int64(100) {
		o := served(fmt.Sprint(i), 0, 10*i, 0)
		if i%2 == 0 {
			o = unroutedRequest(o.ID, o.ArrivalUS)
			o.Reason, o.SLOClass, o.InputTokens = stream.ReasonTooLongForModel, "fast", 9000
		}
		a.Outcome(&o, false)
	}
	f := a.Find()
	if f.Loss.Dominant[PartLimits] != 50 || len(f.Patterns) == 0 || f.Patterns[0].Condition.Name != "unservable" ||
		f.Patterns[0].Condition.Component.Name != "engine" {
		t.Errorf("%+v, %+v", f.Loss, f.Patterns)
	}
}

// A steady stream has no burst, not even before the run has lasted a minute.
func TestSteadyStreamHasNoBurst(t *testing.T) {
	a := New(header(1))
	for i := range int64(2000) {
		o := served(fmt.Sprint(i), 0, 6*i, 0) // 167 a second, for 12 s
		a.Outcome(&o, false)
	}
	a.derive()
	a.markBursts()
	for i, r := range a.requests.all() {
		if r.contention.inBurst {
			t.Fatalf("request %d is in a burst", i)
		}
	}
}
