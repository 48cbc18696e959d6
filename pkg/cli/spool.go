package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

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
	in, err := openInput(r.ctx, name, r.stdin)
	if err != nil {
		return nil, err
	}
	if _, blocks := in.Reader.(*cancelableReader); !blocks && name != "-" {
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

// spooled is an input whose first size bytes are in the file; err is the error that ended
// reading.
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
