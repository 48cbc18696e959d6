package recording

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// Open reads the recording at path, compressed or not. format is a name in Formats; "" means
// detection by content. path may end in #NAME, which selects runs by name or by words of their
// names.
//
// An error is one of the system or of ctx, or a *stream.SyntaxError with a position.
func Open(ctx context.Context, path, format string) (*Recording, error) {
	return Read(ctx, textio.Input{Name: path, Path: path}, format)
}

// Read is Open for any input. The path of a stream is #NAME or "". The path of a folder is that of the output of a load
// generator, see Folder.
func Read(ctx context.Context, in textio.Input, format string) (*Recording, error) {
	choice := ""
	if in.Stream != nil || !textio.Exists(in.Path) {
		in.Path, choice, _ = strings.Cut(in.Path, "#")
		in.Name = strings.TrimSuffix(in.Name, "#"+choice)
	}
	if info, err := os.Stat(in.Path); in.Stream == nil && err == nil && info.IsDir() {
		return readFolder(ctx, in, choice, format)
	}
	text, err := in.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, suggestFormat(in.Path, err)
	}
	if err != nil {
		return nil, err
	}
	defer text.Close()
	digest := sha256.New()
	buffered := bufio.NewReaderSize(io.TeeReader(contextReader{ctx, text}, digest), headSize)
	f := &file{Reader: buffered, Position: textio.Position{Name: in.Name}, path: in.Path}
	begin, err := buffered.Peek(headSize)
	if err != nil && err != io.EOF {
		return nil, f.wrapError(err)
	}
	r := &Recording{Path: in.Name, Format: format}
	if format == "" {
		if r.Format, err = detect(f, begin); err != nil {
			return nil, err
		}
	}
	layout, err := Formats.Get("recording format", r.Format)
	if err != nil {
		return nil, err
	}
	if err := layout.read(f, r); err != nil {
		return nil, f.wrapError(err)
	}
	if len(r.Steps) == 0 && !slices.ContainsFunc(r.Runs, func(run *Run) bool { return len(run.Outcomes) > 0 }) {
		return nil, f.Errorf("contains no requests")
	}
	if _, err := io.Copy(io.Discard, buffered); err != nil {
		return nil, f.wrapError(err)
	}
	r.Digest = hex.EncodeToString(digest.Sum(nil))
	for _, warning := range f.Warnings() {
		r.Warnings = append(r.Warnings, strings.TrimPrefix(warning, in.Name+": "))
	}
	if choice != "" {
		return r, r.choose(choice)
	}
	return r, nil
}

// Names returns the names of the runs, in order.
func (r *Recording) Names() []string {
	var names []string
	for _, run := range r.Runs {
		names = append(names, run.Name)
	}
	return names
}

// IsForeign reports whether path, which may end in #NAME, is a file of another program: in a known
// format, or not a BLIS stream.
func IsForeign(path string) bool {
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

// OpenStream is Open for a stream with the run choice, if IsForeign is true of its content.
// Otherwise the recording is nil and rest reads the whole stream.
func OpenStream(ctx context.Context, name string, in io.Reader, choice string) (r *Recording, rest io.Reader,
	err error) {
	buffered := bufio.NewReaderSize(in, headSize)
	first, _ := buffered.Peek(headSize) // an error occurs again below
	text, err := (textio.Input{Stream: bytes.NewReader(first)}).Open()
	if err != nil {
		return nil, buffered, nil
	}
	defer text.Close()
	if !isForeign(text) {
		return nil, buffered, nil
	}
	path := ""
	if choice != "" {
		path = "#" + choice
	}
	r, err = Read(ctx, textio.Input{Name: name, Path: path, Stream: buffered}, "")
	return r, nil, err
}

// isForeign reports whether a text begins like a known foreign format or is not a JSON object.
func isForeign(text *textio.Text) bool {
	first, _ := text.Peek(headSize)
	if trimmed := bytes.TrimSpace(first); len(trimmed) > 0 && trimmed[0] != '{' {
		return true
	}
	h := readHead(first, isBLIS)
	return !isBLIS(h) && slices.ContainsFunc(Formats, func(e registry.Entry[Format]) bool { return e.Value.detect(h) })
}

// suggestFormat returns err for a missing file, or an error about a misspelled format in
// FORMAT:FILE.
func suggestFormat(path string, err error) error {
	format, file, ok := strings.Cut(path, ":")
	if file, _, _ = strings.Cut(file, "#"); ok && textio.Exists(file) {
		return registry.Unknown("recording format", format, Formats.Names())
	}
	return err
}

// Split splits FORMAT:FILE. Text without a known format is a file whose format is detected, as is recording:FILE.
func Split(text string) (format, path string) {
	if path, ok := strings.CutPrefix(text, "recording:"); ok {
		return "", path
	}
	for _, e := range Formats {
		if path, ok := strings.CutPrefix(text, e.Name+":"); ok {
			return e.Name, path
		}
	}
	return "", text
}

// Stdin reports whether path is stdin: "-", or "-#NAME" for one of its runs. choice is the path for
// Read, "#NAME".
func Stdin(path string) (choice string, ok bool) {
	if path != "-" && !strings.HasPrefix(path, "-#") {
		return "", false
	}
	return path[1:], true
}

// Overlap reports whether two recordings are of the same file and share a run or steps.
func (r *Recording) Overlap(other *Recording) bool {
	return r.Digest == other.Digest && (len(r.Steps) > 0 ||
		slices.ContainsFunc(r.Names(), func(name string) bool { return slices.Contains(other.Names(), name) }))
}

// file is an open file.
type file struct {
	*bufio.Reader
	textio.Position
	// path is "" for a stream.
	path string
}

// wrapError adds the file name to an error of the underlying reader.
func (f *file) wrapError(err error) error {
	switch err.(type) {
	case *stream.SyntaxError, *stream.UpstreamError:
		return err
	}
	if err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return &stream.SyntaxError{File: f.Position.Name, Msg: err.Error()}
}

// contextReader is a reader that fails when ctx ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (s contextReader) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// Single returns the only run of the recording. It is an error if there are several or none.
func (r *Recording) Single() (*Run, error) {
	p := &textio.Position{Name: r.Path}
	switch len(r.Runs) {
	case 0:
		return nil, p.Errorf("contains steps but no requests")
	case 1:
		return r.Runs[0], nil
	}
	return nil, p.Errorf("contains %d runs; choose one with FILE#NAME: %s", len(r.Runs), strings.Join(r.Names(), ", "))
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
