package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"blis/pkg/parquet"
)

// tablesIn returns the folder with the tables of a run, or the file with its outcomes, that the name means. It
// is "" if the name is something else.
func tablesIn(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		if isParquet(filepath.Join(name, outcomesFile)) {
			return name
		}
		return ""
	}
	if info.Mode().IsRegular() && isParquet(name) {
		return name
	}
	return ""
}

// isParquet reports whether the file begins as Parquet files do.
func isParquet(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	magic := make([]byte, 4)
	_, err = io.ReadFull(f, magic)
	return err == nil && bytes.Equal(magic, []byte("PAR1"))
}

// tablesInput is a run that is read from tables.
type tablesInput struct{ *input }

// IsTables says that the name may be a folder and is still a run.
func (tablesInput) IsTables() {}

// openTables reads the tables as the stream of a run.
func openTables(ctx context.Context, name string) (io.ReadCloser, error) {
	var files []*os.File
	closeAll := func() error {
		var err error
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
		return err
	}
	open := func(path string) (*parquet.Source, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		return &parquet.Source{ReaderAt: f, Size: info.Size()}, nil
	}
	run := parquet.Run{}
	var err error
	if info, failed := os.Stat(name); failed == nil && !info.IsDir() {
		run.Outcomes, err = open(name)
	} else {
		for _, t := range []struct {
			file string
			to   **parquet.Source
		}{{outcomesFile, &run.Outcomes}, {decisionsFile, &run.Decisions}, {stepsFile, &run.Steps},
			{sessionsFile, &run.Sessions}, {anomaliesFile, &run.Anomalies}, {seriesFile, &run.Series}} {
			source, failed := open(filepath.Join(name, t.file))
			if errors.Is(failed, fs.ErrNotExist) && t.file != outcomesFile {
				continue
			}
			err = errors.Join(err, failed)
			*t.to = source
		}
	}
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run.WriteStream(in); err != nil {
			in.CloseWithError(fmt.Errorf("%s: %w", name, err))
			return
		}
		in.Close()
	}()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	return tablesInput{&input{Reader: out, name: name, close: func() error {
		stop()
		out.Close()
		<-done
		return closeAll()
	}}}, nil
}
