package attribution

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// served is a request that arrives and is routed at atMS, waits waitMS in the queue of a replica, and
// completes 1 ms later.
func served(id string, replica stream.Index, atMS, waitMS int64) stream.Outcome {
	t := stream.Micros(atMS * 1000)
	s := t + stream.Micros(waitMS*1000)
	return stream.Outcome{PrefillReplica: stream.NoIndex, ID: id, State: stream.StateCompleted, ArrivalUS: t,
		AdmittedUS: t, RoutedUS: t, EnqueuedUS: t,
		ScheduledUS: s, FirstTokenUS: s + 1000, CompletedUS: s + 1000, EndedUS: never, Deployment: "main",
		Replica: replica, SLOClass: "fast", Decision: "dec-" + id, InputTokens: 100, OutputTokens: 1}
}

// staleRun sends 20 requests to replica 0 at each of two instants, on signals that are 500 ms old and
// show no queue; they are served one after another, 1 ms each. After each burst it sends `free`
// requests to replica 1, which do not wait.
func staleRun(free int64) *Analyzer {
	a := New(header(2))
	add := func(o stream.Outcome) {
		a.Decision(&stream.Decision{ID: o.Decision, Stage: stream.StageRouting, AtUS: o.RoutedUS, Request: o.ID,
			Deployment: "main", Replica: o.Replica, Candidates: 2,
			Considered: []stream.Candidate{{Deployment: "main", Replica: o.Replica, QueueDepth: 0,
				Running: stream.NoIndex, Matched: stream.NoIndex, Cached: stream.NoIndex, AgeUS: 500_000}}})
		a.Outcome(&o, false)
	}
	for burst := range int64(2) {
		for i := range int64(20) {
			add(served(fmt.Sprintf("h%d-%02d", burst, i), 0, 1000*burst, i))
		}
		for i := range free {
			add(served(fmt.Sprintf("f%d-%02d", burst, i), 1, 1000*burst+40*i, 0))
		}
	}
	return a
}

// Of the 20 requests of a burst the first enters a batch at once and meets its target. The others
// find all but that one in the queue, 0 to 18, and the other replica empty: a queue of 4 or more is
// much longer. So 2 x 15 of the 2 x 19 misses match the condition, and all that match miss. With 20
// free requests each, 80 - 30 do not match, of which 8 miss. With 10, more than half of all miss,
// and ms decide: those that match wait 5 to 19 ms, 12 on average, all above the target of 1 ms that
// their step of 1 ms uses up; of the 60 - 30 others eight wait 1 to 4 ms, 20 in total.
func TestLiftByHand(t *testing.T) {
	for _, c := range []struct {
		free, judged int64
		lift         float64
		byMS         bool
	}{{20, 80, (30.5 / 31) / (8.5 / 51), false}, {10, 60, 12 / (20. / 30), true}} {
		f := staleRun(c.free).Find()
		l := f.Loss
		if l.Kind != LossMisses || l.Lost != 38 || l.Judged != c.judged || l.Missed.TTFT != 38 ||
			l.Dominant[PartQueue] != 38 {
			t.Errorf("loss is %+v", l)
		}
		if len(f.Patterns) == 0 {
			t.Fatal("no pattern")
		}
		p := f.Patterns[0]
		if p.Condition.Name != "stale_signal" || p.Policy != "weighted" || p.Lost != 30 || p.All != 30 ||
			math.Abs(p.Lift-c.lift) > 1e-12 || p.ByMS != c.byMS || math.Abs(p.Loss-30./38) > 1e-12 {
			t.Errorf("pattern is %+v, want 30 of 30 with lift %v", p, c.lift)
		}
		checkStaleMeans(t, f)
	}
}

func checkStaleMeans(t *testing.T, f *Findings) {
	t.Helper()
	// Queues from 4 to 18, all shown as 0, all signals 500 ms old.
	want := "sent to a queue of 11.0 requests, shortest 0.0; signals 500 ms old showed 0.0 (means)"
	if got := f.Patterns[0].Cause; got != want {
		t.Errorf("the cause is %q, want %q", got, want)
	}
	if len(f.Worst) == 0 || f.Worst[0].Request != "h0-19" || f.Worst[0].Queue.Own != 18 ||
		f.Worst[0].Outcome.ExcessMS != 19 {
		t.Errorf("the worst is %+v", f.Worst)
	}
}

// Fewer than ten losing requests have no patterns.
func TestLittleLossHasNoPattern(t *testing.T) {
	a := New(header(2))
	for i := range int64(100) {
		o := served(fmt.Sprint(i), 0, 10*i, 0)
		if i < MinLost-1 {
			o.FirstTokenUS += 9000
			o.CompletedUS += 9000
		}
		a.Outcome(&o, false)
	}
	if f := a.Find(); !f.Loss.TooSmall() || len(f.Patterns) != 0 {
		t.Errorf("%d patterns for %d losing requests", len(f.Patterns), f.Loss.Lost)
	}
}

// Without targets, requests with a TTFT above five times the median are lost.
func TestLateRequestsWithoutTargets(t *testing.T) {
	a := New(header(2))
	for i := range int64(100) {
		wait := int64(0)
		if i%5 == 0 {
			wait = 5 + i%2 // with its step 6 or 7 ms: 1 or 2 above 5 x 1 ms
		}
		o := served(fmt.Sprint(i), 0, 10*i, wait)
		o.SLOClass = "slow" // has no targets
		a.Outcome(&o, false)
	}
	if l := a.Find().Loss; l.Kind != LossLate || l.Lost != 20 || l.MedianTTFTMS != 1 || l.ExcessMS != 30 {
		t.Errorf("loss is %+v", l)
	}
}

// Losses that no pattern explains are shown with the worst of each dominant part, the worst first.
func TestWorstUnexplainedComeFirst(t *testing.T) {
	a := New(header(1))
	for i := range int64(3) { // too few for a pattern: 1 ms, 9 ms and 5 ms above the target
		o := served(fmt.Sprint(i), 0, 100*i, 0)
		excess := []stream.Micros{1000, 9000, 5000}[i]
		switch i {
		case 0: // in the queue
			o.ScheduledUS += excess
		case 1: // in dispatch
			o.EnqueuedUS += excess
			o.ScheduledUS += excess
		}
		o.FirstTokenUS += excess
		o.CompletedUS += excess
		a.Outcome(&o, false)
	}
	var order []string
	for _, e := range a.Find().Worst {
		order = append(order, e.Request)
	}
	if got := strings.Join(order, " "); got != "1 2 0" {
		t.Errorf("order is %s, want 1 2 0", got)
	}
}

// Every condition is complete: texts need no table of their own.
func TestConditionsAreComplete(t *testing.T) {
	plain, seen := regexp.MustCompile(`^[ -~]+$`), map[string]bool{}
	a := New(header(1))
	o := served("a", 0, 0, 0)
	a.Outcome(&o, false)
	a.Find()
	for _, c := range Conditions() {
		if !regexp.MustCompile(`^[a-z_]+$`).MatchString(c.Name) || seen[c.Name] {
			t.Errorf("condition %q: the name is bad or not unique", c.Name)
		}
		seen[c.Name] = true
		if c.Component == nil || c.cause == nil || c.holds == nil || c.parts == 0 {
			t.Errorf("condition %s lacks a component, a cause, parts or a predicate", c.Name)
			continue
		}
		if _, err := Components().Get("component", c.Component.Name); err != nil {
			t.Errorf("condition %s: %v", c.Name, err)
		}
		for what, text := range map[string]string{"doc": c.Doc, "hint": c.Hint,
			"cause": c.cause(&Pattern{run: a, Condition: c, Value: "x", losing: a.requests.list()})} {
			if !plain.MatchString(text) || strings.HasSuffix(text, ".") {
				t.Errorf("the %s of %s is %q", what, c.Name, text)
			}
		}
	}
}

// The lists are copies: no caller can change the tables.
func TestTablesAreCopies(t *testing.T) {
	Parts()[0].Name = "changed"
	Components()[0].Name = "changed"
	Conditions()[0] = nil
	if Parts()[0].Name != "admission" || Components()[0].Name != "routing" || Conditions()[0] == nil {
		t.Error("a table was changed through its list")
	}
}
