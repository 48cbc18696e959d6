package reference

import (
	"slices"
	"testing"
)

// named counts the tokens of a prompt that belong to segments.
func named(q Request) int {
	n := 0
	for _, s := range q.Prompt {
		n += s.Tokens
	}
	return n
}

// checkLaws checks the laws that every run obeys.
func checkLaws(t *testing.T, seed uint64, c Config, requests []Request, r Result) {
	t.Helper()
	undisturbed := c.HorizonUS == Never
	rising := rising
	if c.Speculation != nil { // a step can yield several tokens
		rising = slices.IsSorted[[]int64]
	}
	wanted := int64(0) // tokens to compute if none is computed twice or discarded
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
		law("id and arrival are those of the request", o.ID == q.ID && o.ArrivalUS == q.ArrivalUS)
		times := []int64{o.ArrivalUS, o.AdmittedUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS,
			o.CompletedUS}
		law("times in causal order", sortedThenNever(times))
		law("one ascending time for each token", len(o.TokensUS) == o.Generated && rising(o.TokensUS))
		law("tokens seen in order, none before the end of its step", len(o.SeenUS) == o.Generated && rising(o.SeenUS) &&
			after(o.SeenUS, o.TokensUS))
		law("completed if and only if all tokens were generated",
			(o.State == Completed) == (o.Generated == q.Output) && (o.State == Completed) == (o.CompletedUS != Never))
		law("has a replica if and only if routed", (o.Replica != Never) == (o.RoutedUS != Never))
		law("cached full blocks, not the last token", o.Cached%c.BlockSize == 0 && o.Cached < q.Input)
		law("expected full blocks", o.ExpectedCached%c.BlockSize == 0 && o.ExpectedCached <= q.Input)
		law("has a reason unless completed or not offered",
			(o.Reason == "") == (o.State == Completed || o.State == BeyondHorizon))
		law("scheduled when a step starts; the last step may not be listed",
			o.ScheduledUS == Never || c.Pipeline != nil || startsAt(r.Steps[o.Replica], o.ScheduledUS))
		law("a rejected request is not admitted", o.State != Rejected || o.AdmittedUS == Never)
		law("no token after the deadline", q.DeadlineUS == Never || len(o.TokensUS) == 0 ||
			slices.Max(o.TokensUS) <= q.DeadlineUS)
		law("no token after the horizon", c.HorizonUS == Never || len(o.TokensUS) == 0 ||
			slices.Max(o.TokensUS) <= c.HorizonUS)
		law("without a horizon every request finishes",
			c.HorizonUS != Never || o.State != Unfinished && o.State != BeyondHorizon)
	}
	computed := int64(0)
	for replica, steps := range r.Steps {
		checkSteps(t, seed, replica, steps, c, r.Retries > 0, !hasDeadlines(requests))
		for _, s := range steps {
			computed += s.Prefill + s.Decode + s.Drafts
		}
	}
	// The last step may not be listed, and with it overruns.
	most := int64(r.Async.Overruns)
	if c.Pipeline != nil { // the last steps may not be listed
		most += int64(len(requests))
	}
	if c.Speculation != nil { // wrong drafts, also of steps that come too late
		most = int64(r.Drafts.Drafted) + int64(len(requests)*2*(1+c.Speculation.Tokens))
	}
	if lost := computed - wanted; undisturbed && (lost < 0 || lost > most) {
		t.Errorf("seed %d: %d tokens computed, want %d and at most %d overruns", seed, computed, wanted,
			r.Async.Overruns)
	}
}

// checkSteps checks the laws for the steps of one replica. A victim of a batch that is formed again
// may be in the batch. Without deadlines a waiting request waits until the next step.
func checkSteps(t *testing.T, seed uint64, replica int, steps []Step, c Config, retries, patient bool) {
	t.Helper()
	for i, s := range steps {
		law := func(name string, holds bool) {
			if !holds {
				t.Errorf("seed %d: replica %d: %s: %+v", seed, replica, name, s)
			}
		}
		law("a step computes something, within the budget",
			s.Prefill+s.Decode > 0 && s.Prefill+s.Decode+s.Drafts <= int64(c.MaxNumBatchedTokens))
		us, alone := s.EndUS-s.StartUS, c.stepTime(s.Batch)+s.AdapterUS+s.EncoderUS
		law("the step time follows from the batch", us == alone || c.Pipeline != nil && us > alone)
		law("steps do not overlap", i == 0 || c.Pipeline != nil || s.StartUS >= steps[i-1].EndUS)
		// A victim whose last token is in flight waits for nothing else.
		law("a replica with work does not idle", i == 0 || !patient || c.Pipeline != nil || c.EncodePool != nil ||
			s.StartUS == steps[i-1].EndUS ||
			steps[i-1].Waiting == 0 || c.Async && steps[i-1].Waiting <= steps[i-1].Preempted)
		law("batch slots and blocks are within their limits",
			s.Running <= c.MaxNumSeqs && s.UsedBlocks <= c.usable())
		law("a victim waits", c.Async || c.Pipeline != nil || retries || s.Waiting >= s.Preempted)
		law("window sums do not exceed full sums", s.WindowPairs <= s.Pairs && s.WindowPriorContext <= s.PriorContext &&
			s.WindowContext <= s.Context && s.Pairs >= s.Prefill && s.Chunks <= s.Prefill)
		if c.Window == 0 {
			law("without a window the window sums are 0", s.WindowContext+s.WindowPriorContext+s.WindowPairs == 0)
		}
	}
}

// startsAt reports whether a step starts at that time or no later step has started.
func startsAt(steps []Step, at int64) bool {
	last := len(steps) - 1
	return last < 0 || at >= steps[last].EndUS ||
		slices.ContainsFunc(steps, func(s Step) bool { return s.StartUS == at })
}

func hasDeadlines(requests []Request) bool {
	return slices.ContainsFunc(requests, func(q Request) bool { return q.DeadlineUS != Never })
}

// after reports whether each time is at least the time at the same position in others.
func after(times, others []int64) bool {
	for i := range others {
		if times[i] < others[i] {
			return false
		}
	}
	return true
}

// rising reports whether each time is later than the one before.
func rising(times []int64) bool {
	for i := range times {
		if i > 0 && times[i] <= times[i-1] {
			return false
		}
	}
	return true
}

// sortedThenNever reports whether times are sorted and no time follows a Never.
func sortedThenNever(times []int64) bool {
	if i := slices.Index(times, Never); i >= 0 {
		if slices.ContainsFunc(times[i:], func(t int64) bool { return t != Never }) {
			return false
		}
		times = times[:i]
	}
	return slices.IsSorted(times)
}
