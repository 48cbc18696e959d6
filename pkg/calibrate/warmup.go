package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/leastsq"
)

// A server that warms up stalls for at most maxWarmup seconds. First tokens are then late by
// lateScales robust standard deviations, and by more than their simulated TTFT; of the other
// requests hardly any are.
const (
	maxWarmup     = 60
	lateScales    = 10
	minStalled    = 5
	maxLateShare  = 0.01
	movedFraction = 0.02
)

// stall is a warm-up stall at the start of a run: the last arrival that met it, how many
// requests did, and their median delay, both in µs.
type stall struct {
	until    float64
	requests int
	delay    float64
}

func (s stall) text(name string) string {
	return fmt.Sprintf("%s: the server stalled while it warmed up: %d requests of the first %.2g s got "+
		"their first tokens late, by a median of %.3g s", name, s.requests, s.until/1e6, s.delay/1e6)
}

// findStall finds the stall among the selected requests, which must begin with the run's first; it
// has no requests if there was none.
func (r *replay) findStall(simulated []timing, selected []bool) (found stall) {
	delay := func(i int) float64 { return r.measured[i].ttft - simulated[i].ttft }
	var delays []float64
	for i, in := range selected {
		if in {
			delays = appendKnown(delays, delay(i))
		}
	}
	if len(delays) == 0 || !selected[0] {
		return stall{}
	}
	slices.Sort(delays)
	usual, n := delays[len(delays)/2], len(delays)
	for i := range delays {
		delays[i] -= usual
	}
	limit := lateScales * leastsq.Scale(delays)
	var late []float64
	for i, q := range r.requests {
		if d := delay(i); selected[i] && d-usual > limit && d > simulated[i].ttft {
			late = append(late, d)
			if q.ArrivalUS <= maxWarmup*1e6 && 2*len(late) > i+1 {
				found.until, found.requests = float64(q.ArrivalUS), len(late)
			}
		}
	}
	if found.requests < minStalled || float64(len(late)-found.requests) > maxLateShare*float64(n) {
		return stall{}
	}
	found.delay = slices.Sorted(slices.Values(late[:found.requests]))[found.requests/2]
	return found
}

// excludeWarmup fits again without the requests that arrived while a server stalled at the
// start of its run. They may be the only ones that identify a coefficient, as where prompts
// repeat and only the first are not cached.
func (r *report) excludeWarmup(ctx context.Context, f *simFit) (*simFit, error) {
	all, _, err := f.simulate(ctx, f.value)
	if err != nil {
		return nil, err
	}
	var texts []string
	for k, run := range f.replays {
		s := run.findStall(all[k], run.fitted)
		if s.requests == 0 {
			continue
		}
		for i, q := range run.requests {
			if float64(q.ArrivalUS) <= s.until {
				run.fitted[i] = false
			}
		}
		texts = append(texts, s.text(run.name)+"; these seconds are excluded")
	}
	if texts == nil {
		return f, nil
	}
	if err := r.setup.checkEnough(f.replays); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(texts, "; "), err)
	}
	without := newSimFit(f.replays, f.shape, f.prior, loadOf(f.replays), f.known)
	if err := without.draft(ctx, []coefficients{f.value}); err != nil {
		return nil, err
	}
	var moved []string
	before, after := f.value, without.value
	for k := range names {
		if math.Abs(before[k]-after[k]) > movedFraction*after[k] {
			moved = append(moved, fmt.Sprintf("%s would be %.4g instead of %.4g", names[k], before[k], after[k]))
		}
	}
	if moved != nil {
		texts = append(texts, "with them "+strings.Join(moved, ", "))
	}
	r.setup.warnf("%s", strings.Join(texts, "; "))
	return without, nil
}
