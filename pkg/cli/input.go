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

// openInput opens the file called name, stdin for "-", and an empty input for
// "". What may block (a pipe, a terminal) is read so that the end of ctx ends
// the reading too.
func openInput(ctx context.Context, name string, stdin io.Reader) (*input, error) {
	if name == "" {
		return &input{Reader: eof{}, close: func() error { return nil }}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	if name == "-" {
		return &input{unblocked(ctx, stdin), "stdin", func() error { cancel(); return nil }}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		cancel()
		return nil, err
	}
	return &input{unblocked(ctx, f), name, func() error { cancel(); return f.Close() }}, nil
}

// unblocked returns r if it is a regular file, else a pump of it.
func unblocked(ctx context.Context, r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return f
		}
	}
	return newPump(ctx, r)
}

// isTerminal reports whether stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// eof is the input of a call that reads nothing.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// blockSize is how much a pump reads at once: what a pipe holds on Linux.
const blockSize = 64 << 10

// pump is a reader whose Read returns when ctx is done, also while the reader
// below is blocked. It reads one block ahead.
type pump struct {
	ctx  context.Context
	full chan block
	free chan []byte
	// now is the block being handed out, rest what is left of it.
	now  block
	rest []byte
}

type block struct {
	data []byte
	err  error
}

func newPump(ctx context.Context, r io.Reader) *pump {
	p := &pump{ctx: ctx, full: make(chan block), free: make(chan []byte, 2)}
	p.free <- make([]byte, blockSize)
	p.free <- make([]byte, blockSize)
	go p.fill(r)
	return p
}

func (p *pump) fill(r io.Reader) {
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

func (p *pump) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.now.err != nil {
			return 0, p.now.err
		}
		if p.now.data != nil {
			p.free <- p.now.data[:blockSize]
		}
		select {
		case p.now = <-p.full:
			p.rest = p.now.data
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
