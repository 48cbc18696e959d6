package reference

import (
	"math"
	"slices"
)

// advice is the number of replicas that the policy recommends.
func (s *simulation) advice(x *scaler, current int, now int64) int {
	c := x.config
	running := s.inStates(x, "warming", "ready")
	var values []float64
	sum := 0.0
	for _, i := range running {
		values = append(values, s.signal(x, i))
		sum += values[len(values)-1]
	}
	mean := sum / float64(max(1, len(values)))
	if c.Each && len(values) > 0 {
		mean = slices.Max(values)
	}
	switch c.Policy {
	case "expression", "tree":
		return roundUp(max(0, Formulas[c.Formula].of(s.deployment(x, now))))
	case "oscillator":
		if len(x.looks)%2 == 1 {
			return current + c.Step
		}
		return current - c.Step
	case "slo-attainment":
		d := s.deployment(x, now)
		switch {
		case d.judged > 0 && d.attained < c.Up:
			return current + c.Step
		case len(running) > 0 && d.utilization < c.Down:
			return current - c.Step
		}
		return current
	case "threshold":
		return s.threshold(x, mean, len(running), current)
	case "predicted-load":
		return s.predictedLoad(x, len(running), current)
	case "average-value":
		inflight, usage, waiting := 0.0, 0.0, float64(len(s.flow.waiting))
		for _, i := range running {
			inflight += float64(s.inflight(i))
			usage += s.report(i).usage
		}
		return max(c.share(inflight, c.Target, current), c.share(usage, 0.3, current), c.share(waiting, 2, current))
	case "queue-depth":
		total := float64(len(s.flow.waiting))
		for _, i := range running {
			total += float64(s.report(i).queued)
		}
		return c.share(total, c.Target, current)
	}
	provisioning := len(s.inStates(x, "provisioning"))
	return c.forMean(values, current-len(running)-provisioning, provisioning)
}

// forMean is Kubernetes' rule for a mean.
func (c *Scaling) forMean(values []float64, loading, provisioning int) int {
	current := len(values) + loading + provisioning
	if len(values) == 0 {
		return current
	}
	mean := func(all []float64) float64 {
		sum := 0.0
		for _, v := range all {
			sum += v
		}
		return sum / float64(len(all)) / c.Target
	}
	ratio := mean(values)
	if loading == 0 && (provisioning == 0 || ratio <= 1) {
		if inside(ratio, c.Tolerance) {
			return current
		}
		return roundUp(ratio * float64(len(values)))
	}
	all := slices.Clone(values)
	for range loading {
		if ratio < 1 {
			all = append(all, c.Target)
		} else {
			all = append(all, 0)
		}
	}
	if ratio > 1 {
		all = append(all, make([]float64, provisioning)...)
	}
	turned := mean(all)
	if inside(turned, c.Tolerance) || ratio < 1 && turned >= 1 || ratio >= 1 && turned < 1 {
		return current
	}
	advice := roundUp(turned * float64(len(all)))
	if turned < 1 {
		return min(advice, current)
	}
	return max(advice, current)
}

// share is how many replicas a total needs, of which each has its share.
func (c *Scaling) share(total, target float64, current int) int {
	if current > 0 && inside(total/(target*float64(current)), c.Tolerance) {
		return current
	}
	return roundUp(total / target)
}

func inside(ratio, tolerance float64) bool {
	return ratio >= 1-tolerance-1e-9 && ratio <= 1+tolerance+1e-9
}

func roundUp(x float64) int { return int(math.Ceil(x - 1e-9)) }

// lastReport is what a replica reported last. A new one has nothing to do.
type lastReport struct {
	queued, running int
	usage           float64
}

func (s *simulation) report(i int) lastReport {
	of, i := s.routerOf(i)
	r := &of.reports
	if i >= len(r.queued) {
		return lastReport{}
	}
	return lastReport{r.queued[i], r.running[i], r.usage[i]}
}

// signal is a replica's value of the signal.
func (s *simulation) signal(x *scaler, i int) float64 {
	r := s.report(i)
	switch x.config.Signal {
	case "kv_util":
		return r.usage
	case "utilization":
		return float64(r.running) / float64(s.replicas[i].config.MaxNumSeqs)
	case "queue_depth":
		return float64(r.queued)
	case "running":
		return float64(r.running)
	}
	return float64(s.inflight(i))
}
