package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A server that warms up as its first requests come stalls for so many seconds at most.
// Then first tokens are late by so many robust standard deviations, and by as much as
// they take in a simulation; of the rest hardly any are.
const (
	longestStall  = 60
	stalledErrors = 10
	leastStalled  = 5
	mostLater     = 0.01
)

// stall finds a stall at a run's start: up to when requests came that met it, in µs, how
// many these are, and by how many µs the first tokens of half of them are late. 0: none.
func (r *run) stall(simulated []seen) (until float64, stalled int, middle float64) {
	var off []float64
	for i, s := range r.measured {
		if r.used[i] {
			off = append(off, s.ttft-simulated[i].ttft)
		}
	}
	off = slices.DeleteFunc(off, math.IsNaN)
	if len(off) == 0 || !r.used[0] {
		return 0, 0, 0
	}
	slices.Sort(off)
	usual := off[len(off)/2]
	for i := range off {
		off[i] -= usual
	}
	spread := deviation(off)
	late := func(i int) (us float64, is bool) {
		us = r.measured[i].ttft - simulated[i].ttft
		return us, r.used[i] && us-usual > stalledErrors*spread && us > simulated[i].ttft
	}
	var by []float64
	came, all := 0, 0
	for i, q := range r.requests {
		us, is := late(i)
		if is {
			all++
		}
		if q.ArrivalUS > longestStall*1e6 {
			continue
		}
		came++
		if is {
			by = append(by, us)
		}
		if is && 2*len(by) > came {
			until, stalled = float64(q.ArrivalUS), len(by)
		}
	}
	if stalled < leastStalled || float64(all-stalled) > mostLater*float64(len(off)) {
		return 0, 0, 0
	}
	by = slices.Sorted(slices.Values(by[:stalled]))
	return until, stalled, by[stalled/2]
}

// withoutStalls fits again without the requests that came while a server stalled at the
// start of its run: they may well be the only ones that tell a coefficient, as where
// prompts repeat and only the first are cold.
func (r *Report) withoutStalls(ctx context.Context, f *clientFit) (*clientFit, error) {
	m, err := f.Coefficients.model()
	if err != nil {
		return nil, err
	}
	var told []string
	for _, run := range f.runs {
		simulated, err := run.play(ctx, m)
		if err != nil {
			return nil, err
		}
		until, stalled, middle := run.stall(simulated)
		if stalled == 0 {
			continue
		}
		for i, q := range run.requests {
			if float64(q.ArrivalUS) <= until {
				run.used[i] = false
			}
		}
		told = append(told, fmt.Sprintf("%s: the first tokens of %d requests of its first %.2g s came late, half of them by %.3g s and more: the server was warming up, and nothing is fitted to these seconds", run.name, stalled, until/1e6, middle/1e6))
	}
	if told == nil {
		return f, nil
	}
	if err := r.setup.enough(f.runs); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(told, "; "), err)
	}
	without := posed(f.runs, f.prior, loadOf(f.runs), f.before)
	if err := without.fit(ctx, []Coefficients{f.Coefficients}); err != nil {
		return nil, err
	}
	var moved []string
	was, is := f.list(), without.list()
	for k := range names {
		if math.Abs(was[k]-is[k]) > 0.02*is[k] {
			moved = append(moved, fmt.Sprintf("%s would be %.4g, not %.4g", names[k], was[k], is[k]))
		}
	}
	if moved != nil {
		told = append(told, "with them "+strings.Join(moved, ", "))
	}
	r.setup.warnf("%s", strings.Join(told, "; "))
	return without, nil
}

// warnStall tells of a stall that a part begins with that judges.
func (r *Report) warnStall(p *part) {
	judged := *p.run
	judged.used = p.in
	if until, stalled, middle := judged.stall(p.simulated); stalled > 0 {
		r.setup.warnf("%s: the first tokens of %d requests of its first %.2g s came late, half of them by %.3g s and more: the server was warming up, which no model tells of, and the errors count these seconds", p.name, stalled, until/1e6, middle/1e6)
	}
}
