package cli

import (
	"context"
	"io"
	"os"

	"golang.org/x/term"
)

// input is what a tool reads, with the name that errors give it.
type input struct {
	io.Reader
	name  string
	close func() error
}

// Name is the file's name, or stdin.
func (in *input) Name() string { return in.name }

// Close closes what openInput opened.
func (in *input) Close() error { return in.close() }

// openInput opens the file called name, stdin for "-", or an empty input for an empty
// name. Reads that may block (of a pipe or terminal) end when ctx does.
func openInput(ctx context.Context, name string, stdin io.Reader) (*input, error) {
	if name == "" {
		return &input{Reader: emptyReader{}, close: func() error { return nil }}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	if name == "-" {
		return &input{cancelable(ctx, stdin), "stdin", func() error { cancel(); return nil }}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		cancel()
		return nil, err
	}
	return &input{cancelable(ctx, f), name, func() error { cancel(); return f.Close() }}, nil
}

// cancelable returns r if it is a regular file, and otherwise a cancelableReader of it.
func cancelable(ctx context.Context, r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return f
		}
	}
	return newCancelableReader(ctx, r)
}

// sameFile reports whether both names are those of one file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// isTerminal reports whether stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// emptyReader is the input of a call that reads nothing.
type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// blockSize is how much a cancelableReader reads at once: the size of a pipe on Linux.
const blockSize = 64 << 10

// cancelableReader is a reader whose Read returns when ctx is done, even if the underlying
// reader is blocked. It reads one block ahead.
type cancelableReader struct {
	ctx  context.Context
	full chan block
	free chan []byte
	// current is the block being read, rest its unread part.
	current block
	rest    []byte
}

type block struct {
	data []byte
	err  error
}

func newCancelableReader(ctx context.Context, r io.Reader) *cancelableReader {
	p := &cancelableReader{ctx: ctx, full: make(chan block), free: make(chan []byte, 2)}
	p.free <- make([]byte, blockSize)
	p.free <- make([]byte, blockSize)
	go p.fill(r)
	return p
}

func (p *cancelableReader) fill(r io.Reader) {
	for {
		select {
		case buf := <-p.free:
			n, err := r.Read(buf)
			select {
			case p.full <- block{buf[:n], err}:
			case <-p.ctx.Done():
				return
			}
			if err != nil {
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

func (p *cancelableReader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.current.err != nil {
			return 0, p.current.err
		}
		if p.current.data != nil {
			p.free <- p.current.data[:blockSize]
		}
		select {
		case p.current = <-p.full:
			p.rest = p.current.data
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
