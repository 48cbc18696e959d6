package cli

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"blis/pkg/parquet"
	"blis/pkg/stream"
)

// isTable reports whether an output of that name is a Parquet table or a folder of tables.
func isTable(name string) bool { return strings.HasSuffix(name, ".parquet") || isFolder(name) }

// isFolder reports whether an output of that name is a folder of tables.
func isFolder(name string) bool {
	return strings.HasSuffix(name, "/") || strings.HasSuffix(name, string(filepath.Separator))
}

// tables is an output that receives a run as a stream and writes its Parquet tables.
type tables struct {
	*io.PipeWriter
	files []*stream.File
	// folder is the new folder of the tables; nil if it existed.
	folder *stream.Folder
	// old is the table of an earlier run in a folder that existed, whose other table is replaced first.
	old  string
	done chan error
}

// newTables starts the table of outcomes called name, or all tables in the folder of that
// name, which is created if needed.
func newTables(name string) (*tables, error) {
	in, pipe := io.Pipe()
	t := &tables{PipeWriter: pipe, done: make(chan error, 1)}
	names := []string{name}
	if isFolder(name) {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			if t.folder, err = stream.CreateFolder(name); err != nil {
				return nil, err
			}
			name = t.folder.Name()
		} else {
			t.old = filepath.Join(name, "outcomes.parquet")
		}
		names = []string{filepath.Join(name, "decisions.parquet"), filepath.Join(name, "outcomes.parquet")}
	}
	for _, name := range names {
		file, err := stream.Create(name)
		if err != nil {
			return nil, errors.Join(err, t.remove())
		}
		t.files = append(t.files, file)
	}
	go func() {
		err := t.write(in)
		in.CloseWithError(err)
		t.done <- err
	}()
	return t, nil
}

func (t *tables) commit() error {
	t.Close()
	if err := <-t.done; err != nil {
		return errors.Join(err, t.remove())
	}
	// The tables of two runs must not be mixed: a folder without outcomes is incomplete.
	if t.old != "" {
		if err := os.Remove(t.old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, t.remove())
		}
	}
	for _, f := range t.files {
		if err := f.Commit(); err != nil {
			return errors.Join(err, t.remove())
		}
	}
	if t.folder != nil {
		return t.folder.Commit()
	}
	return nil
}

func (t *tables) abort(Tool, error) error {
	t.Close()
	<-t.done // an error, because the stream is truncated
	return t.remove()
}

// remove removes all files that are not committed, and the folder if it is new.
func (t *tables) remove() (err error) {
	for _, f := range t.files {
		err = errors.Join(err, f.Close())
	}
	if t.folder != nil {
		err = errors.Join(err, t.folder.Close())
	}
	return err
}

// write writes the tables of a stream: outcomes and, if there are two files, decisions in the first.
func (t *tables) write(in io.Reader) (err error) {
	outcomes := parquet.WriteOutcomes(t.files[len(t.files)-1])
	var decisions parquet.Writer[stream.Decision]
	if len(t.files) > 1 {
		decisions = parquet.WriteDecisions(t.files[0])
	}
	var o stream.Outcome
	var d stream.Decision
	r := stream.NewReader(in)
	defer r.Close()
	for err == nil && r.Next() {
		switch {
		case r.Kind() == stream.KindOutcome:
			if err = r.Outcome(&o); err == nil {
				err = outcomes.Write(&o)
			}
		case r.Kind() == stream.KindDecision && decisions != nil:
			if err = r.Decision(&d); err == nil {
				err = decisions.Write(&d)
			}
		}
	}
	if err = cmp.Or(err, r.Err()); err == nil && decisions != nil {
		err = decisions.Close()
	}
	if err == nil {
		err = outcomes.Close()
	}
	return err
}
