package recording

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// Open reads the recording at path, whether it is compressed or not. format is a
// name in Formats; "" finds out by the content. path may end in #NAME, which
// chooses some of several runs: by name, or by words of their names.
//
// An error is one of the system or of ctx, or a *stream.SyntaxError that says
// where the file is wrong.
func Open(ctx context.Context, path, format string) (*Recording, error) {
	return Read(ctx, textio.Input{Name: path, Path: path}, format)
}

// Read is Open for any input. Of a stream the path may be #NAME, or "".
func Read(ctx context.Context, in textio.Input, format string) (*Recording, error) {
	choice := ""
	if in.Stream != nil || !textio.Exists(in.Path) {
		in.Path, choice, _ = strings.Cut(in.Path, "#")
		in.Name = strings.TrimSuffix(in.Name, "#"+choice)
	}
	text, err := in.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, misspelt(in.Path, err)
	}
	if err != nil {
		return nil, err
	}
	defer text.Close()
	digest := sha256.New()
	below := bufio.NewReaderSize(io.TeeReader(stoppable{ctx, text}, digest), headSize)
	f := &file{Reader: below, Place: textio.Place{Name: in.Name}, path: in.Path}
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
	if len(r.Steps) == 0 && !slices.ContainsFunc(r.Runs, func(run *Run) bool { return len(run.Outcomes) > 0 }) {
		return nil, f.Errorf("holds no requests")
	}
	if _, err := io.Copy(io.Discard, below); err != nil {
		return nil, f.faulty(err)
	}
	r.Digest = hex.EncodeToString(digest.Sum(nil))
	for _, odd := range f.Warnings() {
		r.Warnings = append(r.Warnings, strings.TrimPrefix(odd, in.Name+": "))
	}
	if choice != "" {
		return r, r.choose(choice)
	}
	return r, nil
}

// Names are those of the runs, in order.
func (r *Recording) Names() []string {
	var names []string
	for _, run := range r.Runs {
		names = append(names, run.Name)
	}
	return names
}

// Foreign reports whether path, which may end in #NAME, is a file that somebody
// else wrote: of a format that is known, or of what a stream of ours cannot be.
func Foreign(path string) bool {
	if !textio.Exists(path) {
		path, _, _ = strings.Cut(path, "#")
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	text, err := (textio.Input{Name: path, Path: path}).Open()
	if err != nil {
		return false
	}
	defer text.Close()
	return isForeign(text)
}

// OpenStream is Open for a stream, of which choice names a run, if it begins as the
// files of which Foreign is true. If not, the recording is nil, and rest is a reader
// of the whole stream.
func OpenStream(ctx context.Context, name string, in io.Reader, choice string) (r *Recording, rest io.Reader, err error) {
	below := bufio.NewReaderSize(in, headSize)
	first, _ := below.Peek(headSize) // what is wrong shows again
	text, err := (textio.Input{Stream: bytes.NewReader(first)}).Open()
	if err != nil {
		return nil, below, nil
	}
	defer text.Close()
	if !isForeign(text) {
		return nil, below, nil
	}
	path := ""
	if choice != "" {
		path = "#" + choice
	}
	r, err = Read(ctx, textio.Input{Name: name, Path: path, Stream: below}, "")
	return r, nil, err
}

// isForeign reports whether a text begins as one of the formats of others, or with what
// is no object.
func isForeign(text *textio.Text) bool {
	first, _ := text.Peek(headSize)
	if trimmed := bytes.TrimSpace(first); len(trimmed) > 0 && trimmed[0] != '{' {
		return true
	}
	h := begin(first)
	return !isBLIS(h) && slices.ContainsFunc(Formats, func(e registry.Entry[Format]) bool { return e.Value.detect(h) })
}

// misspelt is err, of a file that is not there, or what is wrong with the format before
// one that is.
func misspelt(path string, err error) error {
	format, file, ok := strings.Cut(path, ":")
	if file, _, _ = strings.Cut(file, "#"); ok && textio.Exists(file) {
		return registry.Unknown("format of recordings", format, Formats.Names())
	}
	return err
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

// Stdin reports whether path is stdin: "-" or, for a run of several in it, "-#NAME", of
// which choice, the path of a stream for Read, is "#NAME".
func Stdin(path string) (choice string, ok bool) {
	if path != "-" && !strings.HasPrefix(path, "-#") {
		return "", false
	}
	return path[1:], true
}

// Overlap reports whether two recordings are of one file and have a run, or steps, in
// common.
func (r *Recording) Overlap(other *Recording) bool {
	return r.Digest == other.Digest && (len(r.Steps) > 0 || slices.ContainsFunc(r.Names(), func(name string) bool { return slices.Contains(other.Names(), name) }))
}

// file is an open file that is being read.
type file struct {
	*bufio.Reader
	textio.Place
	// path is the file's, "" of a stream.
	path string
}

// faulty is err with the name of the file, if it is one of the text below.
func (f *file) faulty(err error) error {
	switch err.(type) {
	case *stream.SyntaxError, *stream.FaultError:
		return err
	}
	if err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return &stream.SyntaxError{File: f.Place.Name, Msg: err.Error()}
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

// One is the only run of the recording. It is an error if there are several, or
// none.
func (r *Recording) One() (*Run, error) {
	switch {
	case len(r.Runs) == 0:
		return nil, &stream.SyntaxError{File: r.Path, Msg: "holds steps and no requests"}
	case len(r.Runs) > 1:
		return nil, &stream.SyntaxError{File: r.Path, Msg: fmt.Sprintf("holds %d runs; choose one with FILE#NAME: %s", len(r.Runs), strings.Join(r.Names(), ", "))}
	}
	return r.Runs[0], nil
}

// choose keeps the runs that choice names.
func (r *Recording) choose(choice string) error {
	var kept []*Run
	for _, run := range r.Runs {
		if run.Name == choice {
			kept = []*Run{run}
			break
		}
		if hasWords(run.Name, choice) {
			kept = append(kept, run)
		}
	}
	if len(kept) == 0 {
		return &stream.SyntaxError{File: r.Path, Msg: registry.Unknown("run", choice, r.Names()).Error()}
	}
	r.Runs = kept
	return nil
}
