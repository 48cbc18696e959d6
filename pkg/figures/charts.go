package figures

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/chart"
	"blis/pkg/registry"
)

// maxLines is how many lines a chart of replicas has.
const maxLines = 8

// Charts are the figures that can be drawn alone. Some are of one run only.
var Charts = registry.Table[func(runs []*Run) (*chart.Chart, error)]{
	{Name: "ttft", Doc: "cumulative distribution of TTFT", Value: cumulative("ttft", "TTFT")},
	{Name: "tpot", Doc: "cumulative distribution of TPOT", Value: cumulative("tpot", "TPOT")},
	{Name: "e2e", Doc: "cumulative distribution of E2E", Value: cumulative("e2e", "E2E")},
	{Name: "queue", Doc: "cumulative distribution of the time before the first batch",
		Value: cumulative("queue", "time in queue")},
	{Name: "ttft-time", Doc: "p50 and p99 of TTFT by time of arrival", Value: percentilesOverTime("ttft", "TTFT")},
	{Name: "tpot-time", Doc: "p50 and p99 of TPOT by time of arrival", Value: percentilesOverTime("tpot", "TPOT")},
	{Name: "e2e-time", Doc: "p50 and p99 of E2E by time of arrival", Value: percentilesOverTime("e2e", "E2E")},
	{Name: "rate", Doc: "arrivals, completions and missed SLO targets over time", Value: rates},
	{Name: "load", Doc: "requests in queues and in batches over time", Value: load},
	{Name: "waiting", Doc: "requests in the queue of each replica over time",
		Value: byReplica(waitingRequests, func(s *replicaSeries, i int) []float64 { return s.Waiting[i] })},
	{Name: "running", Doc: "requests in the batch of each replica over time",
		Value: byReplica("running requests", func(s *replicaSeries, i int) []float64 { return s.Running[i] })},
	{Name: "kv", Doc: "used KV blocks of each replica over time", Value: kvBlocks},
}

const waitingRequests = "waiting requests"

// title is that of a chart of runs.
func title(what string, runs []*Run) string {
	if len(runs) > 1 {
		return fmt.Sprintf("%s of %d runs", what, len(runs))
	}
	return what + " of " + runs[0].Name
}

// cumulative returns a chart of the distribution of a latency: of runs or, if there is one, of its classes.
func cumulative(latency, name string) func(runs []*Run) (*chart.Chart, error) {
	return func(runs []*Run) (*chart.Chart, error) {
		c := &chart.Chart{Title: title(name, runs), X: chart.Axis{Label: name + ", ms", Log: true},
			Y:       chart.Axis{Label: "share of requests with at most this " + name, Percent: true, Zero: true},
			Columns: []string{"p50", "p90", "p99", "max"}}
		for _, r := range runs {
			for i := range r.Distributions {
				if d := &r.Distributions[i]; d.Latency == latency && (len(runs) == 1 || d.Class == "") {
					r.addDistribution(c, d, len(runs) == 1)
				}
			}
		}
		if len(c.Lines) == 0 {
			return nil, fmt.Errorf("no request has a %s", name)
		}
		toLogarithms(c)
		return c, nil
	}
}

// addDistribution adds the line of a distribution and, if its targets are shown, a rule at the target of its class.
func (r *Run) addDistribution(c *chart.Chart, d *distribution, targets bool) {
	l := chart.Line{Name: d.Class}
	switch {
	case d.Class != "":
	case targets && len(r.Classes) > 1:
		l.Name = "all"
	default:
		l.Name = r.Name
	}
	for i, ms := range d.MS {
		l.Points = append(l.Points, chart.Point{X: ms, Y: float64(Permilles[i]) / 1000})
	}
	for _, p := range []int64{500, 900, 990, 1000} {
		l.Numbers = append(l.Numbers, d.MS[slices.Index(Permilles, p)])
	}
	for _, class := range r.Classes {
		target := map[string]float64{"ttft": class.TTFTMS, "tpot": class.TPOTMS, "e2e": class.E2EMS}[d.Latency]
		if targets && target > 0 && (class.Name == d.Class || len(r.Classes) == 1) {
			c.Rules = append(c.Rules, chart.Rule{X: target, Line: len(c.Lines)})
		}
	}
	c.Lines = append(c.Lines, l)
}

// toLogarithms makes the lines drawable on a logarithmic scale: latencies of 0 move to the smallest latency above 0, or
// to 10⁻⁵ of the largest. If all are equal, the axis gets a width.
func toLogarithms(c *chart.Chart) {
	smallest, largest := math.Inf(1), 0.0
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if largest = max(largest, p.X); p.X > 0 {
				smallest = min(smallest, p.X)
			}
		}
	}
	if largest == 0 {
		smallest, largest = 1e-3, 1e-3
	}
	smallest = max(smallest, largest/1e5)
	for i := range c.Lines {
		l := &c.Lines[i]
		for k := range l.Points {
			l.Points[k].X = max(l.Points[k].X, smallest)
		}
		atSmallest := 0 // points there but the last
		for atSmallest+1 < len(l.Points) && l.Points[atSmallest+1].X == smallest {
			atSmallest++
		}
		if smallest == largest {
			l.Points = []chart.Point{{X: smallest / 1.2}, {X: smallest}, {X: smallest, Y: 1}, {X: smallest * 1.2, Y: 1}}
			continue
		}
		l.Points = l.Points[atSmallest:]
	}
}

// overTime returns an empty chart of numbers over time.
func overTime(what, unit string, runs []*Run) *chart.Chart {
	return &chart.Chart{Title: title(what, runs), X: chart.Axis{Label: "time, s"},
		Y: chart.Axis{Label: unit, Zero: true}, Columns: []string{"mean", "max_mean"}}
}

// steps returns the line of means of intervals of a width, the last of which ends at until.
func steps(name string, values []*float64, width, until float64) chart.Line {
	l := chart.Line{Name: name, Step: true}
	sum, time, largest := 0.0, 0.0, math.NaN()
	for i, v := range values {
		from, to := float64(i)*width, min(until, float64(i+1)*width)
		y := math.NaN()
		if v != nil {
			y = *v
			sum, time = sum+float64(y*(to-from)), time+to-from
			if !(largest >= y) {
				largest = y
			}
		}
		l.Points = append(l.Points, chart.Point{X: from, Y: y})
	}
	l.Points = append(l.Points, chart.Point{X: until, Y: l.Points[len(l.Points)-1].Y})
	l.Numbers = []float64{sum / time, largest}
	return l
}

// pointers returns pointers to values, of which none is missing.
func pointers(values []float64) []*float64 {
	all := make([]*float64, len(values))
	for i := range values {
		all[i] = &values[i]
	}
	return all
}

// percentilesOverTime returns a chart of the p50 and p99 of a latency by time of arrival; of several runs, the p99.
func percentilesOverTime(latency, name string) func(runs []*Run) (*chart.Chart, error) {
	return func(runs []*Run) (*chart.Chart, error) {
		what := name + " by time of arrival"
		if len(runs) > 1 {
			what = "p99 of " + what
		}
		c := overTime(what, name+", ms", runs)
		c.Columns = []string{"max"}
		add := func(r *Run, line string, values []*float64) {
			l := steps(line, values, r.Time.WidthS, r.UntilS)
			l.Numbers, l.Peak = l.Numbers[1:], true
			c.Lines = append(c.Lines, l)
		}
		for _, r := range runs {
			for _, p := range r.Time.Percentiles {
				switch {
				case p.Latency != latency:
				case len(runs) > 1:
					add(r, r.Name, p.P99)
				default:
					add(r, "p50", p.P50)
					add(r, "p99", p.P99)
				}
			}
		}
		if len(c.Lines) == 0 {
			return nil, fmt.Errorf("no request has a %s", name)
		}
		return c, nil
	}
}

func rates(runs []*Run) (*chart.Chart, error) {
	c := overTime("requests per second", "requests/s", runs)
	for _, r := range runs {
		for _, s := range []struct {
			name   string
			counts []int
		}{{"arrivals", r.Time.Arrived}, {"completions", r.Time.Completed}, {"missed targets", r.Time.Missed}} {
			name := s.name
			switch {
			case len(runs) > 1 && s.name != "completions", s.name == "missed targets" && !r.hasTargets():
				continue
			case len(runs) > 1:
				name, c.Y.Label = r.Name, "completions/s"
			}
			perSecond := make([]float64, len(s.counts))
			for i, n := range s.counts {
				width := min(r.UntilS, float64(i+1)*r.Time.WidthS) - float64(i)*r.Time.WidthS
				perSecond[i] = float64(n) / width
			}
			c.Lines = append(c.Lines, steps(name, pointers(perSecond), r.Time.WidthS, r.UntilS))
		}
	}
	return c, nil
}

// hasTargets reports whether a class has SLO targets.
func (r *Run) hasTargets() bool {
	return slices.ContainsFunc(r.Classes, func(t targets) bool { return t.TTFTMS > 0 || t.TPOTMS > 0 || t.E2EMS > 0 })
}

func load(runs []*Run) (*chart.Chart, error) {
	c := overTime("requests in the system", "requests", runs)
	for _, r := range runs {
		if len(runs) == 1 {
			c.Lines = append(c.Lines, steps("running", pointers(r.Time.Running), r.Time.WidthS, r.UntilS))
			if r.Time.Waiting != nil {
				c.Lines = append(c.Lines, steps("waiting", pointers(r.Time.Waiting), r.Time.WidthS, r.UntilS))
			}
			continue
		}
		both := slices.Clone(r.Time.Running)
		for i, x := range r.Time.Waiting {
			both[i] += x
		}
		c.Lines = append(c.Lines, steps(r.Name, pointers(both), r.Time.WidthS, r.UntilS))
	}
	return c, nil
}

// byReplica returns a chart with a line for each replica of one run.
func byReplica(what string, of func(s *replicaSeries, i int) []float64) func(runs []*Run) (*chart.Chart, error) {
	return func(runs []*Run) (*chart.Chart, error) {
		s := &runs[0].Replicas
		if len(runs) == 1 && len(s.Names) > 0 && len(s.Waiting) == 0 && what == waitingRequests {
			return nil, fmt.Errorf("%s does not say when requests left their queues", runs[0].Name)
		}
		return replicaChart(what, what, runs, func(s *replicaSeries, i int) []*float64 { return pointers(of(s, i)) })
	}
}

func kvBlocks(runs []*Run) (*chart.Chart, error) {
	s := &runs[0].Replicas
	if len(runs) == 1 && len(s.KV) == 0 {
		return nil, fmt.Errorf("%s has no KV blocks over time: they need blis-sim --trace full", runs[0].Name)
	}
	unit := "used KV blocks"
	if s.KVShare {
		unit = "share of the KV blocks that routing saw used"
	}
	c, err := replicaChart("used KV blocks", unit, runs, func(s *replicaSeries, i int) []*float64 { return s.KV[i] })
	if err == nil {
		c.Y.Percent = s.KVShare
	}
	return c, err
}

// replicaChart returns a chart with a line for each replica of one run; for those whose requests waited most if there
// are many.
func replicaChart(what, unit string, runs []*Run, of func(s *replicaSeries, i int) []*float64) (*chart.Chart, error) {
	if len(runs) > 1 {
		return nil, fmt.Errorf("a figure of replicas shows one run; there are %d", len(runs))
	}
	s := &runs[0].Replicas
	c := overTime(what, unit, runs)
	shown := s.longestQueues(maxLines)
	if len(shown) == 0 {
		return nil, fmt.Errorf("%s has no replicas", runs[0].Name)
	}
	if len(shown) < s.Of {
		c.Title += fmt.Sprintf(": the %d of %d replicas that waited most", len(shown), s.Of)
	}
	for _, i := range shown {
		c.Lines = append(c.Lines, steps(s.Names[i], of(s, i), s.WidthS, runs[0].UntilS))
	}
	return c, nil
}

// longestQueues returns at most n of the replicas with rows, in their order: those with the largest mean queue.
func (s *replicaSeries) longestQueues(n int) []int {
	order, total := make([]int, len(s.Names)), make([]float64, len(s.Names))
	for i := range order {
		order[i] = i
	}
	for i, row := range s.Waiting {
		for _, x := range row {
			total[i] += x
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case total[a] > total[b]:
			return -1
		case total[a] < total[b]:
			return 1
		}
		return 0
	})
	order = order[:min(n, len(order))]
	slices.Sort(order)
	return order
}
