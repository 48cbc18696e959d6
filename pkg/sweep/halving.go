package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"blis/pkg/strictyaml"
)

// Halving runs all configurations on the first requests of the workloads, and only the better ones on more of them
// (successive halving; Jamieson and Talwalkar, AISTATS 2016). The last ones run on the whole workloads.
type Halving struct {
	// Requests, or sessions, are those of the first round. Each round has Factor times as many as the one before, and
	// one Factor-th of its configurations.
	Requests int     `yaml:"requests" json:"requests"`
	Factor   float64 `yaml:"factor" json:"factor"`
}

// UnmarshalYAML decodes over the defaults.
func (h *Halving) UnmarshalYAML(decode func(any) error) error {
	type plain Halving
	*h = Halving{Factor: 3}
	return decode((*plain)(h))
}

func (h *Halving) check(errorf strictyaml.Errorf) error {
	if h.Requests < 1 {
		return errorf("halving.requests", "must be at least 1, is %d", h.Requests)
	}
	if !(h.Factor >= 1.1 && h.Factor <= 100) {
		return errorf("halving.factor", "must be between 1.1 and 100, is %v", h.Factor)
	}
	return nil
}

// contender is a configuration with its points and their latest results.
type contender struct {
	points  []Point
	indexes []int
	results []*Result
}

// score is the mean over the points.
func (c *contender) score() float64 {
	sum := 0.0
	for _, r := range c.results {
		sum += r.Fitness.Score
	}
	return sum / float64(len(c.results))
}

// contenders groups points by configuration: those of one follow each other.
func contenders(g *Grid, workloads []string) (all []*contender) {
	each := max(len(g.Seeds), 1) * max(len(g.Rates), 1) * len(workloads)
	index := 0
	for p := range g.points(workloads) {
		if index%each == 0 {
			all = append(all, new(contender))
		}
		c := all[len(all)-1]
		c.points, c.indexes = append(c.points, p), append(c.indexes, index)
		index++
	}
	return all
}

// halve runs the rounds and writes a result of each point: that of the last round in which it was.
func (s *sweep) halve(ctx context.Context, g *Grid, write func(*Result) error) error {
	workloads := s.call.Workloads
	if g.Workloads != nil {
		workloads = g.Workloads
	}
	if s.fitness == nil {
		return errors.New("halving needs --fitness, by which configurations are compared")
	}
	all := contenders(g, workloads)
	shortest, err := s.shortest(workloads)
	if err != nil {
		return err
	}
	alive := slices.Clone(all)
	for n := float64(g.Halving.Requests); n < float64(shortest); n *= g.Halving.Factor {
		if err := s.round(ctx, alive, int(n)); err != nil {
			return err
		}
		slices.SortStableFunc(alive, func(a, b *contender) int { return cmp.Compare(b.score(), a.score()) })
		alive = alive[:int(math.Ceil(float64(len(alive))/g.Halving.Factor))]
	}
	if err := s.round(ctx, alive, 0); err != nil {
		return err
	}
	failed, total, first := 0, 0, ""
	for _, c := range all {
		for _, r := range c.results {
			if total++; r.failed() {
				failed, first = failed+1, cmp.Or(first, r.Error)
			}
			if err := write(r); err != nil {
				return err
			}
		}
	}
	if failed == total {
		return AllFailed{fmt.Errorf("no run of %d has metrics; the first: %s", total, first)}
	}
	return nil
}

// shortest is the number of requests and sessions of the shortest workload.
func (s *sweep) shortest(workloads []string) (int, error) {
	least := math.MaxInt
	for _, name := range workloads {
		w, err := s.workload(name, 0)
		if err != nil {
			return 0, err
		}
		least = min(least, w.Arrivals())
	}
	return least, nil
}

// round runs the points of contenders on the first n requests, 0 for all.
func (s *sweep) round(ctx context.Context, alive []*contender, n int) error {
	var points []Point
	for _, c := range alive {
		for _, p := range c.points {
			if n > 0 {
				if p.Rate != 0 {
					p.Workload, p.Rate = s.call.AtRate(p.Workload, p.Rate), 0
				}
				p.Workload = s.call.Prefix(p.Workload, n)
			}
			points = append(points, p)
		}
	}
	results, err := (&Runner{s}).Run(ctx, points)
	if err != nil {
		return err
	}
	if s.call.Progress != nil {
		s.call.Progress(len(results))
	}
	for _, c := range alive {
		c.results, results = results[:len(c.points)], results[len(c.points):]
		for i, r := range c.results {
			p := &c.points[i]
			r.Index, r.Workload, r.Rate, r.Prefix = c.indexes[i], p.Workload, p.Rate, n
		}
	}
	return nil
}
