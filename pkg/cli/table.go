package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// isTable reports whether an output of that name is a Parquet or CSV table or a folder of tables.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".parquet") || isCSV(name) || isFolder(name)
}

// isCSV reports whether an output of that name is a table in CSV.
func isCSV(name string) bool { return strings.HasSuffix(name, ".csv") }

// checkSuffix returns an error about an output of a stream with a suffix that selects no format.
func checkSuffix(name string) error {
	suffix := filepath.Ext(name)
	if isTable(name) || suffix == "" || slices.Contains([]string{".jsonl", ".zst"}, suffix) {
		return nil
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	return usageError{fmt.Sprintf("-o %s: unknown suffix %s; a stream has .jsonl, .jsonl.zst or none, "+
		"and tables of a run have .parquet, .csv or a slash at the end", name, suffix)}
}

// isFolder reports whether an output of that name is a folder of tables.
func isFolder(name string) bool {
	return strings.HasSuffix(name, "/") || strings.HasSuffix(name, string(filepath.Separator))
}

// tables is an output that receives a run as a stream and writes its Parquet tables.
type tables struct {
	*io.PipeWriter
	name  string
	files []*stream.File
	// folder is the new folder of the tables; nil if it existed.
	folder *stream.Folder
	// old is a folder that existed. Tables of an earlier run there are removed or replaced.
	old  string
	done chan error
}

// newTables starts the table of outcomes called name, or all tables in the folder of that
// name, which is created if needed.
func newTables(name string) (*tables, error) {
	in, pipe := io.Pipe()
	t := &tables{PipeWriter: pipe, name: name, done: make(chan error, 1)}
	if isFolder(name) {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			if t.folder, err = stream.CreateFolder(name); err != nil {
				return nil, err
			}
			t.name = t.folder.Name()
		} else {
			t.old = name
		}
	} else {
		file, err := stream.Create(name)
		if err != nil {
			return nil, err
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
		for _, name := range []string{outcomesFile, decisionsFile, stepsFile, sessionsFile, anomaliesFile,
			seriesFile, metricsFile} {
			if err := os.Remove(filepath.Join(t.old, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return errors.Join(err, t.remove())
			}
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
