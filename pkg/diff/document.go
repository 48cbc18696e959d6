package diff

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/record"
)

// Values of Document.Status.
const (
	statusSame    = "same"
	statusDiffers = "differs"
)

// Document is the result for programs.
type Document struct {
	Status string   `json:"status"`
	A      Identity `json:"a"`
	B      Identity `json:"b"`
	// Selection says which requests the rest is about; absent where it is all.
	Selection *Selection `json:"selection,omitempty"`
	// Config are the settings that differ.
	Config []Setting `json:"config"`
	// Requests is absent where they are not paired, or a side holds none; Decisions
	// too, and where there are none.
	Requests  *Requests  `json:"requests,omitempty"`
	Decisions *Decisions `json:"decisions,omitempty"`
	// Fidelity is there where one of the two is a recording.
	Fidelity *Fidelity `json:"fidelity,omitempty"`
	// Bootstrap is absent where Metrics have no intervals.
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`
	// Metrics are all numbers of the two trees by their paths.
	Metrics  Metrics  `json:"metrics"`
	Gates    []Gate   `json:"gates,omitempty"`
	Warnings []string `json:"warnings"`

	replicas []string // what those of Metrics are called
}

// Identity says which stream this is; Format is that of a recording. Digests are
// shortened to 12 digits.
type Identity struct {
	Stream         string `json:"stream"`
	Tool           string `json:"tool"`
	Version        string `json:"version"`
	Format         string `json:"format,omitempty"`
	PolicyDigest   string `json:"policy_digest,omitempty"`
	ConfigDigest   string `json:"config_digest,omitempty"`
	WorkloadDigest string `json:"workload_digest,omitempty"`
	Requests       int64  `json:"requests"`
}

// Selection says of which Requests, of how many on either side, the result is.
type Selection struct {
	Where    string `json:"where"`
	Requests int64  `json:"requests"`
	Of       int64  `json:"of"`
}

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

// document compares what was read.
func (c *comparison) document(ctx context.Context) (*Document, error) {
	a, b := c.sides[0], c.sides[1]
	if err := c.checkWorkloads(); err != nil {
		return nil, err
	}
	pairing, err := c.pairRecordings()
	if err != nil {
		return nil, err
	}
	d := &Document{A: a.identity(), B: b.identity(), Config: []Setting{}}
	if a.outcomes > 0 && b.outcomes > 0 && !c.options.Unpaired {
		d.Requests = c.compareRequests(c.inOrder(a, b))
	}
	c.keepPairs()
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	if c.areRuns() {
		d.Config = c.compareSettings()
	}
	var intervals map[string]Interval
	if a.outcomes > 0 && b.outcomes > 0 {
		if c.options.Progress != nil {
			c.options.Progress("comparing")
		}
		if !c.options.Unpaired && c.areRuns() {
			if d.Decisions, err = c.compareDecisions(ctx); err != nil {
				return nil, err
			}
		}
		d.Bootstrap, intervals = c.bootstrap()
	}
	d.Metrics = compareMetrics(a.raw, b.raw, intervals)
	d.Fidelity = c.fidelity(pairing, d.Metrics)
	d.name(a.raw, b.raw)
	if c.options.keeps != nil {
		d.Selection = c.selection()
	}
	if err := d.decide(c.options.gates); err != nil {
		return nil, err
	}
	d.Status = statusSame
	if d.differs() {
		d.Status = statusDiffers
	}
	d.Warnings = append([]string{}, c.warnings...)
	return d, nil
}

// areRuns reports whether neither of the two is a recording.
func (c *comparison) areRuns() bool { return c.sides[0].recorded == nil && c.sides[1].recorded == nil }

// name notes what the replicas of the metrics are called.
func (d *Document) name(a, b *metrics.Raw) {
	for i := range max(len(a.Replica), len(b.Replica)) {
		of := a.Replica
		if i >= len(of) {
			of = b.Replica
		}
		d.replicas = append(d.replicas, placeOf(of[i].Deployment, of[i].Index))
	}
}

// selection says how much of the streams was asked for.
func (c *comparison) selection() *Selection {
	s := &Selection{Where: c.options.Where, Of: int64(len(c.names))}
	for n := range c.names {
		if c.wanted(int32(n)) {
			s.Requests++
		}
	}
	return s
}

// decide decides the gates.
func (d *Document) decide(gates []gate) error {
	for _, g := range gates {
		failed, err := g.decide(d.Metrics)
		if err != nil {
			return err
		}
		d.Gates = append(d.Gates, Gate{g.src, failed})
	}
	return nil
}

// checkWorkloads refuses to pair two runs that were fed different requests.
func (c *comparison) checkWorkloads() error {
	a, b := c.sides[0], c.sides[1]
	if c.options.Unpaired || a.end == nil || b.end == nil {
		return nil
	}
	if x, y := a.end.WorkloadDigest, b.end.WorkloadDigest; x != y || x == "" {
		return fmt.Errorf("%s and %s are of different workloads (%s and %s); --unpaired compares them as independent", a.name, b.name,
			cmp.Or(record.ShortDigest(x), "unknown"), cmp.Or(record.ShortDigest(y), "unknown"))
	}
	return nil
}

// measure settles the metrics of both sides: those that they carry or, of a
// recording and of a selection, computed from the outcomes.
func (c *comparison) measure(ctx context.Context) error {
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
	add := func(o *record.Outcome) {
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
		err = s.walk(ctx, func(r *record.Reader, o *record.Outcome, _ *record.Decision) error {
			if r.Kind() == record.KindSessionOutcome {
				var ended record.SessionOutcome
				err := r.SessionOutcome(&ended)
				if n, ok := s.ids[ended.Breaker()]; err == nil && ok && s.wanted(n) {
					acc.Lost(&ended)
				}
				return err
			}
			if r.Kind() != record.KindOutcome {
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

// differs reports whether anything that was compared is not the same. Regret that
// was asked for on one side only is no difference.
func (d *Document) differs() bool {
	for i := range d.Metrics {
		m := &d.Metrics[i]
		if m.differs() && !(m.Abs == nil && strings.HasPrefix(m.Path, "regret.")) {
			return true
		}
	}
	return len(d.Config) > 0 || d.Requests != nil && d.Requests.Changed+d.Requests.OnlyA+d.Requests.OnlyB > 0 || d.Decisions != nil && d.Decisions.Differ > 0
}

func (s *side) identity() Identity {
	h := s.header
	id := Identity{Stream: h.Stream, Tool: h.Tool, Version: h.Version, Format: s.format, Requests: s.outcomes}
	if run := h.Run; run != nil {
		id.PolicyDigest, id.ConfigDigest = record.ShortDigest(run.Key.Policy), record.ShortDigest(run.ConfigDigest)
	}
	if s.end != nil {
		id.WorkloadDigest = record.ShortDigest(s.end.WorkloadDigest)
		if s.end.Requests != nil {
			id.Requests = s.end.Requests.Offered
		}
	}
	return id
}

// document is what can be rendered.
type document interface{ text() []byte }

// render is the document in that format.
func render(d document, format string) ([]byte, error) {
	if format != "json" {
		return d.text(), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(d)
	return b.Bytes(), err
}
