package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Metric is one number of both trees. Diff is b − a, RelativeDiff is Diff/a. A number
// that a side does not have is absent, and so is what depends on it.
type Metric struct {
	Path         string   `json:"-"`
	A            *float64 `json:"a,omitempty"`
	B            *float64 `json:"b,omitempty"`
	Diff         *float64 `json:"diff,omitempty"`
	RelativeDiff *float64 `json:"relative_diff,omitempty"`
	// CI is the confidence interval of Diff.
	CI *stat.Interval `json:"ci,omitempty"`
}

// Metrics are in the order of the tree; in JSON they are an object by path.
type Metrics []Metric

// MarshalJSON encodes the metrics as an object.
func (m Metrics) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := range m {
		if i > 0 {
			b = append(b, ',')
		}
		key, err := json.Marshal(m[i].Path)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(m[i])
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, key...), ':'), value...)
	}
	return append(b, '}'), nil
}

func (m *Metric) differs() bool { return m.A == nil || m.B == nil || *m.A != *m.B }

// at returns the metric at the path, an empty one if neither side has it.
func (m Metrics) at(path string) *Metric {
	for i := range m {
		if m[i].Path == path {
			return &m[i]
		}
	}
	return &Metric{Path: path}
}

// computeMetrics sets the metrics of both sides. They are those of the run, or computed
// from the outcomes for a recording, a selection or paired requests only.
func (c *comparison) computeMetrics(ctx context.Context) error {
	c.selectPairs()
	c.warnDeployments()
	for _, s := range c.sides {
		if s.recorded == nil {
			if err := s.checkOwnMetrics(); err != nil {
				return err
			}
			s.raw = &s.ownMetrics.Raw
		}
		if s.recorded != nil || c.options.selects != nil || c.pairsOnly {
			if err := s.recompute(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// warnDeployments repeats what the runs say about the step times of their deployments.
func (c *comparison) warnDeployments() {
	var about [2][]string
	for i, s := range c.sides {
		if s.ownMetrics != nil {
			about[i] = s.ownMetrics.Raw.DeploymentWarnings()
		}
	}
	for i, s := range c.sides {
		for _, w := range about[i] {
			switch inBoth := slices.Contains(about[1-i], w); {
			case !inBoth:
				s.warn("%s: %s", s.name, w)
			case i == 0:
				c.warn("both runs: %s", w)
			}
		}
	}
}

// checkOwnMetrics returns an error if the run lacks records that are needed.
func (s *side) checkOwnMetrics() error {
	noOutcomes := s.outcomes == 0 && s.ownMetrics != nil && s.ownMetrics.Requests.Offered > 0
	switch {
	case s.ownMetrics == nil:
		return fmt.Errorf("%s: the run has no metrics record; it was filtered out", s.name)
	case noOutcomes && s.options.selects != nil:
		return fmt.Errorf("%s: the run was written with --trace minimal and has no outcomes; "+
			"--where needs --trace decisions or full", s.name)
	case noOutcomes:
		s.warn("%s has no outcomes (--trace minimal): only metrics are compared, without intervals", s.name)
	}
	return nil
}

// recompute computes the metrics of the selected requests.
func (s *side) recompute(ctx context.Context) error {
	acc := metrics.New(s.header.SLOClasses)
	add := func(o *stream.Outcome) {
		if n, _ := s.ids.find(o.Original()); !s.isSelected(n) {
			return
		}
		acc.Add(o)
		for _, gap := range o.ITLUS {
			acc.AddGaps(gap[0], gap[1])
		}
	}
	if s.recorded == nil {
		var o stream.Outcome
		err := s.walk(ctx, func(r *stream.Reader) error {
			switch r.Kind() {
			case stream.KindSessionOutcome:
				var ended stream.SessionOutcome
				err := r.SessionOutcome(&ended)
				if n, ok := s.ids.find(ended.FailedRequest()); err == nil && ok && s.isSelected(n) {
					acc.AddNotIssued(&ended)
				}
				return err
			case stream.KindOutcome:
				if err := r.Outcome(&o); err != nil {
					return err
				}
				add(&o)
			}
			return nil
		})
		s.raw = acc.Raw()
		return err
	}
	acc.MarkRecording()
	for i := range s.recorded.Outcomes {
		add(&s.recorded.Outcomes[i])
	}
	s.raw = acc.Raw()
	if !s.recorded.Arrivals {
		s.raw.DurationS, s.raw.Throughput = 0, nil
		if s.raw.Goodput != nil {
			s.raw.Goodput.RPS = nil
		}
	}
	return nil
}

// replicaNumbers returns, for each replica of b, the number of the same one of a, that is of the deployment with the
// same id and index, or a number behind these.
func replicaNumbers(a, b *metrics.Raw) (numbers []int) {
	known := map[string]int{}
	for i := range a.Replicas {
		known[replicaName(a.Replicas[i].Deployment, a.Replicas[i].Index)] = i
	}
	next := len(a.Replicas)
	for i := range b.Replicas {
		n, both := known[replicaName(b.Replicas[i].Deployment, b.Replicas[i].Index)]
		if !both {
			n = next
			next++
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// renumbered is the path of a metric with the number of its replica, if it is of one, replaced.
func renumbered(path string, numbers []int) string {
	rest, is := strings.CutPrefix(path, "replicas[")
	if !is {
		return path
	}
	key, rest, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(key)
	if err != nil {
		return path
	}
	return fmt.Sprintf("replicas[%d]%s", numbers[i], rest)
}

// compareMetrics lists the numbers of both trees in the order of a's, then those that
// only b has. Anomalies are included if both runs looked for them.
func compareMetrics(a, b *metrics.Raw, intervals map[string]stat.Interval) Metrics {
	var list Metrics
	at := map[string]int{}
	for _, v := range metrics.Values(a) {
		at[v.Path] = len(list)
		list = append(list, Metric{Path: v.Path, A: &v.Value})
	}
	numbers := replicaNumbers(a, b)
	for _, v := range metrics.Values(b) {
		v.Path = renumbered(v.Path, numbers)
		i, both := at[v.Path]
		if !both {
			list = append(list, Metric{Path: v.Path, B: &v.Value})
			continue
		}
		m := &list[i]
		m.B, m.Diff = &v.Value, new(v.Value-*m.A)
		if *m.A != 0 {
			m.RelativeDiff = new(*m.Diff / *m.A)
		}
		if d, ok := intervals[v.Path]; ok {
			m.CI = &d
		}
	}
	if a.Anomalies == nil || b.Anomalies == nil {
		list = slices.DeleteFunc(list, func(m Metric) bool { return strings.HasPrefix(m.Path, "anomalies.") })
	}
	return list
}
