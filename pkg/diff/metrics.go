package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// Metric is one number of both trees. Abs is b − a and Rel is Abs/a, Lo to Hi the
// interval of Abs. What a side does not have is absent, and what follows from it.
type Metric struct {
	Path string   `json:"-"`
	A    *float64 `json:"a,omitempty"`
	B    *float64 `json:"b,omitempty"`
	Abs  *float64 `json:"abs,omitempty"`
	Rel  *float64 `json:"rel,omitempty"`
	Lo   *float64 `json:"lo,omitempty"`
	Hi   *float64 `json:"hi,omitempty"`
}

// Metrics are in the order of the tree; on the wire they are an object by path.
type Metrics []Metric

// MarshalJSON encodes them.
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

// at is the metric at that path, an empty one if neither side has it.
func (m Metrics) at(path string) *Metric {
	for i := range m {
		if m[i].Path == path {
			return &m[i]
		}
	}
	return &Metric{Path: path}
}

// measure settles the metrics of both sides: those that they carry or, of a
// recording, of a selection and of pairs alone, computed from the outcomes.
func (c *comparison) measure(ctx context.Context) error {
	c.keepPairs()
	for _, s := range c.sides {
		if s.recorded == nil {
			if err := s.checkCarried(); err != nil {
				return err
			}
			s.raw = &s.carried.Raw
		}
		if s.recorded != nil || c.options.keeps != nil || c.pairsOnly {
			if err := s.recompute(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCarried says what is missing in a run.
func (s *side) checkCarried() error {
	silent := s.outcomes == 0 && s.carried != nil && s.carried.Requests.Offered > 0
	switch {
	case s.carried == nil:
		return fmt.Errorf("%s: the run holds no metrics: somebody filtered them out", s.name)
	case silent && s.options.keeps != nil:
		return fmt.Errorf("%s: the run was written with --trace minimal and holds no outcomes; --where needs --trace decisions or full", s.name)
	case silent:
		s.warn("%s holds no outcomes (--trace minimal): metrics only, without intervals", s.name)
	}
	return nil
}

// recompute computes the metrics of the requests that are asked for.
func (s *side) recompute(ctx context.Context) error {
	acc := metrics.New(s.header.SLOClasses)
	if s.recorded != nil {
		acc.Recorded()
	}
	add := func(o *stream.Outcome) {
		if !s.wanted(s.ids[o.ID]) {
			return
		}
		acc.Add(o)
		for _, gap := range o.ITLUS {
			acc.Gap(gap[0], gap[1])
		}
	}
	var err error
	if s.recorded != nil {
		for i := range s.recorded.Outcomes {
			add(&s.recorded.Outcomes[i])
		}
	} else {
		err = s.walk(ctx, func(r *stream.Reader, o *stream.Outcome, _ *stream.Decision) error {
			if r.Kind() == stream.KindSessionOutcome {
				var ended stream.SessionOutcome
				err := r.SessionOutcome(&ended)
				if n, ok := s.ids[ended.Breaker()]; err == nil && ok && s.wanted(n) {
					acc.Lost(&ended)
				}
				return err
			}
			if r.Kind() != stream.KindOutcome {
				return nil
			}
			if err := r.Outcome(o); err != nil {
				return err
			}
			add(o)
			return nil
		})
	}
	s.raw = acc.Raw()
	if s.recorded != nil && !s.recorded.Arrivals {
		s.raw.DurationS, s.raw.Throughput = 0, nil
		if s.raw.Goodput != nil {
			s.raw.Goodput.RPS = nil
		}
	}
	return err
}

// compareMetrics lists the numbers of both trees in the order of a's, then what
// only b has; anomalies only where they were looked for in both.
func compareMetrics(a, b *metrics.Raw, intervals map[string]Interval) Metrics {
	var list Metrics
	at := map[string]int{}
	for _, v := range metrics.Values(a) {
		at[v.Path] = len(list)
		list = append(list, Metric{Path: v.Path, A: &v.Value})
	}
	for _, v := range metrics.Values(b) {
		i, both := at[v.Path]
		if !both {
			list = append(list, Metric{Path: v.Path, B: &v.Value})
			continue
		}
		m := &list[i]
		abs := v.Value - *m.A
		m.B, m.Abs = &v.Value, &abs
		if *m.A != 0 {
			rel := abs / *m.A
			m.Rel = &rel
		}
		if d, ok := intervals[v.Path]; ok {
			m.Lo, m.Hi = &d.Lo, &d.Hi
		}
	}
	if a.Anomalies == nil || b.Anomalies == nil {
		list = slices.DeleteFunc(list, func(m Metric) bool { return strings.HasPrefix(m.Path, "anomalies.") })
	}
	return list
}
