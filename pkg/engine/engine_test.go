package engine

import (
	"errors"
	"slices"
	"testing"

	"blis/pkg/kv"
	"blis/pkg/latency"
	"blis/pkg/tier"

	"github.com/google/go-cmp/cmp"
)

// The scheduling rules are tested by TestReference and by pkg/sim, which simulates random clusters
// against the same reference. These tests cover what only the package itself can observe.

// newEngine returns an engine and its tree. A tier gets a store with room for twice as many blocks.
func newEngine(t *testing.T, cfg Config, blocks int) (*Engine, *kv.Tree) {
	t.Helper()
	build, err := latency.Models.Get("latency model", "linear")
	if err != nil {
		t.Fatal(err)
	}
	m, err := build(latency.Coefficients{Alpha: []float64{0, 0, 0}, Beta: []float64{100, 10, 1}})
	if err != nil {
		t.Fatal(err)
	}
	tree := kv.NewTree()
	if cfg.Offload != nil {
		o := *cfg.Offload
		o.Store = tier.NewStore(tree, 2*blocks, "lru")
		cfg.Offload = &o
	}
	return New(cfg, m, kv.NewCache(tree, kv.Config{Blocks: blocks, BlockSize: 16, Caching: true})), tree
}

func enqueue(e *Engine, tree *kv.Tree, tag int32, input, output int) int32 {
	return e.Enqueue(Request{Tag: tag, Path: tree.Resolve(nil, nil, input, ""), Input: input, Output: output})
}

// step runs one step and returns its result.
func step(t *testing.T, e *Engine, now int64) (*StepResult, int64) {
	t.Helper()
	if ok, err := e.Start(now); !ok || err != nil {
		t.Fatalf("at %d: started %v, %v", now, ok, err)
	}
	end := e.Step().End
	ends, err := e.Finish(end)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
	return ends, end
}

// TestOneRequest: 20 prompt tokens take 100 + 10·20 = 300 µs, each of two
// decode steps 100 + 1 = 101.
func TestOneRequest(t *testing.T) {
	e, tree := newEngine(t, Config{MaxNumSeqs: 4, MaxNumBatchedTokens: 64, ChunkedPrefill: true, KeepGaps: true}, 10)
	enqueue(e, tree, 7, 20, 3)
	ends, now := step(t, e, 1000)
	if now != 1300 || !slices.Equal(ends.First, []int32{7}) || ends.Decoding != 0 {
		t.Fatalf("prefill ended at %d with %+v", now, ends)
	}
	if ends, now = step(t, e, now); now != 1401 || ends.Decoding != 1 || ends.DecodeGap != 101 || len(ends.Done) != 0 {
		t.Fatalf("decode ended at %d with %+v", now, ends)
	}
	ends, now = step(t, e, now)
	if now != 1502 || len(ends.Done) != 1 {
		t.Fatalf("decode ended at %d with %+v", now, ends)
	}
	if d := ends.Done[0]; d.Tag != 7 || d.Generated != 3 || d.Gaps.Max != 101 ||
		!slices.Equal(d.Gaps.List, [][2]int64{{101, 2}}) {
		t.Errorf("done %+v", d)
	}
	if ok, err := e.Start(now); ok || err != nil || e.Cache().Free() != 10 {
		t.Errorf("started %v, %v with %d of 10 blocks free", ok, err, e.Cache().Free())
	}
	if s := e.Stats(); s.Steps != 3 || s.BusyUS != 502 || s.PrefillTokens != 20 || s.DecodeTokens != 2 ||
		s.BlockUS != 2*502 {
		t.Errorf("stats %+v", s)
	}
}

// TestDecodeStepsDoNotAllocate runs steps of 64 decoding sequences.
func TestDecodeStepsDoNotAllocate(t *testing.T) {
	e, tree := newEngine(t, Config{MaxNumSeqs: 64, MaxNumBatchedTokens: 4096, ChunkedPrefill: true}, 10000)
	for i := range int32(64) {
		enqueue(e, tree, i, 32, 2000)
	}
	_, now := step(t, e, 0)
	if n := testing.AllocsPerRun(1000, func() {
		if ok, err := e.Start(now); !ok || err != nil {
			t.Fatal(ok, err)
		}
		now = e.Step().End
		if _, err := e.Finish(now); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// TestQueueDoesNotAllocate enqueues and aborts in different orders, in a queue that has had this
// length before.
func TestQueueDoesNotAllocate(t *testing.T) {
	e, tree := newEngine(t, Config{MaxNumSeqs: 1, MaxNumBatchedTokens: 64}, 10)
	path := tree.Resolve(nil, nil, 20, "")
	numbers := make([]int32, 100)
	if n := testing.AllocsPerRun(100, func() {
		for i := range numbers {
			numbers[i] = e.Enqueue(Request{Tag: int32(i), Path: path, Input: 20, Output: 1,
				Order: float64(i * 37 % 10)})
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
		for i := range numbers {
			if _, left := e.Abort(numbers[i*53%len(numbers)]); !left {
				t.Fatal("an aborted request stays in the queue")
			}
		}
	}); n != 0 || e.Waiting() != 0 {
		t.Errorf("%v allocations for 100 requests, %d are still waiting", n, e.Waiting())
	}
}

// TestRequestThatCannotFitIsReported expects an error that names the request.
func TestRequestThatCannotFitIsReported(t *testing.T) {
	e, tree := newEngine(t, Config{MaxNumSeqs: 4, MaxNumBatchedTokens: 64}, 2)
	enqueue(e, tree, 3, 40, 1) // three blocks
	_, err := e.Start(0)
	if target := new(NoProgressError); !errors.As(err, &target) || target.Tag != 3 {
		t.Errorf("error %v, want one that names request 3", err)
	}
}

// TestLongestGap expects the longest step since each tick, in any order of step lengths.
func TestLongestGap(t *testing.T) {
	gaps := []int64{5, 9, 3, 7, 7, 2, 8, 1}
	short, long := gapLog{limit: minGapLog}, gapLog{limit: minGapLog, keep: true}
	for i, g := range gaps {
		short.add(int64(i+1), g)
		long.add(int64(i+1), g)
		for since := range i + 1 {
			var a, b Gaps
			short.collect(&a, int64(since), int64(i+1))
			long.collect(&b, int64(since), int64(i+1))
			if want := slices.Max(gaps[since : i+1]); a.Max != want || b.Max != want {
				t.Errorf("the longest gap after tick %d up to %d is %d and %d, want %d", since, i+1, a.Max, b.Max, want)
			}
		}
	}
	long.trim(5)
	var g Gaps
	long.collect(&g, 5, 8)
	if !slices.Equal(g.List, [][2]int64{{2, 1}, {8, 1}, {1, 1}}) {
		t.Errorf("after trimming: %v", g.List)
	}
}

// TestTrimmedGapLogGivesSameGaps compares a log that is trimmed at every step with one that is
// never trimmed.
func TestTrimmedGapLogGivesSameGaps(t *testing.T) {
	for _, async := range []bool{false, true} {
		run := func(limit int) (all []Result) {
			cfg := Config{MaxNumSeqs: 8, MaxNumBatchedTokens: 40, ChunkedPrefill: true, AsyncScheduling: async,
				KeepGaps: true}
			e, tree := newEngine(t, cfg, 60)
			e.log.limit, e.log.minLimit = limit, limit
			now := int64(0)
			for i := range int32(40) {
				enqueue(e, tree, i, 10+int(i)%7*9, 1+int(i)*5%37)
			}
			for e.Running()+e.Waiting() > 0 {
				ends, at := step(t, e, now)
				now = at
				for _, d := range ends.Done {
					all = append(all, d)
					count := int64(0)
					for _, g := range d.Gaps.List {
						count += g[1]
					}
					if count != int64(d.Generated)-1 {
						t.Errorf("async %v: request %d has %d gaps between %d tokens", async, d.Tag, count, d.Generated)
					}
				}
			}
			return all
		}
		if diff := cmp.Diff(run(1<<20), run(2)); diff != "" {
			t.Errorf("async %v: with a short log (+):\n%s", async, diff)
		}
	}
}
