package reference

import (
	"slices"
	"testing"
)

// named counts the tokens of a prompt that have names.
func named(q Request) int {
	n := 0
	for _, s := range q.Prompt {
		n += s.Tokens
	}
	return n
}

// checkLaws holds a result to what is true of every run.
func checkLaws(t *testing.T, seed uint64, c Config, requests []Request, r Result) {
	t.Helper()
	undisturbed := c.HorizonUS == Never
	wanted := int64(0) // tokens to compute, if nothing is computed twice or in vain
	for i, o := range r.Outcomes {
		q := requests[i]
		undisturbed = undisturbed && q.DeadlineUS == Never && o.Preemptions == 0
		if o.State == Completed {
			wanted += int64(q.Input - o.Cached + q.Output - 1)
		}
		law := func(name string, holds bool) {
			if !holds {
				t.Errorf("seed %d: %s: %+v of %+v", seed, name, o, q)
			}
		}
		law("the request's id and arrival", o.ID == q.ID && o.ArrivalUS == q.ArrivalUS)
		times := []int64{o.ArrivalUS, o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS, o.CompletedUS}
		law("causality", sortedThenNever(times))
		law("one time for each token, rising", len(o.TokensUS) == o.Generated && rising(o.TokensUS))
		law("seen in order, no token before its step's end", len(o.SeenUS) == o.Generated && rising(o.SeenUS) && after(o.SeenUS, o.TokensUS))
		law("completed if and only if all tokens came",
			(o.State == Completed) == (o.Generated == q.Output) && (o.State == Completed) == (o.CompletedUS != Never))
		law("a replica if and only if routed", (o.Replica != Never) == (o.RoutedUS != Never))
		law("cached whole blocks, not the last token", o.Cached%c.BlockSize == 0 && o.Cached < q.Input)
		law("expected whole blocks", o.ExpectedCached%c.BlockSize == 0 && o.ExpectedCached <= q.Input)
		law("a reason unless completed or not offered",
			(o.Reason == "") == (o.State == Completed || o.State == BeyondHorizon))
		law("scheduled when a step starts, of which the last may not be told",
			o.ScheduledUS == Never || startsAt(r.Steps[o.Replica], o.ScheduledUS))
		law("a rejected request goes nowhere", o.State != Rejected || o.AdmittedUS == Never)
		law("no deadline survived", q.DeadlineUS == Never || len(o.TokensUS) == 0 ||
			slices.Max(o.TokensUS) <= q.DeadlineUS)
		law("no horizon survived", c.HorizonUS == Never || len(o.TokensUS) == 0 ||
			slices.Max(o.TokensUS) <= c.HorizonUS)
		law("no horizon, no end before its time",
			c.HorizonUS != Never || o.State != Unfinished && o.State != BeyondHorizon)
	}
	computed := int64(0)
	for replica, steps := range r.Steps {
		checkSteps(t, seed, replica, steps, c, !hasDeadlines(requests))
		for _, s := range steps {
			computed += s.Prefill + s.Decode
		}
	}
	if undisturbed && computed != wanted {
		t.Errorf("seed %d: %d tokens computed, want %d", seed, computed, wanted)
	}
}

// checkSteps holds the steps of one replica to their laws. If nobody has a
// deadline, who waits goes on waiting until the next step.
func checkSteps(t *testing.T, seed uint64, replica int, steps []Step, c Config, patient bool) {
	t.Helper()
	for i, s := range steps {
		law := func(name string, holds bool) {
			if !holds {
				t.Errorf("seed %d: replica %d: %s: %+v", seed, replica, name, s)
			}
		}
		law("a step computes something, within the budget",
			s.Prefill+s.Decode > 0 && s.Prefill+s.Decode <= int64(c.MaxNumBatchedTokens))
		law("its length follows from what it computes",
			s.EndUS-s.StartUS == c.stepTime(s.Batch))
		law("steps do not overlap", i == 0 || s.StartUS >= steps[i-1].EndUS)
		// A victim whose last token is coming waits for nothing else.
		law("a replica with work does not idle", i == 0 || !patient || s.StartUS == steps[i-1].EndUS ||
			steps[i-1].Waiting == 0 || c.Async && steps[i-1].Waiting <= steps[i-1].Preempted)
		law("seats and blocks are within their limits",
			s.Running <= c.MaxNumSeqs && s.UsedBlocks <= c.NumBlocks)
		law("a victim waits", s.Waiting >= s.Preempted)
		law("all pairs, at least those in windows", s.WindowPairs <= s.Pairs && s.WindowPast <= s.Past &&
			s.WindowContext <= s.Context && s.Pairs >= s.Prefill && s.Chunks <= s.Prefill)
		if c.Window == 0 {
			law("no windows, no sums over them", s.WindowContext+s.WindowPast+s.WindowPairs == 0)
		}
	}
}

// startsAt reports whether a step starts then, or none had started after it.
func startsAt(steps []Step, at int64) bool {
	last := len(steps) - 1
	return last < 0 || at >= steps[last].EndUS ||
		slices.ContainsFunc(steps, func(s Step) bool { return s.StartUS == at })
}

func hasDeadlines(requests []Request) bool {
	return slices.ContainsFunc(requests, func(q Request) bool { return q.DeadlineUS != Never })
}

// rising reports whether each time is later than the one before.
// after reports whether no time is before that of the same place in others.
func after(times, others []int64) bool {
	for i := range others {
		if times[i] < others[i] {
			return false
		}
	}
	return true
}

func rising(times []int64) bool {
	for i := range times {
		if i > 0 && times[i] <= times[i-1] {
			return false
		}
	}
	return true
}

// sortedThenNever reports whether times do not fall, and once one did not come
// none does.
func sortedThenNever(times []int64) bool {
	if i := slices.Index(times, Never); i >= 0 {
		if slices.ContainsFunc(times[i:], func(t int64) bool { return t != Never }) {
			return false
		}
		times = times[:i]
	}
	return slices.IsSorted(times)
}
