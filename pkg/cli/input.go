package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// input is what a tool reads, with the name that errors give it.
type input struct {
	io.Reader
	name  string
	close func() error // nil if there is nothing to close
}

// Name is the file's name, or stdin.
func (in *input) Name() string { return in.name }

// Close closes what openInput opened.
func (in *input) Close() error {
	if in.close == nil {
		return nil
	}
	return in.close()
}

// openInput opens the file called name, stdin for "-", or an empty input for an empty
// name. Reads that may block (of a pipe or terminal) end when ctx does.
func openInput(ctx context.Context, name string, stdin io.Reader) (*input, error) {
	if name == "" {
		return &input{Reader: strings.NewReader("")}, nil
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

// cancelable returns r, counted for the progress line, if it is a regular file, and otherwise a reader of it
// whose reads end when ctx does, even if r is blocked.
func cancelable(ctx context.Context, r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return progressOf(ctx).watch(f)
		}
	}
	out, in := io.Pipe()
	go func() {
		buf := make([]byte, 64<<10) // the size of a pipe on Linux
		// The struct hides the WriteTo of os.File, which would not use buf.
		_, err := io.CopyBuffer(in, struct{ io.Reader }{r}, buf)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	return out
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

// isPipe reports whether w leads to another process on this machine, in whose memory compressed bytes save nothing.
func isPipe(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// terminalWidth returns the width of w in columns if it is a terminal, 0 otherwise.
func terminalWidth(w io.Writer) int {
	if !isTerminal(w) {
		return 0
	}
	columns, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// inputSpool opens inputs that are read several times. Files are opened again each time.
// Stdin and pipes can be read only once, so that their bytes are kept in a temporary file.
type inputSpool struct {
	ctx   context.Context
	stdin io.Reader
	kept  map[string]*spooled
}

// open opens the file called name, stdin for "-", from the start.
func (r *inputSpool) open(name string) (io.ReadCloser, error) {
	if k, ok := r.kept[name]; ok {
		return &spoolReader{k, 0}, nil
	}
	if name == "-" && isTerminal(r.stdin) {
		return nil, errors.New("stdin is a terminal: name a file or use a pipe")
	}
	if tablesIn(name) != "" {
		return openTables(r.ctx, name)
	}
	in, err := openInput(r.ctx, name, r.stdin)
	if err != nil {
		return nil, err
	}
	if _, isPipe := in.Reader.(*io.PipeReader); !isPipe && name != "-" {
		return in, nil
	}
	file, err := os.CreateTemp("", "blis-")
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if r.kept == nil {
		r.kept = map[string]*spooled{}
	}
	// The system deletes the removed file when the process ends.
	r.kept[name] = &spooled{in: in, file: file}
	return &spoolReader{r.kept[name], 0}, os.Remove(file.Name())
}

// close closes all spooled inputs.
func (r *inputSpool) close() {
	for _, k := range r.kept {
		k.file.Close()
		k.in.Close()
	}
}

// spooled is an input whose first size bytes are in the file; err is the error that ended reading.
type spooled struct {
	mu   sync.Mutex // an abandoned reader may still be running
	in   *input
	file *os.File
	size int64
	err  error
}

// spoolReader reads a spooled input from the start.
type spoolReader struct {
	*spooled
	at int64
}

func (a *spoolReader) Name() string { return a.in.name }

// Close leaves the input open for the next reader.
func (*spoolReader) Close() error { return nil }

func (a *spoolReader) Read(p []byte) (n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if left := a.size - a.at; left > 0 {
		n, err = a.file.ReadAt(p[:min(int64(len(p)), left)], a.at)
		a.at += int64(n)
		return n, err
	}
	if a.err != nil {
		return 0, a.err
	}
	n, a.err = a.in.Read(p)
	if _, err := a.file.WriteAt(p[:n], a.size); err != nil {
		a.err = err
		return 0, err
	}
	a.size += int64(n)
	a.at += int64(n)
	return n, a.err
}
