// Package link models links that move blocks of KV between memories.
package link

import (
	"math"

	"blis/pkg/des"
)

// Speed is how fast a link is: a transfer alone takes LatencyUS plus its bytes at GBPerS, 10⁹ bytes a second.
type Speed struct {
	LatencyUS float64
	GBPerS    float64
}

// Time returns how long a transfer alone takes, in whole µs and at least 1.
func (s Speed) Time(bytes float64) des.Time {
	return max(1, des.Time(math.Ceil(s.LatencyUS+bytes/float64(1000*s.GBPerS))))
}

// Transfer is when a transfer was asked for, when the link began with it and when it ends.
type Transfer struct{ Asked, Started, Ended des.Time }

// FIFO is a link that runs one transfer at a time, in the order in which they are asked for. The end of a
// transfer is thus known when it is asked for.
type FIFO struct {
	speed Speed
	free  des.Time // when the last transfer ends
}

// NewFIFO returns an idle link.
func NewFIFO(s Speed) FIFO { return FIFO{speed: s} }

// Free returns when the last transfer ends, and Time how long one of this many bytes takes.
func (l *FIFO) Free() des.Time { return l.free }

// Time is Speed.Time of the link.
func (l *FIFO) Time(bytes float64) des.Time { return l.speed.Time(bytes) }

// Ask runs a transfer of this many bytes at now, or after those that were asked for before.
func (l *FIFO) Ask(now des.Time, bytes float64) Transfer {
	each := l.speed.Time(bytes)
	start := l.AskFor(now, each, 1)
	return Transfer{now, start, start + each}
}

// AskFor runs n transfers that take this long each, and returns when the first one begins.
func (l *FIFO) AskFor(now, each des.Time, n int) (start des.Time) {
	start = max(now, l.free)
	l.free = start + des.Time(n)*each
	return start
}
