package cli

import (
	"fmt"
	"io"
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
	fmt.Fprintf(p.w, "\r\x1b[K%s: %s", p.tool, text)
}

// clear erases the line.
func (p *progress) clear() {
	if p != nil && p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
