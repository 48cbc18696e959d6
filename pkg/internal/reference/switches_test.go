package reference

import (
	"reflect"
	"slices"
	"testing"
)

// fewCases is the number of random cases in the comparisons below.
const fewCases = 500

// requireSameRun fails unless two runs have the same outcomes and steps.
func requireSameRun(t *testing.T, seed uint64, a, b Result) {
	t.Helper()
	if !reflect.DeepEqual(a.Outcomes, b.Outcomes) {
		t.Fatalf("seed %d:\n%s\nand\n%s", seed, a.Text(), b.Text())
	}
	if !reflect.DeepEqual(a.Steps, b.Steps) {
		t.Fatalf("seed %d:\n%s\nand\n%s", seed, a.Text("steps"), b.Text("steps"))
	}
}

// TestAsyncIsInvisibleAlone: a request that has a replica to itself behaves the same with and
// without asynchronous scheduling, also with chunked or cached prompts.
func TestAsyncIsInvisibleAlone(t *testing.T) {
	const interval = 1e12
	hits := 0
	for seed := range uint64(fewCases) {
		c, requests := Random(seed)
		c.HorizonUS = Never
		for i := range requests {
			requests[i].ArrivalUS, requests[i].DeadlineUS = int64(i)*interval, Never
			requests[i].EOS = false
		}
		c.Groups = nil // a window can leave a block before its last token is known, and with it its hash
		c.Async = false
		plain := Run(c, requests)
		c.Async = true
		ahead := Run(c, requests)
		requireSameRun(t, seed, plain, ahead)
		if plain.Duplicates != ahead.Duplicates || plain.Evictions != ahead.Evictions {
			t.Fatalf("seed %d: %d duplicates and %d evictions, ahead %d and %d", seed,
				plain.Duplicates, plain.Evictions, ahead.Duplicates, ahead.Evictions)
		}
		if slices.ContainsFunc(plain.Outcomes, func(o Outcome) bool { return o.Cached > 0 }) {
			hits++
		}
	}
	if hits < fewCases/4 {
		t.Errorf("hits in %d of %d cases only", hits, fewCases)
	}
}

// TestFullWatermark: a watermark of all blocks equals one batch slot, but for the name of the limit.
func TestFullWatermark(t *testing.T) {
	blocked := 0
	for seed := range uint64(fewCases) {
		c, requests := Random(seed)
		c.Watermark = 1
		all := Run(c, requests)
		c.Watermark, c.MaxNumSeqs = 0, 1
		one := Run(c, requests)
		for _, outcomes := range [][]Outcome{all.Outcomes, one.Outcomes} {
			for i := range outcomes {
				us := &outcomes[i].StoppedUS
				*us = [stops]int64{stopBlocks: us[stopSlots] + us[stopBudget] + us[stopBlocks]}
			}
		}
		requireSameRun(t, seed, all, one)
		if all.WatermarkBlocked > 0 {
			blocked++
		}
	}
	if blocked < fewCases/4 {
		t.Errorf("the watermark mattered in %d of %d cases only", blocked, fewCases)
	}
}

// TestReserveWholePrompts: where prompts are not chunked, full reservation needs exactly the blocks
// that are allocated anyway.
func TestReserveWholePrompts(t *testing.T) {
	preempted := 0
	for seed := range uint64(fewCases) {
		c, requests := Random(seed)
		c.MaxNumBatchedTokens, c.LongPrefillThreshold = 1<<20, 0
		c.Groups = slices.DeleteFunc(c.Groups, func(g Group) bool { return g.State }) // which chunks prompts
		c.ReserveFull = false
		chunk := Run(c, requests)
		c.ReserveFull = true
		full := Run(c, requests)
		requireSameRun(t, seed, chunk, full)
		if full.ReservationBlocked > 0 {
			t.Fatalf("seed %d: %d requests refused", seed, full.ReservationBlocked)
		}
		if slices.ContainsFunc(full.Outcomes, func(o Outcome) bool { return o.Preemptions > 0 }) {
			preempted++
		}
	}
	if preempted < fewCases/4 {
		t.Errorf("preemptions in %d of %d cases only", preempted, fewCases)
	}
}

// TestWatermarkRoundsDown: the watermark is rounded down to full blocks.
func TestWatermarkRoundsDown(t *testing.T) {
	// Eleven blocks with the null block: a holds one, b needs one. With a watermark of w blocks b is
	// admitted alongside a if 10 - 1 - 1 >= w. The watermark is a fraction of all eleven.
	for watermark, want := range map[float64]int64{0.8: 0, 0.81: 0, 0.82: 14, 1: 14} {
		c := Config{Replicas: 1, MaxNumSeqs: 2, MaxNumBatchedTokens: 100, BlockSize: 4, NumBlocks: 11, Chunked: true,
			Switches: Switches{
				Watermark: watermark}, Beta: []float64{10, 1, 1}, Routing: "round-robin", HorizonUS: Never}
		r := Run(c, []Request{{ID: "a", Input: 4, Output: 1, DeadlineUS: Never}, {ID: "b", Input: 4, Output: 1,
			DeadlineUS: Never}})
		if got := r.Outcomes[1].ScheduledUS; got != want {
			t.Errorf("watermark %g: b scheduled at %d, want %d", watermark, got, want)
		}
	}
}

// TestWeighted: each weight applies to its own sum.
func TestWeighted(t *testing.T) {
	b := Batch{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0, 0, 0}
	for i := range 11 {
		var weights [11]int64
		weights[i] = 10
		want := int64(10 * max(1, i))
		if got := weighted(weights)(b); got != want {
			t.Errorf("weight %d: %d, want %d", i, got, want)
		}
	}
}
