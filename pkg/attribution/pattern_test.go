package attribution

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// served is a request that is routed when it arrives, at ms, waits wait ms in the queue
// of a replica, and is done 1 ms later.
func served(id string, replica stream.Index, at, wait int64) stream.Outcome {
	t := stream.Micros(at * 1000)
	s := t + stream.Micros(wait*1000)
	o := stream.Outcome{ID: id, State: stream.StateCompleted, ArrivalUS: t, AdmittedUS: t, RoutedUS: t, EnqueuedUS: t, ScheduledUS: s, FirstTokenUS: s + 1000, CompletedUS: s + 1000, EndedUS: never,
		Deployment: "main", Replica: replica, SLOClass: "fast", Decision: "dec-" + id, InputTokens: 100, OutputTokens: 1}
	return o
}

// Twenty requests are sent to replica 0 in each of two ms, on signals that are 500 ms
// old and show no queue; one after the other is served, a ms each. So many are sent to
// replica 1 after each and wait for nothing.
func herd(free int64) *Analyzer {
	in := New(header(2))
	add := func(o stream.Outcome) {
		in.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID, Deployment: "main", Replica: o.Replica, Candidates: 2,
			Considered: []stream.Candidate{{Deployment: "main", Replica: o.Replica, QueueDepth: 0, Running: stream.Nowhere, Matched: stream.Nowhere, Cached: stream.Nowhere, AgeUS: 500_000}}})
		in.Outcome(&o, false)
	}
	for burst := range int64(2) {
		for i := range int64(20) {
			add(served(fmt.Sprintf("h%d-%02d", burst, i), 0, 1000*burst, i))
		}
		for i := range free {
			add(served(fmt.Sprintf("f%d-%02d", burst, i), 1, 1000*burst+40*i, 0))
		}
	}
	return in
}

// Of the twenty of a burst, the first is in a batch at once and meets its target. The
// others find all but that one before them, 0 to 18, and the other replica empty: with
// four or more the queue is longer. That are 2 x 15 of the 2 x 19 that miss theirs, and
// all that meet the condition miss. With 20 others each, 80 - 30 do not meet it, of which
// 8 miss. With 10 others, more than half of all miss. Then ms decide: those that meet it
// wait 5 to 19 ms, 12 in the mean, all of it above the target of 1 ms that their step of
// 1 ms takes; of the 60 - 30 others eight wait 1 to 4 ms, 20 together.
func TestLiftByHand(t *testing.T) {
	for _, c := range []struct {
		free, judged int64
		lift         float64
		byMS         bool
	}{{20, 80, (30.5 / 31) / (8.5 / 51), false}, {10, 60, 12 / (20. / 30), true}} {
		f := herd(c.free).Find()
		if l := f.Loss; l.Kind != LossMisses || l.Lost != 38 || l.Judged != c.judged || l.TTFT != 38 || l.Blame[partQueue] != 38 {
			t.Errorf("loss is %+v", l)
		}
		if len(f.Patterns) == 0 {
			t.Fatal("no pattern")
		}
		p := f.Patterns[0]
		if p.Condition != "stale_signal" || p.Policy != "weighted" || p.Lost != 30 || p.All != 30 || math.Abs(p.Lift-c.lift) > 1e-12 || p.ByMS != c.byMS || math.Abs(p.Loss-30./38) > 1e-12 {
			t.Errorf("pattern is %+v, want 30 of 30 with lift %v", p, c.lift)
		}
		herded(t, f)
	}
}

// herded checks what is known of the losing ones.
func herded(t *testing.T, f *Findings) {
	t.Helper()
	p := f.Patterns[0]
	// Queues from 4 to 18, all shown as 0, all signals 500 ms old.
	if m := p.Means; m.Queue != 11 || m.Shortest != 0 || m.AgeMS != 500 || m.SeenQueue == nil || *m.SeenQueue != 0 {
		t.Errorf("means are %+v", m)
	}
	if len(f.Worst) == 0 || f.Worst[0].Request != "h0-19" || f.Worst[0].Queue != 18 || f.Worst[0].OverMS != 19 {
		t.Errorf("the worst is %+v", f.Worst)
	}
}

// Fewer than ten requests that lost are looked into by nobody.
func TestLittleLossHasNoPattern(t *testing.T) {
	in := New(header(2))
	for i := range int64(100) {
		o := served(fmt.Sprint(i), 0, 10*i, 0)
		if i < MinLost-1 {
			o.FirstTokenUS += 9000
			o.CompletedUS += 9000
		}
		in.Outcome(&o, false)
	}
	if f := in.Find(); !f.Loss.Little() || len(f.Patterns) != 0 {
		t.Errorf("%d patterns for %d that lost", len(f.Patterns), f.Loss.Lost)
	}
}

// Where nothing is promised, what is late is lost: more than five times the median.
func TestLateWithoutTargets(t *testing.T) {
	in := New(header(2))
	for i := range int64(100) {
		wait := int64(0)
		if i%5 == 0 {
			wait = 5 + i%2 // with its step 6 or 7 ms: 1 or 2 above 5 x 1 ms
		}
		o := served(fmt.Sprint(i), 0, 10*i, wait)
		o.SLOClass = "slow" // that was promised nothing
		in.Outcome(&o, false)
	}
	if l := in.Find().Loss; l.Kind != LossLate || l.Lost != 20 || l.MedianTTFTMS != 1 || l.OverMS != 30 {
		t.Errorf("loss is %+v", l)
	}
}

// Everything that a pattern or a tally may be called has a component and words.
func TestConditionsAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Conditions {
		if _, err := Components.Get("component", c.Value.Component); err != nil || c.Doc == "" || seen[c.Name] || strings.ToLower(c.Name) != c.Name {
			t.Errorf("condition %q of %q: %v", c.Name, c.Value.Component, err)
		}
		seen[c.Name] = true
	}
}
