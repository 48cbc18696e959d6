package cli

import (
	"errors"
	"io"
	"strings"

	"blis/pkg/record"
	"blis/pkg/table"
)

// isTable reports whether a file of that name is to hold a table.
func isTable(name string) bool { return strings.HasSuffix(name, ".parquet") }

// outcomes is a product that takes a run, as a stream, and is the table of its
// outcomes.
type outcomes struct {
	*io.PipeWriter
	file *record.File
	done chan error
}

func newOutcomes(file *record.File) *outcomes {
	in, stream := io.Pipe()
	o := &outcomes{stream, file, make(chan error, 1)}
	go func() {
		err := writeOutcomes(file, in)
		in.CloseWithError(err)
		o.done <- err
	}()
	return o
}

func (o *outcomes) commit() error {
	o.Close()
	if err := <-o.done; err != nil {
		return errors.Join(err, o.file.Abort())
	}
	return o.file.Commit()
}

func (o *outcomes) abandon(Tool, error) error {
	o.Close()
	<-o.done // its stream was cut short, and it says so
	return o.file.Abort()
}

func writeOutcomes(w io.Writer, in io.Reader) error {
	rows := table.WriteOutcomes(w)
	var o record.Outcome
	r := record.NewReader(in)
	defer r.Close()
	for r.Next() {
		if r.Kind() != record.KindOutcome {
			continue
		}
		if err := r.Outcome(&o); err != nil {
			return err
		}
		if err := rows.Write(&o); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	return rows.Close()
}
