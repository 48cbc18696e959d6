// Package parquet writes outcomes and decisions as Parquet files and reads them
// back. A table has one row per record and one column per field except kind, under the
// field's name on the wire. A field that may be absent on the wire is nullable. itl_us
// is a list of {gap_us, count}.
//
// Tables are files, not streams: a Parquet file ends with its index.
package parquet

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"blis/pkg/stream"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	// groupRows is the number of rows kept in memory until they are written as one row
	// group: some tens of megabytes of outcomes.
	groupRows = 1 << 16
	// batchRows is the number of rows passed to or from the Parquet library at once.
	batchRows = 1 << 10
)

// Writer writes a table of records of type T.
type Writer[T any] interface {
	// Write adds a row for v. It keeps no reference to v.
	Write(v *T) error
	// Close writes the remaining rows and the index, without which the table is not
	// readable. It does not close the underlying writer.
	Close() error
}

// WriteOutcomes begins a table of outcomes.
func WriteOutcomes(w io.Writer) Writer[stream.Outcome] { return newWriter(w, rowOfOutcome) }

// WriteDecisions begins a table of decisions.
func WriteDecisions(w io.Writer) Writer[stream.Decision] { return newWriter(w, rowOfDecision) }

// ReadOutcomes reads a table of outcomes from the size bytes of r, in order. An
// outcome is valid until the next one. An error ends the sequence.
func ReadOutcomes(r io.ReaderAt, size int64) iter.Seq2[*stream.Outcome, error] {
	return read(r, size, (*outcomeRow).record)
}

// ReadDecisions reads a table of decisions, as ReadOutcomes does.
func ReadDecisions(r io.ReaderAt, size int64) iter.Seq2[*stream.Decision, error] {
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

func read[R, T any](r io.ReaderAt, size int64, record func(*R) T) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		file, err := parquet.OpenFile(r, size)
		if err != nil {
			yield(nil, wrap("opening", err))
			return
		}
		if want := parquet.SchemaOf(new(R)); !parquet.EqualNodes(file.Schema(), want) {
			yield(nil, errors.New("opening a table: its columns differ from those of this version"))
			return
		}
		in := parquet.NewGenericReader[R](file)
		defer in.Close()
		rows := make([]R, batchRows)
		for {
			clear(rows)
			n, err := in.Read(rows)
			for i := range rows[:n] {
				v := record(&rows[i])
				if !yield(&v, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, wrap("reading", err))
				return
			}
		}
	}
}

func wrap(doing string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s a table: %w", doing, err)
	}
	return err
}
