package engine

import (
	"errors"
	"math"
	"slices"
	"testing"

	"blis/pkg/des"
	"blis/pkg/internal/reference"
	"blis/pkg/kv"
	"blis/pkg/latency"

	"github.com/google/go-cmp/cmp"
)

// TestReference plays random requests on one engine and on the plain reference:
// all times, counts, gaps and sums of batches must be the same. What pkg/sim
// compares of whole clusters is compared here of victims chosen by their progress
// too.
func TestReference(t *testing.T) {
	cases := uint64(4000)
	if testing.Short() {
		cases = 300
	}
	counts, stuck := map[string]int{}, 0
	for seed := range cases {
		c, requests := reference.Random(seed)
		c.Replicas, c.Routing, c.Scorers, c.SnapshotUS = 1, "round-robin", nil, 0
		refused := reference.Run(c, requests)
		if seed%3 == 0 {
			c.Victim = victims[seed/3%uint64(len(victims))]
		}
		p := newPlay(t, c, requests, refused)
		if end, ok := p.run(); !ok {
			// Sequences that throw each other out for ever, which the engine notices
			// and the reference does not: up to then they must agree.
			c.HorizonUS = end
			stuck++
		}
		want := reference.Run(c, requests)
		if diff := cmp.Diff(seenOf(want, requests), p.seen); diff != "" {
			t.Fatalf("seed %d: of requests the reference (-) and the engine (+) differ:\n%+v\n%s", seed, c, diff)
		}
		if diff := cmp.Diff(want.Steps[0], p.steps); diff != "" {
			t.Fatalf("seed %d: of steps the reference (-) and the engine (+) differ:\n%+v\n%s", seed, c, diff)
		}
		for name, n := range map[string]int{"preempted": int(p.engine.Stats().Preemptions), "undone": want.Undone, "yielded": want.Yielded, "retried": want.Retries} {
			if n > 0 && c.Victim != nil {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases with victims by progress: %v, and %d are stuck", (cases+2)/3, counts, stuck)
	for _, name := range []string{"preempted", "undone", "yielded", "retried"} {
		if counts[name] < int(cases)/200 {
			t.Errorf("%s in %d cases with victims by progress, want more", name, counts[name])
		}
	}
}

// victims are by what a policy may look at: each count, and all of them so mixed
// that any error in one is seen.
var victims = []func(q reference.Request, generated, computed, blocks int) float64{
	func(_ reference.Request, generated, _, _ int) float64 { return float64(generated) },
	func(_ reference.Request, generated, _, _ int) float64 { return -float64(generated) },
	func(_ reference.Request, _, computed, _ int) float64 { return -float64(computed) },
	func(_ reference.Request, _, _, blocks int) float64 { return float64(blocks) },
	func(q reference.Request, generated, computed, blocks int) float64 {
		return float64((31*generated + 17*computed + 7*blocks + 3*q.Input) % 11)
	},
}

// seen is what both have of a request. A request that is unfinished when time is
// up has no gaps.
type seen struct {
	ID                             string
	State                          string
	Scheduled, First, Done         int64
	Generated, Cached, Preemptions int
	Gaps                           [][2]int64
}

func seenOf(r reference.Result, requests []reference.Request) []seen {
	var all []seen
	for i, o := range r.Outcomes {
		s := seen{ID: o.ID, State: o.State, Scheduled: o.ScheduledUS, First: reference.Never, Done: reference.Never,
			Generated: o.Generated, Cached: o.Cached, Preemptions: o.Preemptions}
		if len(o.TokensUS) > 0 {
			s.First = o.TokensUS[0]
		}
		if o.Generated == requests[i].Output {
			s.Done = o.TokensUS[o.Generated-1]
		}
		var g Gaps
		for k := 1; k < len(o.TokensUS); k++ {
			g.add(o.SeenUS[k]-o.SeenUS[k-1], 1, true)
		}
		switch s.Gaps = g.List; o.State {
		case reference.Unfinished:
			s.Generated, s.Gaps = 0, nil
		case reference.BeyondHorizon: // or it would be, if that is where a run is stuck
			s.State = reference.Unfinished
		}
		all = append(all, s)
	}
	return all
}

// play is one engine and the requests on their way to it. Which of them get no
// further than the router is the reference's to say.
type play struct {
	*testing.T
	config   reference.Config
	requests []reference.Request
	engine   *Engine
	tree     *kv.Tree
	paths    []kv.Path
	enqueued []des.Time // or rejected; Never if they do not arrive
	rejected []bool
	numbers  []int32 // the engine's, none before they are enqueued and after they left
	seen     []seen
	steps    []reference.Step
}

const none int32 = -1

func newPlay(t *testing.T, c reference.Config, requests []reference.Request, refused reference.Result) *play {
	build, err := latency.Models.Get("latency model", "linear")
	if err != nil {
		t.Fatal(err)
	}
	model, err := build(latency.Coefficients{Alpha: c.Alpha[:], Beta: c.Beta})
	if err != nil {
		t.Fatal(err)
	}
	p := &play{T: t, config: c, requests: requests, tree: kv.NewTree(), rejected: make([]bool, len(requests))}
	for i, r := range requests {
		delay := c.AdmissionLatencyUS + c.RoutingLatencyUS + model.Queueing(int64(r.Input))
		p.enqueued = append(p.enqueued, r.ArrivalUS+delay)
		p.paths = append(p.paths, nil)
		p.numbers = append(p.numbers, none)
		s := seen{ID: r.ID, State: reference.Unfinished, Scheduled: reference.Never, First: reference.Never, Done: reference.Never}
		switch refused.Outcomes[i].State {
		case reference.Rejected:
			p.enqueued[i], p.rejected[i] = r.ArrivalUS, true
		case reference.BeyondHorizon:
			p.enqueued[i] = reference.Never
		}
		p.seen = append(p.seen, s)
	}
	cfg := Config{MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens, ChunkedPrefill: c.Chunked,
		LongPrefillTokenThreshold: c.LongPrefillThreshold, AsyncScheduling: c.Async, ReserveFullSequence: c.ReserveFull,
		WatermarkBlocks: int(math.Floor(c.Watermark * float64(c.NumBlocks))), Window: c.Window, KeepGaps: true}
	switch {
	case c.Victim != nil:
		cfg.Victim = func(tag int32, at Progress) float64 {
			return c.Victim(requests[tag], at.Generated, at.Computed, at.Blocks)
		}
	case c.Preemption == "lowest-priority":
		cfg.Victim = func(tag int32, _ Progress) float64 { return -requests[tag].Priority }
	}
	if c.StepTime != nil {
		model = stepTimes{model, c.StepTime}
	}
	hold := kv.Window{Blocks: c.WindowBlocks, Extra: c.WindowExtra}
	p.engine = New(cfg, model, kv.NewCache(p.tree, c.NumBlocks, c.BlockSize, c.PrefixCaching, hold))
	return p
}

// stepTimes is a latency model with the reference's step times.
type stepTimes struct {
	latency.Model
	of func(reference.Batch) int64
}

func (m stepTimes) Step(b latency.Batch) des.Time { return max(1, m.of(reference.Batch(b))) }

// run goes from instant to instant: requests enter the queue, the step ends,
// deadlines pass, a step starts. It returns when and false if the engine is stuck.
func (p *play) run() (end des.Time, ok bool) {
	for now, ok := p.next(-1); ok; now, ok = p.next(now) {
		for i := range p.requests {
			switch {
			case p.enqueued[i] != now || p.seen[i].State != reference.Unfinished:
			case p.rejected[i]:
				p.seen[i].State = reference.Rejected
			default:
				p.enqueue(i)
			}
		}
		if p.engine.Busy() && p.engine.Step().End == now {
			ok = p.finish(now)
		}
		for i, r := range p.requests {
			if r.DeadlineUS == now && p.seen[i].State == reference.Unfinished {
				p.abort(i)
			}
		}
		if !p.engine.Busy() {
			p.start(now)
		}
		if err := p.engine.Check(); err != nil {
			p.Fatal(err)
		}
		if !ok {
			return now, false
		}
	}
	return 0, true
}

// next returns the first instant after now at which anything happens, if any does
// before all is over.
func (p *play) next(now des.Time) (des.Time, bool) {
	first, open := des.Time(math.MaxInt64), false
	sooner := func(at des.Time) {
		if at > now {
			first = min(first, at)
		}
	}
	for i, r := range p.requests {
		if p.seen[i].State == reference.Unfinished && p.enqueued[i] != reference.Never {
			open = true
			sooner(p.enqueued[i])
			sooner(r.DeadlineUS)
		}
	}
	if p.engine.Busy() {
		sooner(p.engine.Step().End)
	}
	return first, open && (p.config.HorizonUS == reference.Never || first <= p.config.HorizonUS)
}

func (p *play) enqueue(i int) {
	r := p.requests[i]
	var segments []kv.Segment
	for _, s := range r.Prompt {
		segments = append(segments, kv.Segment(s))
	}
	p.paths[i] = p.tree.Resolve(nil, segments, r.Input, r.ID)
	order := map[string]float64{"priority-fcfs": -r.Priority, "reverse-priority": r.Priority, "sjf": float64(r.Predicted)}
	p.numbers[i] = p.engine.Enqueue(Request{Tag: int32(i), Path: p.paths[i], Input: r.Input, Output: r.Output, Order: order[p.config.Scheduler]})
}

func (p *play) start(now des.Time) {
	if _, err := p.engine.Start(now); err != nil {
		p.Fatal(err)
	}
	for _, s := range p.engine.Formed() {
		for _, a := range s.Admitted {
			p.seen[a.Tag].Scheduled, p.seen[a.Tag].Cached = now, a.Cached
		}
		for _, tag := range s.Preempted {
			p.seen[tag].Preemptions++
		}
	}
}

func (p *play) finish(now des.Time) (ok bool) {
	ends, err := p.engine.Finish(now)
	if stuck := new(StuckError); err != nil && !errors.As(err, &stuck) {
		p.Fatal(err)
	}
	s := p.engine.Step()
	p.steps = append(p.steps, reference.Step{StartUS: s.Start, EndUS: s.End, Batch: reference.Batch(s.Batch),
		Preempted: len(s.Preempted), UsedBlocks: s.UsedBlocks, Running: s.Running, Waiting: s.Waiting})
	for _, tag := range ends.First {
		p.seen[tag].First = now
	}
	for _, d := range ends.Done {
		p.seen[d.Tag].State, p.seen[d.Tag].Done = reference.Completed, now
		p.took(d)
		p.left(d.Tag)
	}
	for _, tag := range ends.Left {
		p.left(tag)
	}
	return err == nil
}

func (p *play) abort(i int) {
	p.seen[i].State = reference.TimedOut
	if p.numbers[i] == none {
		return // it never gets there
	}
	r, left := p.engine.Abort(p.numbers[i])
	p.took(r)
	if left {
		p.left(int32(i))
	}
}

func (p *play) took(r Result) {
	p.seen[r.Tag].Generated, p.seen[r.Tag].Gaps = r.Generated, slices.Clone(r.Gaps.List)
}

func (p *play) left(tag int32) {
	p.tree.Drop(p.paths[tag])
	p.numbers[tag] = none
}
