package attribution

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestMeasuringLaterIsTheSame: a run that lost hardly anything has the same findings, and the same of what is asked for
// later, as if all was measured at once: with and without targets, where steps take longer with more sequences, and
// with more replicas, requests that fail, and excluded ones; with many times at the same instant, and where some
// requests lack times or never entered a batch.
func TestMeasuringLaterIsTheSame(t *testing.T) {
	same := []cmp.Option{cmpopts.EquateNaNs(), cmpopts.IgnoreFields(Findings{}, "Conditions"),
		cmpopts.IgnoreUnexported(ReplicaRow{}, GroupRow{}),
		cmp.Transformer("name", func(c *Condition) string { return c.Name })}
	late := 0
	for seed := range uint64(24) {
		var runs [2]*Analyzer
		var findings [2]*Findings
		for k := range runs {
			h := header(1 + int(seed%5))
			if seed%2 == 1 {
				h.SLOClasses[0].Targets = stream.Targets{}
			}
			d := h.Run.Config.(map[string]any)["deployments"].([]any)[0].(map[string]any)
			d["latency"] = map[string]any{"model": "linear", "alpha_us": []any{0, 0, 30, 40 * int(seed/2%2)},
				"beta_us": []any{500, 2, 10}}
			runs[k] = New(h)
			if k == 1 {
				runs[k].MeasureAll()
			}
			feed(runs[k], seed, 1+seed%5)
			findings[k] = runs[k].Find()
		}
		if a, b := findings[0].Loss, findings[1].Loss; !a.TooSmall() || !runs[0].measuresLost || runs[1].measuresLost {
			t.Fatalf("seed %d: %+v, %+v", seed, a, b)
		} else if a.Lost > 0 {
			late++
		}
		compare := func(what string, a, b any) {
			t.Helper()
			if diff := cmp.Diff(a, b, same...); diff != "" {
				t.Errorf("seed %d: %s later and at once (+):\n%s", seed, what, diff)
			}
		}
		compare("findings", findings[0], findings[1])
		if seed%3 == 0 {
			compare("samples", runs[0].Sample(30), runs[1].Sample(30))
		}
		compare("conditions", findings[0].Conditions(), findings[1].Conditions())
		compare("a window", runs[0].Window(findings[0], 2e6, 4e6), runs[1].Window(findings[1], 2e6, 4e6))
		compare("findings after it", findings[0], findings[1])
	}
	if late < 6 || late == 24 {
		t.Errorf("%d of 24 runs lost something", late)
	}
}

// feed adds 1,500 requests to a run with some replicas, of which up to 9 are late or fail.
func feed(a *Analyzer, seed, replicas uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	at := 0.0
	for i := range 1500 {
		at += random.ExpFloat64() * 5
		n := random.IntN(int(replicas))
		o := served(fmt.Sprint("r", i), stream.Index(n), int64(at), 0)
		o.ScheduledUS = o.EnqueuedUS + stream.Micros(random.IntN(400))
		if seed%3 == 1 {
			o.ScheduledUS = o.EnqueuedUS + stream.Micros(500*random.IntN(2))
		}
		o.FirstTokenUS = o.ScheduledUS + 500
		o.InputTokens, o.OutputTokens = 50+random.Int64N(8000), 1+random.Int64N(60)
		o.GeneratedTokens = o.OutputTokens
		o.CompletedUS = o.FirstTokenUS + stream.Micros(o.OutputTokens*(600+random.Int64N(300)))
		o.CachedTokens, o.Tenant = random.Int64N(50), fmt.Sprint("t", random.IntN(3))
		if random.IntN(4) == 0 {
			o.SLOClass = "slow"
		}
		if lost := int(seed % 8); i%160 == 7 && i/160 < lost {
			o.FirstTokenUS += 40_000
			o.CompletedUS += 40_000
			if i/160 == 3 && o.SLOClass == "fast" {
				o.State, o.EndedUS, o.CompletedUS = stream.StateFailed, o.CompletedUS, never
			}
		}
		excluded := i%97 == 5
		switch {
		case excluded && i%2 == 0: // it gave up in the queue
			o.State, o.EndedUS, o.CompletedUS = stream.StateTimedOut, o.EnqueuedUS+900, never
			o.ScheduledUS, o.FirstTokenUS = never, never
		case seed%4 == 2 && n == 0 && i%50 == 0: // of a recording
			o.EnqueuedUS = never
			if i%100 == 0 {
				o.ScheduledUS = never
			}
		case seed%4 == 3 && n == 1 && i%50 == 0:
			o.ScheduledUS = never
		}
		a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID,
			Deployment: "main", Replica: o.Replica, Candidates: int64(replicas),
			Considered: []stream.Candidate{{Deployment: "main", Replica: o.Replica, QueueDepth: 1,
				Running: stream.NoIndex, Matched: stream.NoIndex, Cached: stream.NoIndex, AgeUS: random.Int64N(9000)}}})
		a.Outcome(&o, excluded)
	}
}
