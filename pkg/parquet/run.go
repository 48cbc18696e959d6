package parquet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"blis/pkg/stream"

	"github.com/parquet-go/parquet-go"
)

// Keys of the metadata of a table, besides blis.stream_version. Their values are records of the run as
// JSON, so that a table says which workload, configuration and seeds it comes from.
const (
	// HeaderKey is the header of the run.
	HeaderKey = "blis.header"
	// EndKey is its end record, with the number of requests by how they ended and the digest of the workload.
	EndKey = "blis.end"
	// MetricsKey are the metrics; only in the table of outcomes.
	MetricsKey = "blis.metrics"
)

// Metric is a row of the table of metrics: a number by its path, such as ttft.p99.
type Metric struct {
	Path  string  `parquet:"path"`
	Value float64 `parquet:"value"`
}

// WriteMetrics begins a table of metrics.
func WriteMetrics(w io.Writer) Writer[Metric] {
	return newWriter(w, func(m *Metric) Metric { return *m })
}

// WriteSteps begins a table of engine steps.
func WriteSteps(w io.Writer) Writer[stream.Step] { return newWriter(w, rowOfStep) }

// WriteSessions begins a table of the results of sessions.
func WriteSessions(w io.Writer) Writer[stream.SessionOutcome] {
	return newWriter(w, rowOfSessionOutcome)
}

// WriteAnomalies begins a table of anomalies.
func WriteAnomalies(w io.Writer) Writer[stream.Anomaly] { return newWriter(w, rowOfAnomaly) }

// WriteSeries begins a table of the time series.
func WriteSeries(w io.Writer) Writer[stream.Series] { return newWriter(w, rowOfSeries) }

// Source is a table that is read: size bytes of a file.
type Source struct {
	io.ReaderAt
	Size int64
}

// Run are the tables of a run; only Outcomes must exist. The others are nil if missing.
type Run struct{ Outcomes, Decisions, Steps, Sessions, Anomalies, Series *Source }

// WriteStream writes the run of the tables as a plain stream: the header, decisions, steps, anomalies, series,
// outcomes, sessions, metrics and the end. Records of each kind keep their order. Other kinds
// (regrets, preemptions, transfers, snapshots, scaling) have no table and are missing. The end record counts
// and digests the new stream.
func (t *Run) WriteStream(out io.Writer) (err error) {
	file, err := parquet.OpenFile(t.Outcomes, t.Outcomes.Size)
	if err != nil {
		return wrap("opening", err)
	}
	var header stream.Header
	var end stream.End
	text, ok := file.Lookup(HeaderKey)
	if !ok {
		return errors.New("opening a table: its metadata have no " + HeaderKey +
			"; only tables of outcomes that this version of blis-sim wrote can be read as a run")
	}
	if err := json.Unmarshal([]byte(text), &header); err != nil {
		return fmt.Errorf("opening a table: %s: %w", HeaderKey, err)
	}
	if text, ok := file.Lookup(EndKey); ok {
		if err := json.Unmarshal([]byte(text), &end); err != nil {
			return fmt.Errorf("opening a table: %s: %w", EndKey, err)
		}
	}
	if err := t.checkSameRun(file); err != nil {
		return err
	}
	w := stream.NewWriter(out, true)
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Header(&header); err != nil {
		return err
	}
	if err := errors.Join(
		each(t.Decisions, (*decisionRow).record, w.Decision),
		each(t.Steps, (*stepRow).record, w.Step),
		each(t.Anomalies, (*anomalyRow).record, func(a *stream.Anomaly) error {
			if a.RequestIDs == nil {
				a.RequestIDs = []string{}
			}
			return w.Any(a)
		}),
		each(t.Series, (*seriesRow).record, func(v *stream.Series) error { return w.Any(v) }),
		each(t.Outcomes, (*outcomeRow).record, w.Outcome),
		each(t.Sessions, (*sessionOutcomeRow).record, func(o *stream.SessionOutcome) error { return w.Any(o) }),
	); err != nil {
		return err
	}
	if text, ok := file.Lookup(MetricsKey); ok {
		if err := w.Raw([]byte(text)); err != nil {
			return err
		}
	}
	return w.End(&end)
}

// checkSameRun returns an error if another table is not of the run of the table of outcomes: its header or its end,
// which has a digest of all records, differs.
func (t *Run) checkSameRun(outcomes *parquet.File) error {
	for _, table := range []struct {
		name string
		*Source
	}{{"decisions", t.Decisions}, {"steps", t.Steps}, {"sessions", t.Sessions}, {"anomalies", t.Anomalies},
		{"series", t.Series}} {
		if table.Source == nil {
			continue
		}
		file, err := parquet.OpenFile(table, table.Size)
		if err != nil {
			return wrap("opening", err)
		}
		for _, key := range []string{HeaderKey, EndKey} {
			a, _ := outcomes.Lookup(key)
			if b, _ := file.Lookup(key); a != b {
				return fmt.Errorf("the tables are of different runs: the %s of outcomes and %s differ", key, table.name)
			}
		}
	}
	return nil
}

// each passes the records of a table to use, in batches of bounded memory. A missing table has none.
func each[R, T any](s *Source, record func(*R) T, use func(*T) error) error {
	if s == nil {
		return nil
	}
	file, err := open[R](s, s.Size)
	if err != nil {
		return err
	}
	rows := parquet.NewGenericReader[R](file)
	defer rows.Close()
	for {
		batch := make([]R, batchRows)
		n, err := rows.Read(batch)
		for i := range batch[:n] {
			v := record(&batch[i])
			if err := use(&v); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return wrap("reading", err)
		}
	}
}
