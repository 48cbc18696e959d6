package resample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// A sample that draws each block once has the numbers of metrics.Targeted: with classes that have each of
// the targets or none, requests that were not served, and calls that were not issued.
func TestTargetedEqualsMetrics(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	targets := map[string]stream.Targets{"a": {TTFTMS: 5, E2EMS: 9}, "b": {TPOTMS: 2}, "c": {}}
	var classes []stream.SLOClass
	for _, name := range []string{"a", "b", "c"} {
		classes = append(classes, stream.SLOClass{Name: name, Targets: targets[name]})
	}
	all, class, run := metrics.New(classes), []string{}, []*Request{}
	for i := range int64(300) {
		o := stream.Outcome{ID: fmt.Sprint(i), ArrivalUS: stream.Micros(i * 1000), State: stream.StateRejected,
			SLOClass: classes[random.IntN(3)].Name, AdmittedUS: stream.Never, ScheduledUS: stream.Never,
			FirstTokenUS: stream.Never, CompletedUS: stream.Never, InputTokens: 10, OutputTokens: random.Int64N(4)}
		if random.IntN(15) > 0 {
			o.State, o.ScheduledUS = stream.StateCompleted, o.ArrivalUS
			o.FirstTokenUS = o.ArrivalUS + stream.Micros(random.Int64N(9000))
			o.CompletedUS = o.FirstTokenUS + stream.Micros(random.Int64N(20_000))
		}
		all.Add(&o)
		q := NewRequest(&o, nil)
		if o.State == stream.StateRejected {
			q.NotIssued = int32(random.IntN(2))
			all.AddNotIssued(&stream.SessionOutcome{SLOClass: o.SLOClass, State: stream.StateBroken, Offered: 1,
				Calls: 1 + int64(q.NotIssued)})
		}
		class, run = append(class, o.SLOClass), append(run, &q)
	}
	all.ExtendTo(400_000)
	raw, next := all.Raw(), -1
	r := New(func(n int) int { next++; return next % n }, run).Run(0, raw)
	known := metrics.ByPath(raw)
	compared := 0
	for _, latency := range []string{"ttft", "tpot", "e2e"} {
		promised := func(i int32) bool { return targets[class[i]].Of(latency) > 0 }
		for path, values := range r.Targeted(latency, r.All(), true, promised) {
			want, ok := known[path]
			if got := values[0]; ok != !math.IsNaN(got) || ok && math.Abs(got-want) > 1e-9*want {
				t.Errorf("%s is %v, want %v (%v)", path, got, want, ok)
			}
			compared++
		}
	}
	if compared != 21 || known["targeted.ttft.p50"] == 0 || known["targeted.ttft.p99"] != 0 {
		t.Errorf("%d numbers compared; %v", compared, raw.Targeted.TTFT)
	}
}
