package recording

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"blis/pkg/record"
	"blis/pkg/source"
)

// Open reads the recording at path, whether it is compressed or not. format is a
// name in Formats; "" finds out by the content. path may end in #NAME, which
// chooses one of several runs: by its name, or by some of the words of its name.
//
// An error is one of the system or of ctx, or a *record.SyntaxError that says
// where the file is wrong.
func Open(ctx context.Context, path, format string) (*Recording, error) {
	name, choice := path, ""
	if !source.Exists(path) {
		name, choice, _ = strings.Cut(path, "#")
	}
	r, err := Read(ctx, source.Input{Name: name, Path: name}, format)
	if err != nil || choice == "" {
		return r, err
	}
	return r, r.choose(choice)
}

// Read is Open for any input, of all its runs.
func Read(ctx context.Context, in source.Input, format string) (*Recording, error) {
	text, err := in.Open()
	if err != nil {
		return nil, err
	}
	defer text.Close()
	digest := sha256.New()
	below := bufio.NewReaderSize(io.TeeReader(stoppable{ctx, text}, digest), headSize)
	f := &file{Reader: below, Place: source.Place{Name: in.Name}, path: in.Path}
	begin, err := below.Peek(headSize)
	if err != nil && err != io.EOF {
		return nil, f.faulty(err)
	}
	r := &Recording{Path: in.Name, Format: format}
	if format == "" {
		if r.Format, err = detect(f, begin); err != nil {
			return nil, err
		}
	}
	layout, err := Formats.Get("format of recordings", r.Format)
	if err != nil {
		return nil, err
	}
	if err := layout.read(f, r); err != nil {
		return nil, f.faulty(err)
	}
	if _, err := io.Copy(io.Discard, below); err != nil {
		return nil, f.faulty(err)
	}
	r.Digest = hex.EncodeToString(digest.Sum(nil))
	r.Warnings = append(r.Warnings, f.Warnings()...)
	return r, nil
}

// Split takes FORMAT:FILE apart; a text that begins with no format's name is a
// file of which the format is found out.
func Split(text string) (format, path string) {
	for _, e := range Formats {
		if path, ok := strings.CutPrefix(text, e.Name+":"); ok {
			return e.Name, path
		}
	}
	return "", text
}

// file is an open file that is being read.
type file struct {
	*bufio.Reader
	source.Place
	// path is the file's, "" of a stream.
	path string
}

// faulty is err with the name of the file, if it is one of the text below.
func (f *file) faulty(err error) error {
	switch err.(type) {
	case *record.SyntaxError, *record.FaultError:
		return err
	}
	if err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return &record.SyntaxError{File: f.Place.Name, Msg: err.Error()}
}

// stoppable is a reader that ends with ctx.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// choose keeps the runs that choice names.
func (r *Recording) choose(choice string) error {
	var kept []*Run
	var names []string
	for _, run := range r.Runs {
		names = append(names, run.Name)
		if run.Name == choice {
			kept = []*Run{run}
			break
		}
		if hasWords(run.Name, choice) {
			kept = append(kept, run)
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("%s: %w", r.Path, unknownRun(choice, names))
	}
	r.Runs = kept
	return nil
}
