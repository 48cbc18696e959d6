package cli

import (
	"fmt"
	"io"
	"time"
)

// A run shows its progress when it takes longer than patience, and then not
// more often than every interval.
const (
	patience = 2 * time.Second
	interval = 200 * time.Millisecond
)

// progress is one line at the foot of a terminal that is written again and
// again.
type progress struct {
	tool  string
	w     io.Writer
	next  time.Time
	shown bool
}

// newProgress returns the progress line of w, or nil if w is no terminal.
func newProgress(tool string, w io.Writer) *progress {
	if !isTerminal(w) {
		return nil
	}
	return &progress{tool: tool, w: w, next: time.Now().Add(patience)}
}

// hook returns what a tool calls with the text to be shown; nil for no line.
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
	p.next, p.shown = now.Add(interval), true
	fmt.Fprintf(p.w, "\r\x1b[K%s: %s", p.tool, text)
}

// clear takes the line away.
func (p *progress) clear() {
	if p != nil && p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
