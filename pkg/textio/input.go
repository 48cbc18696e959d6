// Package textio reads files that other programs wrote, compressed or not, by line or by row.
// Errors have positions.
package textio

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"blis/pkg/stream"
)

// Input is a file, a folder if the format supports it, or a stream.
type Input struct {
	// Name is the name in errors.
	Name string
	// Path is the file or folder; "" where Stream is read instead.
	Path   string
	Stream io.Reader
}

// Open opens a text. It decompresses zstd and gzip and skips a byte order mark.
func (in Input) Open() (*Text, error) {
	t := &Text{name: in.Name}
	below := in.Stream
	if in.Path != "" {
		f, err := os.Open(in.Path)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			f.Close()
			return nil, fmt.Errorf("%s is a folder; this format needs a file", in.Name)
		}
		below = f
		t.closers = append(t.closers, func() { f.Close() })
	}
	plain, done := stream.Decompress(below)
	t.closers = append(t.closers, done)
	b := bufio.NewReaderSize(plain, 64<<10)
	if mark, _ := b.Peek(3); string(mark) == "\ufeff" {
		b.Discard(3)
	}
	t.Reader = b
	return t, nil
}

// Text is an open input.
type Text struct {
	*bufio.Reader
	name    string
	closers []func()
}

// Name is the name in errors.
func (t *Text) Name() string { return t.name }

// Close closes the underlying file.
func (t *Text) Close() error {
	for i := len(t.closers) - 1; i >= 0; i-- {
		t.closers[i]()
	}
	t.closers = nil
	return nil
}

// Position is the position of a reader in its input, with its warnings. Readers embed it.
type Position struct {
	// Name is the file name; Line counts from 1, and 0 means no line.
	Name     string
	Line     int
	warnings []string
	text     *Text // nil if the caller closes it
}

// Close closes the input that the reader opened, if any.
func (p *Position) Close() error {
	if p.text == nil {
		return nil
	}
	return p.text.Close()
}

// Errorf makes a *stream.SyntaxError about the current line.
func (p *Position) Errorf(format string, args ...any) error {
	return &stream.SyntaxError{File: p.Name, Line: p.Line, Msg: fmt.Sprintf(format, args...)}
}

// Warnings returns the warnings so far.
func (p *Position) Warnings() []string { return p.warnings }

// Warn adds warnings that already name the file.
func (p *Position) Warn(warnings ...string) { p.warnings = append(p.warnings, warnings...) }

// Warnf adds a warning and prefixes it with the name of the input.
func (p *Position) Warnf(format string, args ...any) {
	p.warnings = append(p.warnings, p.Name+": "+fmt.Sprintf(format, args...))
}

// Exists reports whether path exists.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
