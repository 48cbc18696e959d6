package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"blis/pkg/des"
	"blis/pkg/internal/reference"
	"blis/pkg/kv"
	"blis/pkg/latency"

	"github.com/google/go-cmp/cmp"
)

// TestReference runs random requests on one engine and on the plain reference. All times, counts,
// gaps and batch totals must be equal. Beyond the cluster comparison in pkg/sim, it covers
// preemption scores that depend on progress.
func TestReference(t *testing.T) {
	cases := uint64(4000)
	if testing.Short() {
		cases = 300
	}
	counts, livelocked := map[string]int{}, 0
	for seed := range cases {
		c, requests := reference.Random(seed)
		p, want, ended := compareOnOneReplica(t, seed, &c, requests, "")
		if !ended {
			livelocked++
		}
		for name, n := range map[string]int{"preempted": int(p.engine.Stats().Preemptions),
			"undone": want.UndoneVictims, "yielded": want.SelfPreempted, "retried": want.Retries,
			"continued": want.Continued, "skipped": want.Skipped} {
			if n > 0 && c.Victim != nil {
				counts[name]++
			}
		}
	}
	t.Logf("of %d cases with preemption by progress: %v, %d without progress", (cases+2)/3, counts, livelocked)
	for _, name := range []string{"preempted", "undone", "yielded", "retried", "continued"} {
		if counts[name] < int(cases)/200 {
			t.Errorf("%s in %d cases with preemption by progress, want more", name, counts[name])
		}
	}
}

// compareFeature runs random cases of a feature on one engine and on the plain reference: as many as given, or 300 of
// them with -short. It calls check for each; nil does nothing. Few may be without progress.
func compareFeature(t *testing.T, cases uint64, random func(seed uint64) (reference.Config, []reference.Request),
	feature func(c *reference.Config) any, check func(seed uint64, p *harness, want *reference.Result)) {
	t.Helper()
	if testing.Short() {
		cases = 300
	}
	livelocked := 0
	for seed := range cases {
		c, requests := random(seed)
		setDraws(&c)
		p, want, ended := compareOnOneReplica(t, seed, &c, requests, fmt.Sprintf("%+v", feature(&c)))
		if !ended {
			livelocked++
		}
		if check != nil {
			check(seed, p, &want)
		}
	}
	if livelocked > int(cases)/20 {
		t.Errorf("%d of %d cases without progress", livelocked, cases)
	}
}

// compareOnOneReplica runs a case on one engine and on the plain reference, of three cases one with a preemption score
// of its own, which it sets in c. All that both report must be equal. features are the parts of c behind pointers, for
// messages. ended is false if sequences preempt each other forever: the engine reports it, the reference does not, and
// both must agree up to then.
func compareOnOneReplica(t *testing.T, seed uint64, c *reference.Config, requests []reference.Request,
	features string) (p *harness, want reference.Result, ended bool) {
	t.Helper()
	c.Replicas, c.Routing, c.Scorers, c.SnapshotUS = 1, "round-robin", nil, 0
	unchanged := reference.Run(*c, requests)
	if seed%3 == 0 {
		c.Victim = victims[seed/3%uint64(len(victims))]
	}
	p = newHarness(t, *c, requests, unchanged)
	end, ended := p.run()
	if !ended {
		c.HorizonUS = end
	}
	want = reference.Run(*c, requests)
	if diff := cmp.Diff(observedOf(want, requests), p.observed); diff != "" {
		t.Fatalf("seed %d: outcomes of the reference (-) and the engine (+) differ:\n%+v %s\n%s", seed, *c, features,
			diff)
	}
	if diff := cmp.Diff(want.Steps[0], p.steps); diff != "" {
		t.Fatalf("seed %d: steps of the reference (-) and the engine (+) differ:\n%+v %s\n%s", seed, *c, features, diff)
	}
	return p, want, ended
}

// victims are preemption scores from what a policy can see: each count alone, and a mix in which
// any wrong count shows.
var victims = []func(q reference.Request, generated, computed, blocks int) float64{
	func(_ reference.Request, generated, _, _ int) float64 { return float64(generated) },
	func(_ reference.Request, generated, _, _ int) float64 { return -float64(generated) },
	func(_ reference.Request, _, computed, _ int) float64 { return -float64(computed) },
	func(_ reference.Request, _, _, blocks int) float64 { return float64(blocks) },
	func(q reference.Request, generated, computed, blocks int) float64 {
		return float64((31*generated + 17*computed + 7*blocks + 3*q.Input) % 11)
	},
}

// observed is the part of a request's outcome that both report. A request that is unfinished at the
// end has no gaps.
type observed struct {
	ID                                     string
	State                                  string
	Scheduled, First, Done                 int64
	Generated, Cached, Loaded, Preemptions int
	Gaps                                   [][2]int64
}

func observedOf(r reference.Result, requests []reference.Request) []observed {
	var all []observed
	for i, o := range r.Outcomes {
		s := observed{ID: o.ID, State: o.State, Scheduled: o.ScheduledUS, First: reference.Never, Done: reference.Never,
			Generated: o.Generated, Cached: o.Cached, Loaded: o.Loaded, Preemptions: o.Preemptions}
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
		case reference.BeyondHorizon: // so it would be where a run stops making progress
			s.State = reference.Unfinished
		}
		all = append(all, s)
	}
	return all
}

// harness drives one engine with requests. The reference decides which of them the router rejects.
type harness struct {
	*testing.T
	config   reference.Config
	requests []reference.Request
	engine   *Engine
	tree     *kv.Tree
	paths    []kv.Path
	adapters map[string]int32
	grammars map[string]int32
	enqueued []des.Time // or rejected; Never if it does not arrive
	rejected []bool
	numbers  []int32 // the engine's, notEnqueued before and after
	observed []observed
	steps    []reference.Step
	// forecasts are checked after each event and each step, unless it is nil.
	forecasts *forecastChecker
	// With a tier, underWay are the transfers that have not ended, and transfers those that have. quiet: the ends of
	// stores are not among them, and the totals are checked once in this many events.
	underWay  []Transfer
	transfers []reference.Transfer
	quiet     int
}

const notEnqueued int32 = -1

func newHarness(t *testing.T, c reference.Config, requests []reference.Request, routed reference.Result) *harness {
	return newTierHarness(t, c, requests, routed, 0)
}

func newTierHarness(t *testing.T, c reference.Config, requests []reference.Request, routed reference.Result,
	quiet int) *harness {
	build, err := latency.Models.Get("latency model", "linear")
	if err != nil {
		t.Fatal(err)
	}
	model, err := build(latency.Coefficients{Alpha: c.Alpha[:], Beta: c.Beta})
	if err != nil {
		t.Fatal(err)
	}
	p := &harness{T: t, config: c, requests: requests, tree: kv.NewTree(), rejected: make([]bool, len(requests))}
	for i, r := range requests {
		delay := c.AdmissionLatencyUS + c.RoutingLatencyUS + model.Queueing(int64(r.Input))
		p.enqueued = append(p.enqueued, r.ArrivalUS+delay)
		p.paths = append(p.paths, nil)
		p.numbers = append(p.numbers, notEnqueued)
		s := observed{ID: r.ID, State: reference.Unfinished, Scheduled: reference.Never, First: reference.Never,
			Done: reference.Never}
		switch routed.Outcomes[i].State {
		case reference.Rejected:
			p.enqueued[i], p.rejected[i] = r.ArrivalUS, true
		case reference.BeyondHorizon:
			p.enqueued[i] = reference.Never
		}
		p.observed = append(p.observed, s)
	}
	cfg := Config{MaxNumSeqs: c.MaxNumSeqs, MaxNumBatchedTokens: c.MaxNumBatchedTokens, ChunkedPrefill: c.Chunked,
		LongPrefillTokenThreshold: c.LongPrefillThreshold, AsyncScheduling: c.Async, ReserveFullSequence: c.ReserveFull,
		WatermarkBlocks: int(math.Floor(c.Watermark * float64(c.NumBlocks))), Window: c.Window,
		KeepGaps: true, KeepBatches: true, ThresholdSparesLone: c.SpareLone, AdaptiveThreshold: c.Adaptive,
		ContinueAfterSelfPreemption: c.ContinueAfterSelf, IdleVictimSkipsNext: c.SkipAfterIdle,
		Speculation: speculationOf(c), Pipeline: pipelineOf(c), PrefillInterval: c.PrefillInterval}
	for _, g := range c.Groups {
		if g.State && c.PrefixCaching {
			cfg.StateBlock = g.BlockSize
		}
	}
	cfg.StateChunks = map[string]kv.StateChunks{"recomputed": kv.AlignRecomputed, "shared": kv.AlignShared,
		"blocks": kv.AlignBlocks, "resumable": kv.AlignResumable}[c.States.Chunks]
	if c.States.Checkpoint {
		cfg.StateCheckpoints = 1
	}
	switch {
	case c.Victim != nil:
		cfg.PreemptionScore = func(tag int32, at Progress) float64 {
			return c.Victim(requests[tag], at.Generated, at.Computed, at.Blocks)
		}
	case c.Preemption == "lowest-priority":
		cfg.PreemptionScore = func(tag int32, _ Progress) float64 { return -requests[tag].Priority }
	}
	if c.LoRA != nil {
		model = latency.WithAdapters(model, latency.AdapterCost{Factor: c.LoRA.Factor, EachUS: c.LoRA.EachUS})
	}
	hashing := reference.Speculation{}
	if c.Speculation != nil {
		hashing = *c.Speculation
		model = latency.Drafter(model, latency.Drafting{PassUS: hashing.DraftUS[0], SequenceUS: hashing.DraftUS[1]})
	}
	if c.StepTime != nil {
		model = stepTimes{model, c.StepTime}
	}
	cfg.LoRA, p.adapters = loraOf(c), map[string]int32{"": 0}
	cfg.Grammars, p.grammars = grammarsOf(c), map[string]int32{"": 0}
	cfg.ByArrival = c.Scheduler != "" && c.Scheduler != "fcfs"
	cfg.Encoder = encoderOf(c)
	if cfg.Offload = offloadOf(c, p.tree); cfg.Offload != nil {
		p.quiet = quiet
		cfg.Offload.QuietStores = quiet > 0
	}
	p.engine = New(cfg, model, kv.NewCache(p.tree, kv.Config{Blocks: c.NumBlocks - 1, BlockSize: c.BlockSize,
		Caching: c.PrefixCaching, UnhashedFirst: c.UnhashedFirst, Groups: groupsOf(c), Rules: rulesOf(c),
		HashLookahead: hashing.HashLookahead, DropLastHit: hashing.DropLastHit}))
	return p
}

// groupsOf converts the KV cache groups of the reference.
func groupsOf(c reference.Config) []kv.Group {
	var groups []kv.Group
	for _, g := range c.Groups {
		k := kv.Group{BlockSize: g.BlockSize}
		switch {
		case g.State:
			k = kv.StateGroup(g.BlockSize)
		case g.Window > 0:
			k.Kind, k.Window = kv.SlidingWindow, g.Window
		case g.Chunk > 0:
			k.Kind, k.Window = kv.LocalChunks, g.Chunk
		}
		groups = append(groups, k)
	}
	return groups
}

func rulesOf(c reference.Config) kv.GroupRules {
	r := kv.GroupRules{HashAll: c.HashAll, Sparse: c.Sparse, Interval: c.Interval,
		KeepUntilComputed: c.KeepUntilComputed, MaxLength: c.MaxModelLen,
		DeferFresh: c.States.NextStep, LastStateOnly: c.States.LastOnly}
	if c.States.Checkpoint {
		r.Checkpoints = 1
	}
	if c.ReserveWindow {
		r.MaxWindowTokens = c.MaxNumBatchedTokens
		if c.Pipeline != nil && c.KeepUntilComputed {
			r.MaxWindowTokens *= c.Pipeline.Batches
		} else if c.Async && c.KeepUntilComputed {
			r.MaxWindowTokens *= 2
		}
	}
	return r
}

// stepTimes is a latency model with the reference's step times.
type stepTimes struct {
	latency.Model
	of func(reference.Batch) int64
}

func (m stepTimes) Step(b latency.Batch) des.Time { return max(1, m.of(reference.Batch(b))) }

// run advances from event to event: requests are enqueued, the step ends, deadlines pass, a step
// starts. It returns the time and false if the engine makes no progress.
func (p *harness) run() (end des.Time, ok bool) {
	events := 0
	for now, ok := p.next(-1); ok; now, ok = p.next(now) {
		for i := range p.requests {
			switch {
			case p.enqueued[i] != now || p.observed[i].State != reference.Unfinished:
			case p.rejected[i]:
				p.observed[i].State = reference.Rejected
			default:
				p.enqueue(i)
			}
		}
		if p.engine.Busy() && !p.engine.Filling() && p.engine.WakeAt() == now {
			ok = p.finish(now)
			p.forecasts.check(p, now)
		}
		p.endTransfers(now)
		for i, r := range p.requests {
			if r.DeadlineUS == now && p.observed[i].State == reference.Unfinished {
				p.abort(i)
			}
		}
		if p.isOpen() && (!p.engine.Busy() || p.engine.Filling() && p.engine.WakeAt() == now) {
			p.start(now)
		}
		if events++; p.quiet == 0 || events%p.quiet == 0 {
			if err := p.engine.Check(); err != nil {
				p.Fatal(err)
			}
		}
		p.forecasts.check(p, now)
		if !ok {
			return now, false
		}
	}
	return 0, true
}

// isOpen reports whether a request is not final.
func (p *harness) isOpen() bool {
	return slices.ContainsFunc(p.observed, func(o observed) bool { return o.State == reference.Unfinished })
}

// next returns the first event time after now, and whether there is one before the end.
func (p *harness) next(now des.Time) (des.Time, bool) {
	first, open := des.Time(math.MaxInt64), false
	sooner := func(at des.Time) {
		if at > now {
			first = min(first, at)
		}
	}
	for i, r := range p.requests {
		if p.observed[i].State == reference.Unfinished && p.enqueued[i] != reference.Never {
			open = true
			sooner(p.enqueued[i])
			sooner(r.DeadlineUS)
		}
	}
	if p.engine.Busy() {
		sooner(p.engine.WakeAt())
	} else if at, ok := p.engine.NextStore(); ok {
		sooner(at)
	}
	for _, x := range p.underWay {
		sooner(x.Ended)
	}
	for i, s := range p.numbers {
		if s != notEnqueued && p.observed[i].State == reference.Unfinished {
			sooner(p.engine.GrammarReady(s))
		}
	}
	return first, open && (p.config.HorizonUS == reference.Never || first <= p.config.HorizonUS)
}

func (p *harness) enqueue(i int) {
	r := p.requests[i]
	var segments []kv.Segment
	var items []Item
	at := 0
	for k, s := range r.Prompt {
		if k == 0 {
			s.ID = r.Adapter + "/" + s.ID
		}
		if s.Media {
			items = append(items, Item{Offset: int32(at), Tokens: int32(s.Tokens), Content: contentOf(r.Prompt[k])})
		}
		at += s.Tokens
		segments = append(segments, kv.Segment{ID: s.ID, Tokens: s.Tokens})
	}
	if _, ok := p.adapters[r.Adapter]; !ok {
		p.adapters[r.Adapter] = int32(len(p.adapters))
	}
	compileUS := int64(0)
	if r.Grammar != "" {
		compileUS = p.config.Grammars.CompileUS(r.Grammar)
	}
	if _, ok := p.grammars[r.Grammar]; !ok {
		p.grammars[r.Grammar] = int32(len(p.grammars))
	}
	p.paths[i] = p.tree.Resolve(nil, segments, r.Input, r.ID)
	order := map[string]float64{"priority-fcfs": -r.Priority, "reverse-priority": r.Priority,
		"sjf": float64(r.Predicted)}
	p.numbers[i] = p.engine.Enqueue(
		Request{Tag: int32(i), Path: p.paths[i], Input: r.Input, Output: r.Output, Order: order[p.config.Scheduler],
			Priority: r.Priority, Drafts: draftsOf(&r), Adapter: p.adapters[r.Adapter], Items: items,
			Grammar: p.grammars[r.Grammar], CompileUS: compileUS, Now: p.enqueued[i],
			EOS: r.EOS && (p.config.MaxModelLen == 0 || r.Input+r.Output < p.config.MaxModelLen)})
}

func (p *harness) start(now des.Time) {
	if _, err := p.engine.Start(now); err != nil {
		p.Fatal(err)
	}
	for _, tag := range p.engine.LeftEarly() {
		p.release(tag)
	}
	for _, s := range p.engine.Formed() {
		for _, a := range s.Admitted {
			o := &p.observed[a.Tag]
			o.Scheduled, o.Cached, o.Loaded = now, a.Cached, int(a.Loaded)
		}
		for _, tag := range s.Preempted {
			p.observed[tag].Preemptions++
		}
	}
	p.underWay = append(p.underWay, p.engine.Transfers()...)
}

func (p *harness) finish(now des.Time) (ok bool) {
	ends, err := p.engine.Finish(now)
	if target := new(NoProgressError); err != nil && !errors.As(err, &target) {
		p.Fatal(err)
	}
	s := p.engine.Step()
	var shares []reference.Share
	for _, x := range s.Entries {
		shares = append(shares, reference.Share{ID: p.requests[x.Tag].ID, Tokens: x.Tokens})
	}
	p.steps = append(p.steps, reference.Step{StartUS: s.Start, EndUS: s.End, Batch: reference.Batch(s.Batch),
		AdapterLoads: s.AdapterLoads, AdapterCopies: s.AdapterCopies, AdapterUS: s.AdapterUS,
		Masks: s.Masks, MaskUS: s.MaskUS, MaskWaitUS: s.MaskWaitUS,
		EncodedItems: s.EncodedItems, EncodedTokens: s.EncodedTokens, EncoderUS: s.EncoderUS,
		Preempted: len(s.Preempted) + s.EarlierVictims, UsedBlocks: s.UsedBlocks, Running: s.Running,
		Waiting: s.Waiting, Shares: shares})
	for _, tag := range ends.First {
		p.observed[tag].First = now
	}
	for _, d := range ends.Done {
		p.observed[d.Tag].State, p.observed[d.Tag].Done = reference.Completed, now
		p.recordResult(d)
		p.release(d.Tag)
	}
	for _, tag := range ends.Aborted {
		p.release(tag)
	}
	return err == nil
}

func (p *harness) abort(i int) {
	p.observed[i].State = reference.TimedOut
	if p.numbers[i] == notEnqueued {
		return // it is never enqueued
	}
	r, left := p.engine.Abort(p.numbers[i])
	p.recordResult(r)
	if left {
		p.release(int32(i))
	}
}

func (p *harness) recordResult(r Result) {
	p.observed[r.Tag].Generated, p.observed[r.Tag].Gaps = r.Generated, slices.Clone(r.Gaps.List)
}

func (p *harness) release(tag int32) {
	p.tree.Drop(p.paths[tag])
	p.numbers[tag] = notEnqueued
}
