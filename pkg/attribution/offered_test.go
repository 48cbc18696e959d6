package attribution

import (
	"fmt"
	"testing"

	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// header is that of a run on so many replicas.
func header(replicas int) *stream.Header {
	return &stream.Header{Stream: stream.StreamRun, SLOClasses: []stream.SLOClass{{Name: "fast", Priority: 100, Targets: stream.Targets{TTFTMS: 1}}, {Name: "slow", Priority: 10}},
		Run: &stream.RunHeader{Config: map[string]any{
			"deployments": []any{map[string]any{"id": "main", "model": "m", "replicas": replicas, "engine": map[string]any{"block_size": 16}}},
			"policies":    map[string]any{"routing": map[string]any{"type": "weighted"}, "admission": map[string]any{"type": "always-admit"}}}}}
}

// drawOutcome is a request that goes through some of its stages, each after the one
// before, often at the same instant.
func drawOutcome(t *rapid.T, i, replicas int) stream.Outcome {
	gap := func(what string) stream.Micros { return stream.Micros(rapid.IntRange(0, 4).Draw(t, what)) }
	o := stream.Outcome{ID: fmt.Sprint("r", i), ArrivalUS: gap("arrival") * 3, AdmittedUS: never, RoutedUS: never, EnqueuedUS: never, ScheduledUS: never,
		FirstTokenUS: never, CompletedUS: never, EndedUS: never, Replica: stream.Nowhere, State: stream.StateCompleted,
		Tenant: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "tenant"), SLOClass: rapid.SampledFrom([]string{"fast", "slow"}).Draw(t, "class"),
		InputTokens: rapid.Int64Range(1, 5000).Draw(t, "input"), OutputTokens: rapid.Int64Range(1, 50).Draw(t, "output")}
	o.CachedTokens = rapid.Int64Range(0, o.InputTokens).Draw(t, "cached")
	o.ExpectedCachedTokens = rapid.Int64Range(0, o.InputTokens).Draw(t, "expected")
	at := o.ArrivalUS
	stages := rapid.IntRange(0, 6).Draw(t, "stages")
	for k, field := range []*stream.Micros{&o.AdmittedUS, &o.RoutedUS, &o.EnqueuedUS, &o.ScheduledUS, &o.FirstTokenUS, &o.CompletedUS} {
		if k >= stages {
			o.State = stream.StateTimedOut
			o.EndedUS = at + gap("ended")
			break
		}
		at += gap("gap")
		*field = at
	}
	if o.RoutedUS != never {
		o.Deployment, o.Replica = "main", stream.Index(rapid.IntRange(0, replicas-1).Draw(t, "replica"))
	}
	if o.FirstTokenUS != never {
		o.PreemptedUS = rapid.Int64Range(0, int64(at-o.ScheduledUS)).Draw(t, "preempted")
	}
	return o
}

func gather(t *rapid.T) *Analyzer {
	const replicas = 3
	in := New(header(replicas))
	for i := range rapid.IntRange(1, 25).Draw(t, "requests") {
		o := drawOutcome(t, i, replicas)
		in.Outcome(&o, false)
	}
	return in
}

// The parts of a request's time add up to it, and none is negative.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range gather(t).rows {
			sum := int64(0)
			for p, x := range r.split() {
				if x < 0 {
					t.Fatalf("%s is %d", Parts[p].Name, x)
				}
				sum += x
			}
			if sum != int64(r.ended-r.arrival) {
				t.Fatalf("%+v: parts are %v, together %d, not %d", r.times, r.split(), sum, r.ended-r.arrival)
			}
		}
	})
}

// What a recording does not say is counted in the next part that it says the end of.
func TestPartsOfARecording(t *testing.T) {
	for _, c := range []struct {
		of   times
		want Split
	}{
		{times{100, never, never, never, never, 400, 900, 0}, Split{partPrefill: 300, partDecode: 500}},
		{times{100, never, never, never, 250, 400, 900, 0}, Split{partQueue: 150, partPrefill: 150, partDecode: 500}},
		{times{100, 120, 120, 130, never, never, 900, 0}, Split{partAdmission: 20, partDispatch: 10, partQueue: 770}},
		{times{100, never, never, never, never, never, 900, 0}, Split{partAdmission: 800}},
		{times{100, 100, 100, 110, 200, 300, 900, 650}, Split{partDispatch: 10, partQueue: 90, partPrefill: 50, partPreempted: 650}},
		{times{100, 100, 100, 110, 200, 300, never, 0}, Split{}},
	} {
		if got := c.of.split(); got != c.want {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}

// Queues are what counting all requests for each decision says: those that were sent
// there before it, earlier or at the same instant and before it in the stream, and that
// have neither entered a batch nor ended by then.
func TestQueuesAreThoseOfPlainCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := gather(t)
		in.queues()
		for i := range in.rows {
			r := in.rows[i]
			if r.routed == never {
				if r.queue != -1 || r.shortest != -1 {
					t.Fatalf("row %d was not routed and saw a queue of %d", i, r.queue)
				}
				continue
			}
			var waiting [3]int32
			for k := range in.rows {
				o := in.rows[k]
				left := o.scheduled
				if left == never {
					left = o.ended
				}
				before := o.routed < r.routed || o.routed == r.routed && k < i
				if o.routed != never && before && left > r.routed {
					waiting[o.replica]++
				}
			}
			if want := min(waiting[0], waiting[1], waiting[2]); r.queue != waiting[r.replica] || r.shortest != want || waiting[r.freest] != want {
				t.Fatalf("row %d: queue %d, shortest %d at %d; counted %v", i, r.queue, r.shortest, r.freest, waiting)
			}
		}
	})
}

// What a request waited behind is what adding up all others says: the work of those
// that entered a batch of its replica from when it came there until its first token.
func TestWorkAheadIsThatOfPlainAdding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := gather(t)
		in.repeated()
		heavy := in.names.of("a")
		in.behind(heavy)
		for i := range in.rows {
			r := in.rows[i]
			until := r.first
			if until == never {
				until = r.ended
			}
			var all, lower, theirs, again, beside int64
			for k := range in.rows {
				o := in.rows[k]
				if r.first != never && r.enqueued != never && o.replica == r.replica && o.scheduled != never && o.scheduled >= r.first && o.scheduled < r.ended {
					beside += int64(o.input - o.cached)
				}
				if k == i || r.enqueued == never || o.replica != r.replica || o.scheduled == never || o.scheduled < r.enqueued || o.scheduled >= until {
					continue
				}
				all += o.work()
				again += o.again
				if in.priority(o) < in.priority(r) {
					lower += o.work()
				}
				if o.tenant == heavy {
					theirs += o.work()
				}
			}
			if r.beside != beside {
				t.Fatalf("row %d %+v: beside %d, added up %d", i, r.times, r.beside, beside)
			}
			if r.ahead != all || r.aheadLower != lower || r.aheadHeavy != theirs || r.aheadAgain != again {
				t.Fatalf("row %d %+v: ahead %d, lower %d, heavy %d, again %d; added up %d, %d, %d, %d", i, r.times, r.ahead, r.aheadLower, r.aheadHeavy, r.aheadAgain, all, lower, theirs, again)
			}
		}
	})
}

// A burst is ten in a second, and more than three times the rate of the minute.
func TestBursts(t *testing.T) {
	in := New(header(1))
	for i := range 90 {
		o := stream.Outcome{ID: fmt.Sprint(i), ArrivalUS: stream.Micros(i) * 600_000, State: stream.StateRejected, EndedUS: stream.Micros(i) * 600_000,
			AdmittedUS: never, RoutedUS: never, EnqueuedUS: never, ScheduledUS: never, FirstTokenUS: never, CompletedUS: never, Replica: stream.Nowhere, InputTokens: 1, OutputTokens: 1}
		if i >= 78 { // twelve at once
			o.ArrivalUS = 60_000_000
		}
		in.Outcome(&o, false)
	}
	in.bursts()
	for i, r := range in.rows {
		// The last second holds 1 to 12 of them, the last minute 77 before, after the first.
		// One came at 46.2 s, so that the last second is of the twelve alone.
		if want := i >= 78+9; r.burst != want {
			t.Errorf("request %d: burst is %t, want %t", i, r.burst, want)
		}
	}
}
