package attribution

import (
	"fmt"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// header is that of a run on one deployment with that many replicas.
func header(replicas int) *stream.Header {
	return &stream.Header{Stream: stream.StreamRun,
		SLOClasses: []stream.SLOClass{{Name: "fast", Priority: 100, Targets: stream.Targets{TTFTMS: 1}},
			{Name: "slow", Priority: 10}},
		Run: &stream.RunHeader{Config: map[string]any{
			"deployments": []any{map[string]any{"id": "main", "model": "m", "replicas": replicas,
				"engine": map[string]any{"block_size": 16}}},
			"policies": map[string]any{"routing": map[string]any{"type": "weighted"},
				"admission": map[string]any{"type": "always-admit"}}}}}
}

// drawOutcome is a request that passes through some of its stages, each after the one before it,
// often at the same instant.
func drawOutcome(t *rapid.T, i, replicas int) stream.Outcome {
	gap := func(what string) stream.Micros { return stream.Micros(rapid.IntRange(0, 4).Draw(t, what)) }
	o := stream.Outcome{PrefillReplica: stream.NoIndex, ID: fmt.Sprint("r", i), ArrivalUS: gap("arrival") * 3,
		AdmittedUS: never, RoutedUS: never,
		EnqueuedUS: never, ScheduledUS: never, FirstTokenUS: never, CompletedUS: never, EndedUS: never,
		Replica: stream.NoIndex, State: stream.StateCompleted,
		Tenant:       rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "tenant"),
		SLOClass:     rapid.SampledFrom([]string{"fast", "slow"}).Draw(t, "class"),
		InputTokens:  rapid.Int64Range(1, 5000).Draw(t, "input"),
		OutputTokens: rapid.Int64Range(1, 50).Draw(t, "output")}
	o.CachedTokens = rapid.Int64Range(0, o.InputTokens).Draw(t, "cached")
	o.ExpectedCachedTokens = rapid.Int64Range(0, o.InputTokens).Draw(t, "expected")
	at := o.ArrivalUS
	stages := rapid.IntRange(0, 6).Draw(t, "stages")
	for k, field := range []*stream.Micros{&o.AdmittedUS, &o.RoutedUS, &o.EnqueuedUS, &o.ScheduledUS, &o.FirstTokenUS,
		&o.CompletedUS} {
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

// drawRun is an Analyzer with the outcomes of some requests.
func drawRun(t *rapid.T) *Analyzer {
	const replicas = 3
	a := New(header(replicas))
	for i := range rapid.IntRange(1, 25).Draw(t, "requests") {
		o := drawOutcome(t, i, replicas)
		a.Outcome(&o, false)
	}
	return a
}

// The parts of a request's time add up to it, and none is negative.
func TestPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, r := range drawRun(t).requests.all() {
			sum := int64(0)
			for p, us := range r.split() {
				if us < 0 {
					t.Fatalf("%s is %d", Part(p), us)
				}
				sum += us
			}
			if sum != int64(r.ended()-r.arrival()) {
				t.Fatalf("%+v: parts are %v, together %d, not %d", r.times, r.split(), sum,
					r.ended()-r.arrival())
			}
		}
	})
}

// timed returns a request with these times, which may be never.
func timed(arrival, admitted, routed, enqueued, scheduled, firstToken, ended stream.Micros) *request {
	r := &request{incidents: &noIncidents}
	r.setTimes(&stream.Outcome{ArrivalUS: arrival, AdmittedUS: admitted, RoutedUS: routed, EnqueuedUS: enqueued,
		ScheduledUS: scheduled, FirstTokenUS: firstToken, EndedUS: ended, CompletedUS: never})
	return r
}

// Time that a recording does not divide counts in the next part whose end it has.
func TestPartsOfARecording(t *testing.T) {
	preempted := timed(100, 100, 100, 110, 200, 300, 900)
	preempted.setIncidents(incidents{preemptedUS: 650})
	for _, c := range []struct {
		of   *request
		want partTimes
	}{
		{timed(100, never, never, never, never, 400, 900), partTimes{PartPrefill: 300, PartDecode: 500}},
		{timed(100, never, never, never, 250, 400, 900),
			partTimes{PartQueue: 150, PartPrefill: 150, PartDecode: 500}},
		{timed(100, 120, 120, 130, never, never, 900),
			partTimes{PartAdmission: 20, PartFrontend: 10, PartQueue: 770}},
		{timed(100, never, never, never, never, never, 900), partTimes{PartAdmission: 800}},
		{preempted,
			partTimes{PartFrontend: 10, PartQueue: 90, PartPrefill: 50, PartPreempted: 650}},
		{timed(100, 100, 100, 110, 200, 300, never), partTimes{}},
	} {
		if got := c.of.split(); got != c.want {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}

// A transfer is apart from the waits before and after it. Without one the request waits until the replica that decodes
// computes its prompt; where only its end is known it begins with the end of the prefill. One that begins before the
// prefill has ended counts from there.
func TestPartsOfATransfer(t *testing.T) {
	for _, c := range []struct {
		started, transferred, scheduled stream.Micros
		wait, transfer, decode          int64
		endedIn                         Part
	}{
		{450, 600, 700, 170, 150, 200, PartDecode},
		{never, 600, 700, 100, 220, 200, PartDecode},
		{never, never, 700, 320, 0, 200, PartDecode},
		{450, never, 700, 320, 0, 200, PartDecode},
		{300, 390, 700, 310, 10, 200, PartDecode},
		{never, never, never, 520, 0, 0, PartTransferWait},
		{450, never, never, 70, 450, 0, PartTransfer},
		{450, 600, never, 370, 150, 0, PartTransferWait},
	} {
		x := timed(100, 110, 120, 400, c.scheduled, never, 900)
		x.setIncidents(incidents{prefill: &prefillTimes{enqueued: 130, scheduled: 200, computed: 380,
			started: c.started, transferred: c.transferred}})
		want := partTimes{PartAdmission: 10, PartFlow: 10, PartFrontend: 10, PartQueue: 70, PartPrefill: 180,
			PartTransferWait: c.wait, PartTransfer: c.transfer, PartDecode: c.decode}
		if got := x.split(); got != want || x.endedIn() != c.endedIn {
			t.Errorf("%+v: %v in %v, want %v", c, got, x.endedIn(), want)
		}
	}
}

// The queue at each decision equals a plain count over all requests: those sent to the replica
// earlier, or at the same instant and before it in the stream, that have neither entered a batch
// nor ended by then.
func TestQueuesEqualPlainCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawRun(t)
		a.derive()
		a.countQueues()
		for i, r := range a.requests.all() {
			c := &r.contention
			if r.routed() == never {
				if c.queue != -1 || c.shortest != -1 {
					t.Fatalf("request %d was not routed and has a queue of %d", i, c.queue)
				}
				continue
			}
			var waiting [3]int32
			for k, o := range a.requests.all() {
				left := o.scheduled()
				if left == never {
					left = o.ended()
				}
				before := o.routed() < r.routed() || o.routed() == r.routed() && k < i
				if o.routed() != never && before && left > r.routed() {
					waiting[o.replica]++
				}
			}
			want := min(waiting[0], waiting[1], waiting[2])
			if c.queue != waiting[r.replica] || c.shortest != want || waiting[c.shortestAt] != want {
				t.Fatalf("request %d: queue %d, shortest %d at %d; counted %v", i, c.queue, c.shortest, c.shortestAt,
					waiting)
			}
		}
	})
}

// The work ahead of a request equals a plain sum over the requests that entered a batch of its
// replica from its arrival there until its first token.
func TestWorkAheadEqualsPlainSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawRun(t)
		heavy := a.names.number("a")
		a.stats.heavyTenant = heavy
		a.derive()
		a.computeStats()
		a.measureRecomputed()
		a.measureReplicas()
		for i, r := range a.requests.all() {
			var want tokensAhead
			interfering, until := int64(0), r.firstToken()
			if until == never {
				until = r.ended()
			}
			for k, o := range a.requests.all() {
				at := o.scheduled()
				if o.replica != r.replica || at == never || r.enqueued() == never {
					continue
				}
				if r.firstToken() != never && at >= r.firstToken() && at < r.ended() {
					interfering += int64(o.tokens.input - o.tokens.cached)
				}
				if k == i || at < r.enqueued() || at >= until {
					continue
				}
				want.total += o.work()
				want.recomputed += o.contention.recomputed
				if a.priority(o) < a.priority(r) {
					want.lowerPriority += o.work()
				}
				if o.labels.tenant == heavy {
					want.heavyTenant += o.work()
				}
			}
			if got := r.contention; got.interfering != interfering || got.ahead != want {
				t.Fatalf("request %d %+v: ahead %+v, interfering %d; added up %+v, %d", i, r.times, got.ahead,
					got.interfering, want, interfering)
			}
		}
	})
}

// A burst is at least ten requests in a second, at more than three times the rate of the minute.
func TestBursts(t *testing.T) {
	a := New(header(1))
	for i := range 90 {
		o := unroutedRequest(fmt.Sprint(i), stream.Micros(i)*600_000)
		if i >= 78 { // twelve at once
			o.ArrivalUS = 60_000_000
		}
		a.Outcome(&o, false)
	}
	a.derive()
	a.markBursts()
	for i, r := range a.requests.all() {
		// The last second holds 1 to 12 of them, the last minute another 77, those after the first.
		// The one before them came at 46.2 s: the last second holds the twelve alone.
		if want := i >= 78+9; r.contention.inBurst != want {
			t.Errorf("request %d: in a burst is %t, want %t", i, r.contention.inBurst, want)
		}
	}
}

// unroutedRequest is a request that admission rejected on arrival.
func unroutedRequest(id string, at stream.Micros) stream.Outcome {
	return stream.Outcome{PrefillReplica: stream.NoIndex, ID: id, ArrivalUS: at, State: stream.StateRejected,
		EndedUS: at, AdmittedUS: never,
		RoutedUS: never, EnqueuedUS: never, ScheduledUS: never, FirstTokenUS: never, CompletedUS: never,
		Replica: stream.NoIndex, InputTokens: 1, OutputTokens: 1}
}
