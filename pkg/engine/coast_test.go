package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"blis/pkg/des"
	"blis/pkg/latency"
	"blis/pkg/link"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// contextModel has step times that depend on all that changes in steps that only decode.
type contextModel struct{ latency.Model }

func (contextModel) Step(b latency.Batch) des.Time {
	return 100 + 10*b.Prefill + b.Decode + b.Context/7 + b.LongestContext/3 + b.WindowContext/5
}

func (contextModel) Output(decode int64) des.Time { return 37 * decode % 50 }

// TestCoastEqualsSteps compares an engine that coasts with one that runs the same steps one by one, with random
// requests that come at any time: the results, totals and batches are the same.
func TestCoastEqualsSteps(t *testing.T) {
	coasted, alike := [2]int{}, [2]int{} // without and with a tier
	for seed := range uint64(120) {
		d := rand.New(rand.NewPCG(seed, 5))
		cfg := Config{MaxNumSeqs: 1 + d.IntN(8), MaxNumBatchedTokens: 8 + d.IntN(60), ChunkedPrefill: true,
			AsyncScheduling: seed%2 == 0, KeepGaps: seed%3 == 0, KeepBatches: seed%7 == 0, Window: int(seed%5/4) * 20}
		with := int(seed / 60)
		if with == 1 { // its stores are not recorded, and there are no loads
			speed := link.Speed{LatencyUS: float64(d.IntN(5000)), GBPerS: 1}
			cfg.Offload = &OffloadConfig{BlockBytes: float64(1000 * d.IntN(100)), Stores: speed, Loads: speed,
				QuietStores: true, MinLoadBlocks: 1000}
		}
		blocks := 8 + d.IntN(30)
		a, treeA := newEngine(t, cfg, blocks)
		b, treeB := newEngine(t, cfg, blocks)
		a.model, b.model = contextModel{a.model}, contextModel{b.model}
		now, tag, open := des.Time(0), int32(0), map[int32]int32{}
		for tag < 30 || a.HasWork() {
			for tag < 30 && (!a.HasWork() || d.IntN(10) == 0) {
				input, output, eos := 1+d.IntN(60), 1+d.IntN(60), d.IntN(4) == 0
				q := Request{Tag: tag, Path: treeA.Resolve(nil, nil, input, ""), Input: input, Output: output, EOS: eos}
				open[tag] = a.Enqueue(q)
				q.Path = treeB.Resolve(nil, nil, input, "")
				b.Enqueue(q)
				tag++
			}
			if s, found := open[int32(d.IntN(30))]; found && d.IntN(9) == 0 {
				x, _ := a.Abort(s)
				if y, _ := b.Abort(s); !cmp.Equal(x, y) {
					t.Fatalf("seed %d: aborted after coasting %+v, after single steps %+v", seed, x, y)
				}
				delete(open, x.Tag)
			}
			if !a.Busy() {
				startAt(t, a, now)
				startAt(t, b, now)
			}
			if !a.Busy() { // the last request was aborted, or all wait for a store
				if at, waits := a.NextStore(); waits {
					now = at
				}
				continue
			}
			now = a.WakeAt()
			n, got := a.Coast(now+des.Time(d.IntN(3000)), 1+d.IntN(20))
			if coasted[with] += n; n > 2 {
				alike[with]++
			}
			var want []GapRun
			for range n {
				r, err := b.Finish(b.WakeAt())
				if err != nil {
					t.Fatal(err)
				}
				if last := len(want) - 1; last >= 0 && want[last].Gap == r.DecodeGap {
					want[last].Tokens += int64(r.Decoding)
				} else {
					want = append(want, GapRun{r.DecodeGap, int64(r.Decoding)})
				}
				startAt(t, b, b.Step().End)
			}
			if n > 0 && (!slices.Equal(got.Coasted, want) || got.DeliveredAt != b.result.DeliveredAt ||
				len(got.First)+len(got.Done)+len(got.Gaps) > 0) {
				t.Fatalf("seed %d: %d steps at once give %+v, one by one %+v", seed, n, got, want)
			}
			if n > 0 {
				compareEngines(t, seed, a, b)
			} else {
				x, err := a.Finish(now)
				y, err2 := b.Finish(now)
				if diff := cmp.Diff(*y, *x, cmpopts.EquateEmpty()); diff != "" || err != nil || err2 != nil {
					t.Fatalf("seed %d: results one by one (-) and coasting (+):\n%s%v, %v", seed, diff, err, err2)
				}
				for _, r := range x.Done {
					delete(open, r.Tag)
				}
			}
		}
	}
	if min(coasted[0], coasted[1]) < 2000 || min(alike[0], alike[1]) < 200 {
		t.Errorf("%d steps in all, %d times more than two at once", coasted, alike)
	}
}

func startAt(t *testing.T, e *Engine, now des.Time) {
	t.Helper()
	if _, err := e.Start(now); err != nil {
		t.Fatal(err)
	}
}

// compareEngines compares the totals and the batches of an engine that coasts with those of b.
func compareEngines(t *testing.T, seed uint64, a, b *Engine) {
	t.Helper()
	if err := a.Check(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	fields := func(e *Engine) [11]any {
		return [...]any{e.Stats(), e.used, e.hasNext, e.deliveredAt, e.emittedTick, e.newest, e.newestTicked, e.context,
			e.tokenlessSteps, e.cache.Ticks(), e.cache.Free()}
	}
	if diff := cmp.Diff(b.Tier(), a.Tier()); diff != "" {
		t.Fatalf("seed %d: the tier, one by one (-) and coasting (+):\n%s", seed, diff)
	}
	batches := func(e *Engine) []Step {
		all := []Step{e.current.Step}
		if e.hasNext {
			all = append(all, e.next.Step)
		}
		return all
	}
	if fields(a) != fields(b) {
		t.Fatalf("seed %d: coasting %+v, one by one %+v", seed, fields(a), fields(b))
	}
	if diff := cmp.Diff(batches(b), batches(a), cmp.AllowUnexported(Entry{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("seed %d: one by one (-) and coasting (+):\n%s", seed, diff)
	}
}
