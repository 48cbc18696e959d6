package reference

import (
	"math/rand/v2"
	"slices"
)

// RandomFailures draws a small cluster with replicas that fail, half of the time with an auto-scaler, else sometimes
// with flow control. Its times are a few steps long.
func RandomFailures(seed uint64) (Config, []Request) {
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x6661696c))}
	c, requests := RandomScaling(seed)
	step := c.stepTime(batchOf(min(c.MaxNumBatchedTokens, 20), 2, 20))
	steps := func(of ...int64) int64 { return step*pick(d, of...) + int64(pick(d, 0, 0, 0, 1)) }
	f := defaultFailures()
	if c.Scaling != nil && d.percent(50) {
		f.Start = Scaling{LoadUS: c.Scaling.LoadUS, WarmupUS: c.Scaling.WarmupUS, Curve: c.Scaling.Curve,
			Factor: c.Scaling.Factor, WarmingWaits: c.Scaling.WarmingWaits}
		c.Scaling = nil
		if d.percent(40) {
			c.Flow = &Flow{Saturation: pick(d, 0.4, 1, 2), Order: pick(d, "fifo", "priority", "deadline"),
				Fairness: pick(d, "none", "round-robin"), Bands: d.percent(30), Capacity: pick(d, 0, 0, 4),
				TTLUS: pick(d, 0, 0, step*20)}
			d.assignTenants(requests, step)
		}
	}
	d.drawEvents(f, requests, step, func(*Failure) int {
		if replica := d.IntN(c.Replicas); c.Scaling == nil || !d.percent(30) {
			return replica
		}
		return d.IntN(c.Scaling.Max + 2)
	})
	if d.percent(60) {
		f.ProbeUS, f.Probes = max(1, steps(1, 2, 5, 10)), d.between(1, 3)
	}
	if d.percent(30) {
		for i := range requests {
			if r := &requests[i]; d.percent(60) && !r.Tool {
				r.On = []string{failed}
				for range d.between(1, 3) {
					r.BackoffUS = append(r.BackoffUS, int64(pick(d, 0, 1, step, 5*step)))
				}
			}
		}
	}
	c.Failures = f
	return c, requests
}

// drawEvents adds failures of replicas that replica draws.
func (d *generator) drawEvents(f *Failures, requests []Request, step int64, replica func(*Failure) int) {
	steps := func(of ...int64) int64 { return step*pick(d, of...) + int64(pick(d, 0, 0, 0, 1)) }
	last := int64(0)
	for _, r := range requests {
		last = max(last, r.ArrivalUS)
	}
	last += 10 * step
	for range pick(d, 1, 2, 4, 8) {
		e := Failure{AtUS: max(1, d.Int64N(last+1)), ForUS: steps(1, 3, 10, 30)}
		e.Replica = replica(&e)
		e.Redirect = d.percent(50)
		if d.percent(15) {
			e.ForUS = Never
		}
		if d.percent(40) { // when something else is
			e.AtUS = pick(d, requests...).ArrivalUS + step*int64(d.between(0, 3))
		}
		switch {
		case d.percent(30):
			e.Factor = pick(d, 1, 1.5, 3, 7)
			e.Redirect = false
		case d.percent(30):
			e.Cut, e.ForUS, e.Redirect = true, max(1, e.ForUS), false
		}
		f.Events = append(f.Events, e)
	}
	slices.SortStableFunc(f.Events, func(a, b Failure) int { return int(a.AtUS - b.AtUS) })
}
