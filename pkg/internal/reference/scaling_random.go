package reference

import (
	"math/rand/v2"
	"slices"
)

// RandomScaling draws a small cluster with an auto-scaler. Its times are a few steps long.
func RandomScaling(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x7363616c))}
	if !slices.Contains([]string{"round-robin", "least-loaded", "least-snapshot", "power-of-two", "prefix-affinity",
		"weighted"}, c.Routing) {
		c.Routing = pick(d, "round-robin", "least-loaded")
	}
	c.Replicas = d.between(1, 4)
	step := c.stepTime(batchOf(min(c.MaxNumBatchedTokens, 20), 2, 20))
	steps := func(of ...int64) int64 { return step*pick(d, of...) + int64(pick(d, 0, 0, 0, 1)) }
	s := &Scaling{Min: d.between(1, c.Replicas), Max: c.Replicas + d.between(0, 4),
		Policy:     pick(d, "target-utilization", "queue-depth", "threshold"),
		Signal:     pick(d, "kv_util", "utilization", "queue_depth", "running", "inflight"),
		Tolerance:  pick(d, 0, 0.1, 0.1, 0.5),
		IntervalUS: max(1, steps(1, 2, 3, 5, 10)), UpWindowUS: steps(0, 0, 3, 10), DownWindowUS: steps(0, 0, 3, 10, 30),
		CooldownUS: steps(0, 0, 0, 5, 20), Select: pick(d, "max", "max", "min", "disabled"),
		ProvisionUS: steps(0, 0, 1, 3), LoadUS: steps(0, 1, 4), WarmupUS: steps(0, 3, 10),
		Curve: pick(d, "linear", "exponential", "step"), Factor: pick(d, 1.5, 2, 4), WarmingWaits: d.percent(30),
		Immediate: d.percent(30), Redirect: d.percent(40), TimeoutUS: steps(0, 0, 1, 3, 10), Step: d.between(1, 3)}
	s.Target = map[string]float64{"kv_util": 0.3, "utilization": 0.4, "queue_depth": 2, "running": 3,
		"inflight": 4}[s.Signal]
	if s.Policy == "queue-depth" {
		s.Target = 2
	}
	s.Up, s.Down = s.Target*1.2, s.Target*0.6
	e := &generator{Rand: rand.New(rand.NewPCG(seed, 0x7369676e))}
	if e.percent(50) {
		s.Policy = pick(e, "slo-attainment", "expression", "expression", "tree", "oscillator", "average-value")
		s.Formula = e.between(0, len(Formulas)-1)
	}
	if s.Policy == "average-value" {
		s.Target = 3
	}
	s.Each, s.Settle = s.Policy == "threshold" && e.percent(50), s.Policy == "threshold" && e.percent(50)
	if e.percent(25) {
		s.Trigger, s.HoldUS = e.between(1, len(Conditions)-1), step*pick[int64](e, 0, 0, 3, 10)
	}
	if s.Policy == "slo-attainment" {
		s.Up, s.Down = pick(e, 0.5, 0.95), pick(e, 0, 0.3, 0.8)
	}
	if s.Policy == "slo-attainment" || e.percent(50) {
		for i := range requests {
			if r := &requests[i]; r.Session == "" && e.percent(70) {
				r.TTFTTargetMS = float64(max(1, step*pick[int64](e, 1, 5, 20))) / 1000
			}
		}
	}
	for _, limits := range []*[]ScaleLimit{&s.UpLimits, &s.DownLimits} {
		for range d.between(0, 2) {
			l := ScaleLimit{Replicas: d.between(1, 2), PeriodUS: max(1, steps(1, 4, 15))}
			if d.percent(50) {
				l.Replicas, l.Percent = 0, pick(d, 25.0, 50, 100)
			}
			*limits = append(*limits, l)
		}
	}
	s.Immediate = s.Immediate && !s.Redirect
	if e.percent(40) {
		c.Flow = &Flow{Saturation: pick(e, 0.4, 1, 2), Order: "fifo", Fairness: "none", Capacity: pick(e, 0, 0, 4),
			TTLUS: pick(e, 0, 0, step*20)}
		if s.Min *= e.between(0, 1); s.Min == 0 && e.percent(70) { // with long pauses
			s.DownWindowUS, s.CooldownUS, s.Select = 0, 0, "max"
			for i := range requests {
				gap := 15 * step * int64(i/3)
				if r := &requests[i]; r.Session == "" {
					r.ArrivalUS += gap
					if r.DeadlineUS != Never {
						r.DeadlineUS += gap
					}
				}
			}
		}
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x706c616e))}
	if s.Policy == "threshold" {
		s.Inclusive, s.CheckRemoval, s.Cancel = g.percent(30), g.percent(40), s.Settle && g.percent(60)
		if s.Inclusive && s.Target > 1 {
			s.Up, s.Down = s.Target+1, s.Target-1 // values are integers
		}
	}
	if g.percent(25) {
		s.Policy = "predicted-load"
		s.Settle = g.percent(50)
		s.Cancel = s.Settle && g.percent(50)
		s.Predict = Prediction{Kalman: g.percent(50), TTFTMS: float64(step*pick[int64](g, 1, 3, 10, 100)) / 1000,
			TPOTMS: float64(step*pick[int64](g, 1, 2, 10)) / 1000, MaxChange: pick(g, 1, 2, 8), Level: pick(g, 1, 0.1),
			Trend: pick(g, 0.1, 1), Noise: pick(g, 10.0, 1), MinPoints: g.between(1, 5)}
	}
	c.Scaling = s
	return c, requests
}
