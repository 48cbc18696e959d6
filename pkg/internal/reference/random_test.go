package reference

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const cases = 3000

// feature is something that a share of the random cases must have.
type feature struct {
	name    string
	percent float64
	has     func(Config, []Request, Result) bool
}

// ofConfig, ofRequest, ofOutcome and ofStep are features of a case that has one
// such thing, at least, for which has is true.
func ofConfig(name string, percent float64, has func(Config) bool) feature {
	return feature{name, percent, func(c Config, _ []Request, _ Result) bool { return has(c) }}
}

func ofRequest(name string, percent float64, has func(Request) bool) feature {
	return feature{name, percent, func(_ Config, q []Request, _ Result) bool { return slices.ContainsFunc(q, has) }}
}

func ofOutcome(name string, percent float64, has func(Outcome) bool) feature {
	return feature{name, percent, func(_ Config, _ []Request, r Result) bool {
		return slices.ContainsFunc(r.Outcomes, has)
	}}
}

func ofStep(name string, percent float64, has func(Step) bool) feature {
	return feature{name, percent, func(_ Config, _ []Request, r Result) bool {
		return slices.ContainsFunc(slices.Concat(r.Steps...), has)
	}}
}

func async(c Config) bool { return c.Async }

// ofAhead is a feature of a run that counts more than none of something.
func ofAhead(name string, percent float64, count func(AsyncCounts) int) feature {
	return feature{name, percent, func(_ Config, _ []Request, r Result) bool { return count(r.Async) > 0 }}
}

// asynchronous is a feature of those cases that are.
func asynchronous(f feature) feature {
	return feature{f.name, f.percent, func(c Config, q []Request, r Result) bool { return c.Async && f.has(c, q, r) }}
}

// features is what Random is for, with somewhat less than the shares it has.
func features() []feature {
	f := []feature{
		ofConfig("not chunked", 20, func(c Config) bool { return !c.Chunked }),
		ofConfig("no prefix cache", 10, func(c Config) bool { return !c.PrefixCaching }),
		ofConfig("threshold", 20, func(c Config) bool { return c.LongPrefillThreshold > 0 }),
		ofConfig("budget up to 8", 10, func(c Config) bool { return c.MaxNumBatchedTokens <= 8 }),
		ofConfig("blocks of 1", 10, func(c Config) bool { return c.BlockSize == 1 }),
		ofConfig("one batch slot", 6, func(c Config) bool { return c.MaxNumSeqs == 1 }),

		ofRequest("prompt of one token", 50, func(q Request) bool { return q.Input == 1 }),
		ofRequest("prompt of segments only", 50,
			func(q Request) bool { return len(q.Prompt) > 0 && named(q) == q.Input }),
		ofRequest("prompt of segments and unique tokens", 50, func(q Request) bool {
			return len(q.Prompt) > 0 &&
				named(q) < q.Input
		}),
		ofRequest("prompt of another's output", 50, func(q Request) bool {
			return slices.ContainsFunc(q.Prompt, func(s Segment) bool { return strings.HasSuffix(s.ID, ".out") })
		}),
		{"prompt of full blocks above 1", 50, func(c Config, q []Request, _ Result) bool {
			return c.BlockSize > 1 && slices.ContainsFunc(q, func(q Request) bool { return q.Input%c.BlockSize == 0 })
		}},
		{"simultaneous arrivals", 80, func(_ Config, q []Request, _ Result) bool {
			return len(slices.CompactFunc(slices.Clone(q), func(a,
				b Request) bool {
				return a.ArrivalUS == b.ArrivalUS
			})) < len(q)
		}},

		ofStep("queueing", 60, func(s Step) bool { return s.Waiting > 0 }),
		ofStep("batches of several", 65, func(s Step) bool { return s.Running > 1 }),
		ofStep("prefill and decode in one step", 50, func(s Step) bool { return s.Prefill > 0 && s.Decode > 0 }),
		ofStep("steps of 1 µs", 10, func(s Step) bool { return s.EndUS == s.StartUS+1 }),
		ofStep("several victims in a step", 10, func(s Step) bool { return s.Preempted > 1 }),
		{"memory full", 45, func(c Config, _ []Request, r Result) bool {
			return ofStep("", 0, func(s Step) bool { return s.UsedBlocks == c.usable() }).has(c, nil, r)
		}},

		ofConfig("async", 36, async),
		ofConfig("reserve_full_sequence", 17, func(c Config) bool { return c.ReserveFull }),
		ofConfig("watermark", 17, func(c Config) bool { return c.Watermark > 0 }),
		ofConfig("none of the switches", 50,
			func(c Config) bool { return c.Switches == Switches{} && c.StepTime == nil }),
		ofConfig("step time from all sums", 12, func(c Config) bool { return c.StepTime != nil }),
		ofConfig("windows", 10, func(c Config) bool { return c.Window > 0 }),
		ofConfig("KV cache groups", 15, func(c Config) bool { return len(c.Groups) > 1 }),
		ofConfig("one group with a window", 1,
			func(c Config) bool { return len(c.Groups) == 1 && c.Groups[0].Window > 0 }),
		ofConfig("sparse windows", 10, func(c Config) bool { return c.Sparse }),
		ofConfig("blocks of several sizes", 5, func(c Config) bool {
			return slices.ContainsFunc(c.Groups, func(g Group) bool { return g.BlockSize != c.BlockSize })
		}),
		ofConfig("recurrent states", 8, func(c Config) bool { return c.stateBlock() > 0 }),
		ofConfig("states without a prefix cache", 1, func(c Config) bool {
			return c.stateBlock() == 0 && slices.ContainsFunc(c.Groups, func(g Group) bool { return g.State })
		}),
		{"requests that wait for a state", 1, func(_ Config, _ []Request, r Result) bool { return r.Deferred > 0 }},
		{"hits of groups shortened", 3, func(_ Config, _ []Request, r Result) bool { return r.Junctions > 0 }},
		{"blocked by reserve_full_sequence", 2, func(_ Config, _ []Request,
			r Result) bool {
			return r.ReservationBlocked > 0
		}},
		{"blocked by watermark", 4, func(_ Config, _ []Request, r Result) bool { return r.WatermarkBlocked > 0 }},
		ofAhead("victims with a token in flight", 12, func(a AsyncCounts) int { return a.PendingVictims }),
		ofAhead("draining victims", 2, func(a AsyncCounts) int { return a.DrainingVictims }),
		ofAhead("batches dropped", 3, func(a AsyncCounts) int { return a.DroppedBatches }),
		ofAhead("batches dropped with victims", 1, func(a AsyncCounts) int { return a.DroppedVictims }),
		ofAhead("batch slots of draining requests", 5, func(a AsyncCounts) int { return a.DrainingSlots }),
		ofAhead("overruns", 5, func(a AsyncCounts) int { return a.Overruns }),
		ofAhead("hashes when tokens arrive", 10, func(a AsyncCounts) int { return a.LateHashes }),
		ofAhead("lookups before the hash", 0.8, func(a AsyncCounts) int { return a.LateLookups }),
		ofAhead("abandoned steps", 1, func(a AsyncCounts) int { return a.AbandonedSteps }),
		asynchronous(
			ofOutcome("deadline between, async", 3, func(o Outcome) bool { return o.DeadlineAt == "between" })),
		asynchronous(ofOutcome("horizon, async", 3, func(o Outcome) bool { return o.Reason == "horizon" })),
		asynchronous(ofConfig("blocks of 1 to 3, async", 10, func(c Config) bool { return c.BlockSize <= 3 })),

		ofConfig("a queue by priority or length", 25, func(c Config) bool {
			return c.Scheduler != "" &&
				c.Scheduler != "fcfs"
		}),
		ofConfig("victims by priority", 20, func(c Config) bool { return c.Preemption == "lowest-priority" }),
		{"victims whose work was undone", 1, func(_ Config, _ []Request, r Result) bool { return r.UndoneVictims > 0 }},
		{"lowest priority preempts itself", 5, func(c Config, _ []Request, r Result) bool {
			return c.Preemption == "lowest-priority" && r.SelfPreempted > 0
		}},
		{"batches that preempt and are empty", 1, func(_ Config, _ []Request, r Result) bool { return r.Retries > 0 }},
		{"ties drawn", 25, func(_ Config, _ []Request, r Result) bool { return r.TieDraws > 0 }},
		ofConfig("least-inflight of ties", 9, func(c Config) bool { return c.Tie == "least-inflight" }),
		ofConfig("two choices", 5, func(c Config) bool { return c.Routing == "power-of-two" }),
		ofConfig("the longest prefix", 5, func(c Config) bool { return c.Routing == "prefix-affinity" }),
		ofConfig("a random pick", 3, func(c Config) bool { return c.Routing == "weighted" && c.Picker == "random" }),
		ofConfig("a random pick by score", 2,
			func(c Config) bool { return c.Routing == "weighted" && c.Picker == "weighted-random" }),
		ofConfig("snapshots", 15, func(c Config) bool { return c.SnapshotUS > 0 }),
		ofConfig("routing by stale load", 5, func(c Config) bool {
			return c.Routing == "least-snapshot" &&
				c.SnapshotUS > 0
		}),

		ofOutcome("preemption", 35, func(o Outcome) bool { return o.Preemptions > 0 }),
		{"more preemptions than requests", 4, func(_ Config, q []Request, r Result) bool {
			n := 0
			for _, o := range r.Outcomes {
				n += o.Preemptions
			}
			return n > len(q)
		}},
		{"duplicates", 25, func(_ Config, _ []Request, r Result) bool { return r.Duplicates > 0 }},
		{"evictions", 50, func(_ Config, _ []Request, r Result) bool { return r.Evictions > 0 }},
		ofOutcome("prefix hits", 40, func(o Outcome) bool { return o.Cached > 0 }),
		ofOutcome("a second replica", 30, func(o Outcome) bool { return o.Replica > 0 }),
		ofOutcome("expected hits", 15, func(o Outcome) bool { return o.ExpectedCached > 0 }),
		ofOutcome("expected hits missed", 10,
			func(o Outcome) bool { return o.Generated > 0 && o.Cached < o.ExpectedCached }),
		ofOutcome("deadline after preemption", 1, func(o Outcome) bool {
			return o.DeadlineAt == "queue" &&
				o.Preemptions > 0
		}),
		ofOutcome(BeyondHorizon, 4, func(o Outcome) bool { return o.State == BeyondHorizon }),
	}
	for _, reason := range []string{"too_long_for_model", "too_long_for_cache", "too_long_for_budget", "horizon"} {
		f = append(f, ofOutcome(reason, 3, func(o Outcome) bool { return o.Reason == reason }))
	}
	for _, met := range []string{"admission", "routing", "delay", "queue", "running", "between", "ahead", "flight"} {
		share := 5.0
		if met == "ahead" || met == "flight" {
			share = 0.6
		}
		f = append(f, ofOutcome("deadline in "+met, share, func(o Outcome) bool { return o.DeadlineAt == met }))
	}
	return f
}

func TestRandomCovers(t *testing.T) {
	features := features()
	counts := make([]int, len(features))
	for seed := range uint64(cases) {
		c, q := Random(seed)
		r := Run(c, q)
		checkLaws(t, seed, c, q, r)
		for i, f := range features {
			if f.has(c, q, r) {
				counts[i]++
			}
		}
		if t.Failed() {
			return
		}
	}
	for i, f := range features {
		share := 100 * float64(counts[i]) / cases
		t.Logf("%-32s %5.1f %%", f.name, share)
		if share < f.percent {
			t.Errorf("%s: in %.1f %% of cases, want %.0f", f.name, share, f.percent)
		}
	}
}

// TestRandomRepeats holds that a case is a function of its seed, and a run of
// its case.
func TestRandomRepeats(t *testing.T) {
	for seed := range uint64(100) {
		c, q := Random(seed)
		c2, q2 := Random(seed)
		if !reflect.DeepEqual(Run(c, q), Run(c2, q2)) {
			t.Fatalf("seed %d: two results", seed)
		}
		if (c.StepTime == nil) != (c2.StepTime == nil) {
			t.Fatalf("seed %d: two kinds of step time", seed)
		}
		c.StepTime, c2.StepTime = nil, nil // functions are not comparable; the results were
		if !reflect.DeepEqual(c, c2) || !reflect.DeepEqual(q, q2) {
			t.Fatalf("seed %d: two cases", seed)
		}
	}
	a, _ := Random(1)
	b, _ := Random(2)
	if reflect.DeepEqual(a, b) {
		t.Error("two seeds give one cluster")
	}
}
