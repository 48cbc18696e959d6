package attribution

import (
	"fmt"
	"math"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// roomy is a header of a run whose replicas have so many seats and blocks of 16 tokens.
func roomy(replicas, seats int, blocks int64) *stream.Header {
	h := header(replicas)
	d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
	d["engine"].(map[string]any)["max_num_seqs"] = seats
	d["computed"] = map[string]any{"kv_blocks": blocks}
	return h
}

// What a replica held while a request waited is what looking at it again and again says.
func TestRoomsAreThoseOfPlainSampling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const replicas = 2
		in := New(roomy(replicas, 4, 100))
		for i := range rapid.IntRange(1, 15).Draw(t, "requests") {
			o := drawOutcome(t, i, replicas)
			o.GeneratedTokens = o.OutputTokens
			in.Outcome(&o, false)
		}
		in.rooms()
		for i, r := range in.rows {
			besides, held := 0.0, 0.0
			if r.enqueued != never && r.left() > r.enqueued {
				const steps = 64 // of each µs, at its middle: what grows grows evenly
				wait := int(r.left() - r.enqueued)
				for k := range wait * steps {
					at := float64(r.enqueued) + (float64(k)+0.5)/steps
					for _, o := range in.rows {
						if o.replica != r.replica || o.scheduled == never || o.ended == never || at < float64(o.scheduled) || at >= float64(o.ended) {
							continue
						}
						besides++
						held += float64(o.input-o.cached) + 8
						if o.first != never && at > float64(o.first) && o.made > 1 {
							held += float64(o.made-1) * (at - float64(o.first)) / float64(o.ended-o.first)
						}
					}
				}
				besides /= float64(wait * steps)
				held /= float64(wait*steps) * 1600
			}
			if math.Abs(besides-r.besides) > 1e-6 || math.Abs(held-r.held) > 1e-6 {
				t.Fatalf("row %d %+v: %v beside it, %v held; looked: %v, %v", i, r.times, r.besides, r.held, besides, held)
			}
		}
	})
}

// first is the first pattern of what in has lost.
func first(t *testing.T, in *Analyzer) Pattern {
	t.Helper()
	f := in.Find()
	if len(f.Patterns) == 0 {
		t.Fatalf("no pattern of %+v", f.Loss)
	}
	return f.Patterns[0]
}

// One request after the other has a replica to itself for 200 ms, and all came at once.
func alone(seats int, blocks int64) *Analyzer {
	in := New(roomy(1, seats, blocks))
	for i := range int64(50) {
		o := served(fmt.Sprint(i), 0, 0, 200*i)
		o.CompletedUS = o.ScheduledUS + 200_000
		o.InputTokens, o.GeneratedTokens = 300, 1
		in.Outcome(&o, false)
	}
	return in
}

// A prompt takes 308 tokens of 320 or of 3,200.
func TestTooSmallReplicasAreNamed(t *testing.T) {
	for _, c := range []struct {
		seats  int
		blocks int64
		want   string
	}{{256, 20, "cache_full"}, {1, 200, "seats_full"}, {256, 200, "overload"}, {1, 40, "overload"}} {
		if p := first(t, alone(c.seats, c.blocks)); p.Condition != c.want || p.Loss < 0.7 {
			t.Errorf("%d seats, %d blocks: %s explains %v, not %s", c.seats, c.blocks, p.Condition, p.Loss, c.want)
		}
	}
}

// Groups of 200 come at once, to each replica in turn or all to the first of two, and
// are decoded together: a token takes a tenth of the group in ms, of 5 promised. Groups
// of 20 meet that.
func TestFullBatchesAreNamed(t *testing.T) {
	for _, c := range []struct {
		replicas int
		want     string
	}{{1, "busier_batch"}, {2, "crowded"}} {
		h := roomy(2, 256, 20000)
		h.SLOClasses = append(h.SLOClasses, stream.SLOClass{Name: "even", Targets: stream.Targets{TPOTMS: 5}})
		in := New(h)
		for k := range 10 {
			n := []int{200, 20}[k%2]
			for i := range n * c.replicas {
				o := served(fmt.Sprintf("d%d-%d", k, i), stream.Index(i%c.replicas), int64(k)*500, 0)
				o.SLOClass, o.OutputTokens, o.GeneratedTokens = "even", 11, 11
				o.CompletedUS = o.FirstTokenUS + stream.Micros(n)*1000
				in.Outcome(&o, false)
			}
		}
		if p := first(t, in); p.Condition != c.want || p.Part != partDecode || p.Loss < 0.8 {
			t.Errorf("%d replicas: %+v, not %s", c.replicas, p, c.want)
		}
	}
}

// All that comes to one replica of two is lost, whoever sent it: nobody is there to
// compare with, and yet it is not the loss of a tenant.
func TestNearlyAllAtOneReplica(t *testing.T) {
	in := New(roomy(2, 256, 20000))
	for i := range int64(100) {
		o := served(fmt.Sprint(i), 0, 100*i, 0)
		o.FirstTokenUS, o.CompletedUS, o.Tenant = o.FirstTokenUS+20_000, o.CompletedUS+20_000, "a"
		in.Outcome(&o, false)
	}
	if p := first(t, in); p.Condition != "hot_replica" || p.Lift != 0 || p.Value != "main/0" {
		t.Errorf("%+v", p)
	}
}

// What admission delayed is a loss there, by the rule that delayed: longer queues and
// tenants do not explain it.
func TestDelaysAreNamed(t *testing.T) {
	in := New(roomy(2, 256, 20000))
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
			in.Decision(&stream.Decision{ID: fmt.Sprint("dec-", i, "-", k), Stage: stream.StageAdmission, Request: o.ID, Verdict: verdict, Rule: rule})
		}
		in.Outcome(&o, false)
	}
	p := first(t, in)
	if p.Condition != "delayed" || p.Rule != "admission.delay" || p.Lost != 100 || p.Part != partAdmission || p.Means.Delays != 2 || p.Means.AdmissionMS != 100 {
		t.Errorf("%+v", p)
	}
}

// What no replica could serve is not a loss of admission.
func TestLimitsAreNamed(t *testing.T) {
	in := New(header(1))
	in.Metrics(&metrics.Raw{})
	for i := range int64(100) {
		o := served(fmt.Sprint(i), 0, 10*i, 0)
		if i%2 == 0 {
			o = stream.Outcome{ID: o.ID, State: stream.StateRejected, Reason: stream.ReasonTooLongForModel, ArrivalUS: o.ArrivalUS, EndedUS: o.ArrivalUS, AdmittedUS: never, RoutedUS: never, EnqueuedUS: never,
				ScheduledUS: never, FirstTokenUS: never, CompletedUS: never, Replica: stream.Nowhere, SLOClass: "fast", InputTokens: 9000, OutputTokens: 1}
		}
		in.Outcome(&o, false)
	}
	f := in.Find()
	if f.Loss.Blame[partLimits] != 50 || len(f.Patterns) == 0 || f.Patterns[0].Condition != "impossible" || f.Patterns[0].Component != "engine" {
		t.Errorf("%+v, %+v", f.Loss, f.Patterns)
	}
}

// A steady stream has no burst, also where the run has not lasted a minute.
func TestSteadyStreamsAreNoBursts(t *testing.T) {
	in := New(header(1))
	for i := range int64(2000) {
		o := served(fmt.Sprint(i), 0, 6*i, 0) // 167 a second, for 12 s
		in.Outcome(&o, false)
	}
	in.bursts()
	for i, r := range in.rows {
		if r.burst {
			t.Fatalf("request %d is in a burst", i)
		}
	}
}
