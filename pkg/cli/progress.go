package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// A run shows its progress after progressDelay, at most once per progressInterval.
const (
	progressDelay    = 2 * time.Second
	progressInterval = 200 * time.Millisecond
)

// progress is a line at the bottom of a terminal that is overwritten.
type progress struct {
	tool  string
	w     io.Writer
	next  time.Time
	shown bool
	// file is the regular file that was opened last; nil if there is none.
	file atomic.Pointer[countedFile]
}

// newProgress returns the progress line of w, or nil if w is not a terminal.
func newProgress(tool string, w io.Writer) *progress {
	if !isTerminal(w) {
		return nil
	}
	return &progress{tool: tool, w: w, next: time.Now().Add(progressDelay)}
}

// hook returns the function that shows a text; nil if there is no line.
func (p *progress) hook() func(string) {
	if p == nil {
		return nil
	}
	return p.show
}

func (p *progress) show(text string) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next, p.shown = now.Add(progressInterval), true
	if f := p.file.Load(); f != nil {
		text += shareText(f.name, f.read.Load(), f.size, now.Sub(f.opened))
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s: %s", p.tool, text)
}

// shareText says how much of a file was read, and when it will be at its end if the pace stays.
func shareText(name string, read, size int64, elapsed time.Duration) string {
	if read <= 0 || read >= size {
		return ""
	}
	share := float64(read) / float64(size)
	left := time.Duration(float64(elapsed) * (1 - share) / share).Round(time.Second)
	return fmt.Sprintf(", %.0f %% of %s, %s left", 100*share, filepath.Base(name), left)
}

// countedFile counts the bytes that are read of a file.
type countedFile struct {
	io.Reader
	name   string
	size   int64
	opened time.Time
	read   atomic.Int64
}

func (f *countedFile) Read(p []byte) (n int, err error) {
	n, err = f.Reader.Read(p)
	f.read.Add(int64(n))
	return n, err
}

// watch returns a reader of f whose position the line shows. A stream that is no regular file stays as it is.
func (p *progress) watch(f *os.File) io.Reader {
	info, err := f.Stat()
	if p == nil || err != nil || !info.Mode().IsRegular() {
		return f
	}
	c := &countedFile{Reader: f, name: f.Name(), size: info.Size(), opened: time.Now()}
	p.file.Store(c)
	return c
}

// progressKey is the key of a context's progress line.
type progressKey struct{}

// progressOf returns the progress line of a context; nil if it has none.
func progressOf(ctx context.Context) *progress {
	p, _ := ctx.Value(progressKey{}).(*progress)
	return p
}

// clear erases the line.
func (p *progress) clear() {
	if p != nil && p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
