package metrics

import (
	"math/big"
	"slices"

	"blis/pkg/stream"
)

// The definitions again, slowly: without running totals or groups, and with rational
// numbers instead of integers. Nothing here is shared with the package.

// slowValues returns the times of an outcome in ms, nil if missing.
var slowValues = map[string]func(*stream.Outcome) *big.Rat{
	"ttft": func(o *stream.Outcome) *big.Rat {
		if o.FirstTokenUS < 0 {
			return nil
		}
		return slowMS(o.ArrivalUS, o.FirstTokenUS)
	},
	"e2e": func(o *stream.Outcome) *big.Rat {
		if o.State != "completed" {
			return nil
		}
		return slowMS(o.ArrivalUS, o.CompletedUS)
	},
	"queue": func(o *stream.Outcome) *big.Rat {
		if o.ScheduledUS < 0 {
			return nil
		}
		return slowMS(o.EnqueuedUS, o.ScheduledUS)
	},
	"tpot": func(o *stream.Outcome) *big.Rat {
		if o.State != "completed" || o.OutputTokens == 1 {
			return nil
		}
		all := new(big.Rat).Sub(slowMS(o.ArrivalUS, o.CompletedUS), slowMS(o.ArrivalUS, o.FirstTokenUS))
		return all.Quo(all, big.NewRat(o.OutputTokens-1, 1))
	},
}

func slowMS(from, to stream.Micros) *big.Rat { return big.NewRat(int64(to-from), 1000) }

// slowDistribution sorts everything and interpolates at p·(n−1). eligible requests could
// have a value.
func slowDistribution(values []*big.Rat, eligible int64) *Distribution {
	if len(values) == 0 {
		return nil
	}
	slices.SortFunc(values, func(a, b *big.Rat) int { return a.Cmp(b) })
	n := int64(len(values))
	sum := new(big.Rat)
	for _, v := range values {
		sum.Add(sum, v)
	}
	at := func(percent int64) float64 {
		place := new(big.Rat).Mul(big.NewRat(percent, 100), big.NewRat(n-1, 1))
		below := new(big.Int).Div(place.Num(), place.Denom()).Int64()
		above := min(below+1, n-1)
		weight := new(big.Rat).Sub(place, big.NewRat(below, 1))
		step := new(big.Rat).Sub(values[above], values[below])
		return float(new(big.Rat).Add(values[below], step.Mul(step, weight)))
	}
	return &Distribution{Count: n, Mean: float(sum.Quo(sum, big.NewRat(n, 1))),
		P50: at(50), P90: at(90), P95: at(95), P99: at(99), Max: at(100), Coverage: slowRatio(n, eligible)}
}

func float(r *big.Rat) float64 {
	f, _ := r.Float64()
	return f
}

// slowGroup returns the group of the outcomes and sessions that keep selects.
func slowGroup(outcomes []stream.Outcome, sessions []stream.SessionOutcome, classes []stream.SLOClass, seconds *big.Rat,
	keep func(*stream.Outcome) bool) *Group {
	g := &Group{}
	r := &g.Requests
	var multiToken, notIssuedWithTargets int64
	for _, s := range sessions {
		if s.State != "broken" || !keep(&stream.Outcome{SLOClass: s.SLOClass, Tenant: s.Tenant}) {
			continue
		}
		r.NotIssued += s.Calls - s.Offered
		for _, c := range classes {
			if c.Name == s.SLOClass && c.Targets != (stream.Targets{}) {
				notIssuedWithTargets += s.Calls - s.Offered
			}
		}
	}
	var admitted, preemptions, met, withTargets, scheduled, prompt, cached, completedTokens, completedOutput int64
	values := map[string][]*big.Rat{}
	for i := range outcomes {
		o := &outcomes[i]
		if !keep(o) {
			continue
		}
		r.Offered++
		*map[string]*int64{"completed": &r.Completed, "rejected": &r.Rejected, "timed_out": &r.TimedOut,
			"failed": &r.Failed, "unfinished": &r.Unfinished}[o.State]++
		if o.AdmittedUS >= 0 {
			admitted++
		}
		preemptions += o.Preemptions
		if o.ScheduledUS >= 0 {
			scheduled++
			prompt += o.InputTokens
			cached += o.CachedTokens
		}
		if o.State == "completed" {
			completedOutput += o.OutputTokens
			completedTokens += o.InputTokens + o.OutputTokens
		}
		for _, c := range classes {
			if c.Name == o.SLOClass && c.Targets != (stream.Targets{}) {
				withTargets++
				if slowMet(o, c.Targets) {
					met++
				}
			}
		}
		if o.OutputTokens > 1 {
			multiToken++
		}
		for name, pick := range slowValues {
			if v := pick(o); v != nil {
				values[name] = append(values[name], v)
			}
		}
	}
	g.TTFT, g.TPOT = slowDistribution(values["ttft"], r.Offered+r.NotIssued),
		slowDistribution(values["tpot"], multiToken+r.NotIssued)
	g.E2E, g.Queue = slowDistribution(values["e2e"], r.Offered+r.NotIssued),
		slowDistribution(values["queue"], r.Offered+r.NotIssued)
	g.Targeted = slowTargeted(outcomes, sessions, classes, seconds, keep)
	g.AdmissionRate, g.KV.PrefixHitRatio, g.PreemptionRate = slowRatio(admitted, r.Offered), slowRatio(cached, prompt),
		slowRatio(preemptions, scheduled)
	r.Admitted, g.KV.Preemptions = &admitted, &preemptions
	if g.E2E != nil && g.E2E.P50 > 0 {
		blowup := g.E2E.P99 / g.E2E.P50
		g.TailBlowup = &blowup
	}
	rate := func(n int64) float64 { return float(new(big.Rat).Quo(big.NewRat(n, 1), seconds)) }
	if withTargets+notIssuedWithTargets > 0 {
		g.Goodput = &Goodput{Ratio: float64(met) / float64(withTargets+notIssuedWithTargets), Met: met,
			Offered: withTargets, NotIssued: notIssuedWithTargets}
	}
	if seconds.Sign() > 0 {
		g.Throughput = &Throughput{rate(r.Completed), rate(completedOutput), rate(completedTokens)}
		if withTargets+notIssuedWithTargets > 0 {
			rps := rate(met)
			g.Goodput.RPS = &rps
		}
	}
	return g
}

// slowTargeted lists for each latency the requests whose class has a target for it, or all if there is none,
// and lets those without the latency be later than all others.
func slowTargeted(outcomes []stream.Outcome, sessions []stream.SessionOutcome, classes []stream.SLOClass,
	seconds *big.Rat, keep func(*stream.Outcome) bool) *Targeted {
	offered := &Targeted{}
	for name, at := range map[string]**TargetedLatency{"ttft": &offered.TTFT, "tpot": &offered.TPOT,
		"e2e": &offered.E2E} {
		promised := func(class string) bool {
			for _, c := range classes {
				if c.Name == class {
					return map[string]float64{"ttft": c.Targets.TTFTMS, "tpot": c.Targets.TPOTMS,
						"e2e": c.Targets.E2EMS}[name] > 0
				}
			}
			return false
		}
		var values, all []*big.Rat // nil: it has none
		for _, only := range []bool{false, true} {
			values = nil
			for i := range outcomes {
				o := &outcomes[i]
				if keep(o) && (!only || promised(o.SLOClass)) && (name != "tpot" || o.OutputTokens > 1) {
					values = append(values, slowValues[name](o))
				}
			}
			for _, s := range sessions {
				if s.State == "broken" && keep(&stream.Outcome{SLOClass: s.SLOClass, Tenant: s.Tenant}) &&
					(!only || promised(s.SLOClass)) {
					values = append(values, make([]*big.Rat, s.Calls-s.Offered)...)
				}
			}
			if !only {
				all = values
			} else if len(values) == 0 {
				values = all
			}
		}
		if len(values) < len(all) || slices.Contains(values, nil) {
			*at = slowTargetedLatency(values, seconds)
		}
	}
	if *offered == (Targeted{}) {
		return nil
	}
	return offered
}

func slowTargetedLatency(values []*big.Rat, seconds *big.Rat) *TargetedLatency {
	n, known, sum := int64(len(values)), []*big.Rat{}, new(big.Rat)
	for _, v := range values {
		if v == nil {
			sum.Add(sum, new(big.Rat).Mul(seconds, big.NewRat(1000, 1)))
		} else {
			sum.Add(sum, v)
			known = append(known, v)
		}
	}
	slices.SortFunc(known, func(a, b *big.Rat) int { return a.Cmp(b) })
	at := func(percent int64) *float64 {
		place := new(big.Rat).Mul(big.NewRat(percent, 100), big.NewRat(n-1, 1))
		below := new(big.Int).Div(place.Num(), place.Denom()).Int64()
		above := below
		if !place.IsInt() {
			above++
		}
		if above >= int64(len(known)) {
			return nil
		}
		step := new(big.Rat).Sub(known[above], known[below])
		x := float(step.Add(known[below], step.Mul(step, new(big.Rat).Sub(place, big.NewRat(below, 1)))))
		return &x
	}
	return &TargetedLatency{Count: n, Coverage: float64(len(known)) / float64(n),
		Mean: float(sum.Quo(sum, big.NewRat(n, 1))), P50: at(50), P90: at(90), P95: at(95), P99: at(99), Max: at(100)}
}

func slowRatio(a, b int64) *float64 {
	if b == 0 {
		return nil
	}
	f := float(big.NewRat(a, b))
	return &f
}

// slowMet compares with the target as written by people, in floating point.
func slowMet(o *stream.Outcome, t stream.Targets) bool {
	met := o.State == "completed"
	for name, target := range map[string]float64{"ttft": t.TTFTMS, "tpot": t.TPOTMS, "e2e": t.E2EMS} {
		if v := slowValues[name](o); target > 0 && v != nil && float(v) > target {
			met = false
		}
	}
	return met
}
