// Package parquet writes the outcomes, decisions, steps, sessions, anomalies and metrics of runs as Parquet
// files and reads them back. A table has one row per record and one column per field except kind, under the
// field's name on the wire. A field that may be absent on the wire is nullable. itl_us
// is a list of {gap_us, count}. Outcomes also have latencies in ms. The metadata of a table contain the
// header of its run.
//
// Tables are files, not streams: a Parquet file ends with its index.
package parquet

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"blis/pkg/stream"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	// groupRows is the number of rows kept in memory until they are written as one row
	// group: some tens of megabytes of outcomes.
	groupRows = 1 << 16
	// batchRows is the number of rows passed to the Parquet library at once.
	batchRows = 1 << 10
)

// Writer writes a table of records of type T.
type Writer[T any] interface {
	// Write adds a row for v. It keeps no reference to v.
	Write(v *T) error
	// Metadata adds an entry to the metadata of the table. It can be called until Close.
	Metadata(key, value string)
	// Close writes the remaining rows and the index, without which the table is not
	// readable. It does not close the underlying writer.
	Close() error
}

// WriteOutcomes begins a table of outcomes.
func WriteOutcomes(w io.Writer) Writer[stream.Outcome] { return newWriter(w, rowOfOutcome) }

// WriteDecisions begins a table of decisions.
func WriteDecisions(w io.Writer) Writer[stream.Decision] { return newWriter(w, rowOfDecision) }

// ReadOutcomes reads a table of outcomes from the size bytes of r, in order.
func ReadOutcomes(r io.ReaderAt, size int64) ([]stream.Outcome, error) {
	return read(r, size, (*outcomeRow).record)
}

// ReadDecisions reads a table of decisions, as ReadOutcomes does.
func ReadDecisions(r io.ReaderAt, size int64) ([]stream.Decision, error) {
	return read(r, size, (*decisionRow).record)
}

// writer writes records of type T as rows of type R.
type writer[R, T any] struct {
	out *parquet.GenericWriter[R]
	row func(*T) R
	// rows are not yet passed to out.
	rows []R
}

func newWriter[R, T any](w io.Writer, row func(*T) R) *writer[R, T] {
	return &writer[R, T]{
		out: parquet.NewGenericWriter[R](w,
			parquet.MaxRowsPerRowGroup(groupRows),
			parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}),
			parquet.CreatedBy("blis", stream.Version, ""),
			parquet.KeyValueMetadata("blis.stream_version", strconv.Itoa(stream.StreamVersion))),
		row:  row,
		rows: make([]R, 0, batchRows),
	}
}

func (w *writer[R, T]) Write(v *T) error {
	w.rows = append(w.rows, w.row(v))
	if len(w.rows) < cap(w.rows) {
		return nil
	}
	return w.flush()
}

func (w *writer[R, T]) Metadata(key, value string) { w.out.SetKeyValueMetadata(key, value) }

func (w *writer[R, T]) flush() error {
	_, err := w.out.Write(w.rows)
	w.rows = w.rows[:0]
	return wrap("writing", err)
}

func (w *writer[R, T]) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return wrap("writing", w.out.Close())
}

func read[R, T any](r io.ReaderAt, size int64, record func(*R) T) ([]T, error) {
	if _, err := open[R](r, size); err != nil {
		return nil, err
	}
	rows, err := parquet.Read[R](r, size)
	return convert(rows, record), wrap("reading", err)
}

// open opens a table with rows of type R.
func open[R any](r io.ReaderAt, size int64) (*parquet.File, error) {
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, wrap("opening", err)
	}
	if want := parquet.SchemaOf(new(R)); !parquet.EqualNodes(file.Schema(), want) {
		return nil, errors.New("opening a table: its columns differ from those of this version")
	}
	return file, nil
}

func wrap(doing string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s a table: %w", doing, err)
	}
	return err
}
