package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
)

// reopener opens inputs that are read more than once: files anew each time; what
// can be read only once, stdin and pipes, is kept in a temporary file meanwhile.
type reopener struct {
	ctx   context.Context
	stdin io.Reader
	kept  map[string]*kept
}

// open opens the file called name, stdin for "-", from the start.
func (r *reopener) open(name string) (io.ReadCloser, error) {
	if k, ok := r.kept[name]; ok {
		return &again{k, 0}, nil
	}
	if name == "-" && isTerminal(r.stdin) {
		return nil, errors.New("stdin is a terminal: name a file or connect a pipe")
	}
	in, err := openInput(r.ctx, name, r.stdin)
	if err != nil {
		return nil, err
	}
	if _, blocks := in.Reader.(*pump); !blocks && name != "-" {
		return in, nil
	}
	file, err := os.CreateTemp("", "blis-")
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	if r.kept == nil {
		r.kept = map[string]*kept{}
	}
	// The file is gone with the process, however that ends.
	r.kept[name] = &kept{in: in, file: file}
	return &again{r.kept[name], 0}, os.Remove(file.Name())
}

// close closes all that is kept.
func (r *reopener) close() {
	for _, k := range r.kept {
		k.file.Close()
		k.in.Close()
	}
}

// kept is an input of which the first size bytes are in the file; err is what
// reading it ended with.
type kept struct {
	mu   sync.Mutex // who has given up reading may not have stopped yet
	in   *input
	file *os.File
	size int64
	err  error
}

// again reads a kept input from the start.
type again struct {
	*kept
	at int64
}

func (a *again) Name() string { return a.in.name }

// Close leaves the input open, for whoever reads it again.
func (*again) Close() error { return nil }

func (a *again) Read(p []byte) (n int, err error) {
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
