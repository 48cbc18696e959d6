package trace

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"blis/pkg/record"
)

// Input is what a trace is read from: a file, a folder where the format takes
// one, or a stream.
type Input struct {
	// Name is what errors call it.
	Name string
	// Path is the file or folder; "" where Stream is read instead.
	Path   string
	Stream io.Reader
}

// open opens a text, decompressed if it is zstd or gzip, without the byte order
// mark that some programs put before UTF-8.
func (in Input) open() (*text, error) {
	t := &text{name: in.Name}
	below := in.Stream
	if in.Path != "" {
		f, err := os.Open(in.Path)
		if err != nil {
			return nil, err
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			f.Close()
			return nil, fmt.Errorf("%s is a folder; this format is read from a file", in.Name)
		}
		below = f
		t.closers = append(t.closers, func() { f.Close() })
	}
	plain, done := record.Decompress(below)
	t.closers = append(t.closers, done)
	b := bufio.NewReaderSize(plain, 64<<10)
	if magic, _ := b.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			t.Close()
			return nil, &record.SyntaxError{File: in.Name, Msg: "the compressed data are corrupt: " + err.Error()}
		}
		b = bufio.NewReaderSize(&gunzipped{z}, 64<<10)
	}
	if mark, _ := b.Peek(3); string(mark) == "\ufeff" {
		b.Discard(3)
	}
	t.Reader = b
	return t, nil
}

// text is an open input.
type text struct {
	*bufio.Reader
	name    string
	closers []func()
}

// Name is what errors call it.
func (t *text) Name() string { return t.name }

// Close closes what is below.
func (t *text) Close() error {
	for i := len(t.closers) - 1; i >= 0; i-- {
		t.closers[i]()
	}
	t.closers = nil
	return nil
}

// gunzipped is a decompressor that says of its errors what they are about.
type gunzipped struct{ z *gzip.Reader }

func (g *gunzipped) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the compressed data are cut off")
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		err = fmt.Errorf("the compressed data are corrupt: %w", err)
	}
	return n, err
}

// place is where a reader stands in its trace, and what it has to say in the
// end. Readers embed it.
type place struct {
	name string
	line int
	// warnings are made by the reader.
	warnings []string
}

// Errorf makes an error about the arrival at hand.
func (p *place) Errorf(format string, args ...any) error {
	return &record.SyntaxError{File: p.name, Line: p.line, Msg: fmt.Sprintf(format, args...)}
}

// Warnings says what was odd.
func (p *place) Warnings() []string { return p.warnings }

// warnf notes what is odd, with the name of the trace.
func (p *place) warnf(format string, args ...any) {
	p.warnings = append(p.warnings, p.name+": "+fmt.Sprintf(format, args...))
}

// leftOut warns of rows that were left out, if there were any.
func (p *place) leftOut(rows int64, which string) []string {
	if rows == 0 {
		return p.warnings
	}
	return append(p.warnings, fmt.Sprintf("%s: left out %d requests %s", p.name, rows, which))
}

// request makes a an empty request that keeps its memory.
func request(a *record.Arrival) *record.Request {
	a.IsSession = false
	a.Request = record.Request{Prompt: a.Request.Prompt[:0], DeadlineUS: record.Never}
	return &a.Request
}
