package summarize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// merged is what the runs of the shards of one workload have in common, and what only their metrics report.
type merged struct {
	first *stream.Header
	// parts are the shards that were read.
	parts map[int64]bool
	// until is the last end of a run, hasPrefix whether routers predicted cached tokens.
	until     stream.Micros
	hasPrefix bool
	// costs is the sum, priced whether all runs have prices.
	costs  metrics.Cost
	priced bool
	energy *metrics.Energy // nil if a run has none
	// own is a buffer for a metrics record.
	own *metrics.Record
}

// checkMerge rejects what merged runs do not have: the decisions of the cells are about different replicas.
func (o *Options) checkMerge() error {
	if !o.Merge {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"baseline", len(o.Baseline) > 0}, {"parent", len(o.Parent) > 0}, {"explain", o.Explain.IsSet()},
		{"html", o.HTML != ""}, {"plot", o.Plot != ""},
		{"perfetto", o.Perfetto != ""}, {"try", o.Try != ""}, {"cluster", o.Cluster != nil}} {
		if flag.given {
			return fmt.Errorf("--%s has no effect with --merge, which adds the outcomes of several runs", flag.name)
		}
	}
	return nil
}

// readMerged reads the runs of all shards into one.
func (r *analysis) readMerged(ctx context.Context, streams []string, in io.Reader) ([]*runDoc, error) {
	s := &summary{options: r.options, fitness: r.fitness, integrity: stream.IntegrityOK,
		merged: &merged{parts: map[int64]bool{}, until: stream.Never, priced: true}}
	x := &runDoc{name: "merged", summary: s}
	for i, data := range streams {
		name, file := splitName(data)
		from, closeInput, err := r.open(i, file, in)
		if err != nil {
			return nil, err
		}
		defer closeInput()
		if err := s.read(ctx, from); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return []*runDoc{x}, s.finishMerged()
}

// addShard checks that the run of the current header belongs to those before it.
func (s *summary) addShard(r *stream.Reader) error {
	h, m := r.Header(), s.merged
	if h.Run == nil || h.Run.Workload.Shard == nil {
		return r.Errorf("--merge needs runs on shards of a workload (blis-gen --shard); this is not one")
	}
	shard := h.Run.Workload.Shard
	if m.first == nil {
		m.first, s.header = h, h
		if s.minimal() {
			return r.Errorf("the run was written with --trace minimal and has no outcomes; --merge needs them " +
				"(--trace decisions or full)")
		}
		if err := s.prepare(r); err != nil {
			return err
		}
	}
	a, b := *m.first.Run, *h.Run
	first := a.Workload.Shard
	a.Workload.Shard, b.Workload.Shard = nil, nil
	switch {
	case a.Workload != b.Workload || first.Of != shard.Of || first.By != shard.By:
		return r.Errorf("the run is of shard %s of another workload than the first run, which is of shard %s",
			shardText(shard), shardText(first))
	case a.ConfigDigest != b.ConfigDigest:
		return r.Errorf("the run has another configuration than the first one: cells must be equal")
	case m.parts[shard.Part]:
		return r.Errorf("shard %s is there twice", shardText(shard))
	case a.Trace != b.Trace && b.Trace == stream.TraceLevels[0]:
		return r.Errorf("the run was written with --trace minimal and has no outcomes")
	}
	m.parts[shard.Part] = true
	return nil
}

func shardText(s *stream.Shard) string { return fmt.Sprintf("%d/%d by %s", s.Part, s.Of, s.By) }

// addMetrics adds what outcomes do not have.
func (m *merged) addMetrics(r *stream.Reader) error {
	m.own = &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
	if err := r.Decode(m.own); err != nil {
		return err
	}
	m.until = max(m.until, m.own.UntilUS)
	m.hasPrefix = m.hasPrefix || m.own.Shadow != nil
	if len(m.parts) == 1 {
		m.energy = m.own.Energy
	} else {
		m.energy = m.energy.Plus(m.own.Energy)
	}
	if c := m.own.Cost; c != nil {
		m.costs.GPUS += c.GPUS
		m.costs.ReplicaS += c.ReplicaS
		if c.Total == nil {
			m.priced = false
		} else {
			total := *c.Total
			if m.costs.Total != nil {
				total += *m.costs.Total
			}
			m.costs.Total = &total
		}
	}
	return nil
}

// endShard ends the current run.
func (s *summary) endShard(r *stream.Reader) error {
	end := r.End()
	if s.end == nil {
		s.end = &stream.End{}
	}
	if end.Requests != nil && end.Requests.BeyondHorizon > 0 {
		s.warn("%d requests of a shard arrive after the horizon and were not offered", end.Requests.BeyondHorizon)
	}
	integrity, text := r.Integrity()
	s.warnings = append(s.warnings, r.Warnings()...)
	if s.options.Strict && len(s.warnings) > 0 {
		return errors.New(s.warnings[0])
	}
	if integrity != stream.IntegrityOK {
		s.options.warn(text)
		s.integrity, s.integrityText = s.integrity.Worse(integrity), text
	}
	if s.merged.own == nil {
		return r.Errorf("the run has no metrics record; it was filtered out")
	}
	s.merged.own = nil
	return nil
}

// finishMerged computes the metrics after the last run.
func (s *summary) finishMerged() error {
	m := s.merged
	shard := m.first.Run.Workload.Shard
	if missing := shard.Of - int64(len(m.parts)); missing > 0 {
		part := int64(1)
		for m.parts[part] {
			part++
		}
		return fmt.Errorf("--merge needs the runs of all %d shards; %d are missing, the first is %d/%d", shard.Of,
			missing, part, shard.Of)
	}
	if err := s.checkSelection(); err != nil {
		return err
	}
	complete := s.outcomesSelected == s.outcomesSeen && !s.options.isPartial()
	endKnown := complete || s.unfinished > 0
	if endKnown {
		s.computed.ExtendTo(m.until)
	}
	if m.hasPrefix {
		s.computed.HasPrefixPrediction()
	}
	s.raw = s.computed.Raw()
	s.warn("merged from the runs of %d shards (by %s): metrics of replicas and of decisions are missing, see each run",
		shard.Of, shard.By)
	if !complete {
		s.warn("computed from the outcomes of %d of %d requests", s.outcomesSelected, s.outcomesSeen)
	} else if m.costs.ReplicaS > 0 {
		s.raw.Cost = m.cost(s.raw)
		if s.raw.Energy = m.energy; m.energy != nil && s.raw.Throughput != nil {
			m.energy.Divide(int64(math.Round(s.raw.Throughput.OutputTPS*s.raw.DurationS)), s.raw.DurationS)
		}
	}
	s.warnUnknown(endKnown)
	return nil
}

// cost is that of all runs, each to its own end.
func (m *merged) cost(raw *metrics.Raw) *metrics.Cost {
	c := m.costs
	if !m.priced {
		c.Total = nil
	}
	if t := raw.Throughput; t != nil {
		if tokens := math.Round(t.TotalTPS * raw.DurationS); tokens > 0 {
			perMillion := c.GPUS * 1e6 / tokens
			c.PerMillion = &perMillion
		}
	}
	return &c
}
