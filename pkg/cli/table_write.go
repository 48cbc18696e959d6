package cli

import (
	"cmp"
	"io"
	"path/filepath"

	"blis/pkg/metrics"
	"blis/pkg/parquet"
	"blis/pkg/stream"
)

// Names of the tables in a folder.
const (
	outcomesFile  = "outcomes.parquet"
	decisionsFile = "decisions.parquet"
	stepsFile     = "steps.parquet"
	sessionsFile  = "sessions.parquet"
	anomaliesFile = "anomalies.parquet"
	seriesFile    = "series.parquet"
	metricsFile   = "metrics.parquet"
)

// table is a table of one kind of records that is written.
type table interface {
	// add adds the current record.
	add(r *stream.Reader) error
	Metadata(key, value string)
	Close() error
}

// tableOf writes records of type T, which read reads.
type tableOf[T any] struct {
	parquet.Writer[T]
	read func(*stream.Reader, *T) error
	// record is reused.
	record T
}

func (t *tableOf[T]) add(r *stream.Reader) error {
	if err := t.read(r, &t.record); err != nil {
		return err
	}
	return t.Write(&t.record)
}

// decode reads a record that has no decoder of its own.
func decode[T any](r *stream.Reader, v *T) error {
	*v = *new(T)
	return r.Decode(v)
}

// decodeAnomaly reads an anomaly.
func decodeAnomaly(r *stream.Reader, a *stream.Anomaly) error {
	*a = stream.Anomaly{Replica: stream.NoIndex}
	return r.Decode(a)
}

// metricsTable writes a row for each metric.
type metricsTable struct{ parquet.Writer[parquet.Metric] }

func (t metricsTable) add(r *stream.Reader) error {
	record := metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
	if err := r.Decode(&record); err != nil {
		return err
	}
	for _, v := range metrics.Values(&record.Raw) {
		if err := t.Write(&parquet.Metric{Path: v.Path, Value: v.Value}); err != nil {
			return err
		}
	}
	return nil
}

// create begins the tables of a run with that header, by kind of record.
func (t *tables) create(h *stream.Header) (map[string]table, error) {
	if t.folder == nil && t.old == "" {
		write := parquet.WriteOutcomes
		if isCSV(t.name) {
			write = parquet.WriteOutcomesCSV
		}
		return map[string]table{stream.KindOutcome: outcomesTable(write(t.files[0]))}, nil
	}
	all := map[string]table{}
	var err error
	file := func(name string) io.Writer {
		f, failed := stream.Create(filepath.Join(t.name, name))
		if failed != nil {
			err = cmp.Or(err, failed)
			return io.Discard
		}
		t.files = append(t.files, f)
		return f
	}
	all[stream.KindDecision] = &tableOf[stream.Decision]{Writer: parquet.WriteDecisions(file(decisionsFile)),
		read: (*stream.Reader).Decision}
	if h.Run != nil && h.Run.Trace == "full" {
		all[stream.KindStep] = &tableOf[stream.Step]{Writer: parquet.WriteSteps(file(stepsFile)),
			read: decode[stream.Step]}
	}
	all[stream.KindSessionOutcome] = &tableOf[stream.SessionOutcome]{
		Writer: parquet.WriteSessions(file(sessionsFile)), read: (*stream.Reader).SessionOutcome}
	all[stream.KindAnomaly] = &tableOf[stream.Anomaly]{Writer: parquet.WriteAnomalies(file(anomaliesFile)),
		read: decodeAnomaly}
	if h.Run != nil && h.Run.SeriesUS != nil {
		all[stream.KindSeries] = &tableOf[stream.Series]{Writer: parquet.WriteSeries(file(seriesFile)),
			read: decode[stream.Series]}
	}
	all[stream.KindMetrics] = metricsTable{parquet.WriteMetrics(file(metricsFile))}
	// The table of outcomes is the last to get its name: a folder without it is incomplete.
	all[stream.KindOutcome] = outcomesTable(parquet.WriteOutcomes(file(outcomesFile)))
	return all, err
}

func outcomesTable(w parquet.Writer[stream.Outcome]) table {
	return &tableOf[stream.Outcome]{Writer: w, read: (*stream.Reader).Outcome}
}

// write writes the tables of a stream.
func (t *tables) write(in io.Reader) (err error) {
	var all map[string]table
	r := stream.NewReader(in)
	defer r.Close()
	for err == nil && r.Next() {
		switch r.Kind() {
		case stream.KindHeader:
			if all, err = t.create(r.Header()); err == nil {
				describe(all, parquet.HeaderKey, r)
			}
		case stream.KindEnd:
			describe(all, parquet.EndKey, r)
		case stream.KindMetrics:
			all[stream.KindOutcome].Metadata(parquet.MetricsKey, string(r.Bytes()))
			fallthrough
		default:
			if to, ok := all[r.Kind()]; ok {
				err = to.add(r)
			}
		}
	}
	if err = cmp.Or(err, r.Err()); err != nil {
		return err
	}
	for _, to := range all { // each has its own file
		err = cmp.Or(err, to.Close())
	}
	return err
}

// describe adds the current record to the metadata of all tables.
func describe(all map[string]table, key string, r *stream.Reader) {
	for _, t := range all { // each has its own metadata
		t.Metadata(key, string(r.Bytes()))
	}
}
