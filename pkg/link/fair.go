package link

import (
	"math"
	"slices"

	"blis/pkg/des"
)

// Fair are the links between two groups of replicas. Each sender has a link out and each receiver a link in, and the
// transfers in progress at an end share it evenly: one runs at the lower of the two shares, and what the other end
// cannot use is not handed on. During its latency a transfer counts at neither end.
type Fair struct {
	latency  des.Time
	out, in  float64 // bytes/µs
	sending  []int32 // transfers in progress by sender
	reaching []int32 // by receiver
	flows    []flow  // in the order in which they start to move bytes
	now      des.Time
}

// flow is a transfer that moves bytes, or will from starts on.
type flow struct {
	id, from, to int32
	moving       bool
	asked        des.Time
	starts, ends des.Time // ends holds until the next start or end of any transfer
	left         float64  // bytes
}

// NewFair returns idle links. Bandwidths are in 10⁹ bytes a second.
func NewFair(latency des.Time, outGBPerS, inGBPerS float64, senders, receivers int) *Fair {
	return &Fair{latency: latency, out: 1000 * outGBPerS, in: 1000 * inGBPerS, sending: make([]int32, senders),
		reaching: make([]int32, receivers)}
}

// Clone returns an independent copy.
func (f *Fair) Clone() *Fair {
	c := *f
	c.sending, c.reaching, c.flows = slices.Clone(f.sending), slices.Clone(f.reaching), slices.Clone(f.flows)
	return &c
}

// Alone returns how long a transfer takes that shares its links with no other.
func (f *Fair) Alone(bytes float64) des.Time {
	return f.latency + des.Time(math.Ceil(bytes/min(f.out, f.in)))
}

// Ask begins a transfer at now, with its latency.
func (f *Fair) Ask(now des.Time, id, from, to int32, bytes float64) {
	f.sending, f.reaching = extended(f.sending, from), extended(f.reaching, to)
	f.flows = append(f.flows, flow{id: id, from: from, to: to, asked: now, starts: now + f.latency, left: bytes})
	if f.latency == 0 { // others may end now, too, which Advance says
		f.move(now)
		w := &f.flows[len(f.flows)-1]
		w.moving = true
		f.count(w, 1)
		f.setEnds()
	}
}

// extended returns counts that are long enough for an index.
func extended(counts []int32, i int32) []int32 {
	for int(i) >= len(counts) {
		counts = append(counts, 0)
	}
	return counts
}

// Next returns when the next transfer starts to move bytes or ends, math.MaxInt64 without transfers.
func (f *Fair) Next() des.Time {
	next := des.Time(math.MaxInt64)
	for i := range f.flows {
		next = min(next, f.flows[i].next())
	}
	return next
}

func (w *flow) next() des.Time {
	if w.moving {
		return w.ends
	}
	return w.starts
}

// Advance moves bytes until now, which is at most Next, and returns the transfers that end then, in the order in which
// they were asked for.
func (f *Fair) Advance(now des.Time) (ended []int32) {
	f.move(now)
	kept := f.flows[:0]
	for _, w := range f.flows {
		switch {
		case w.moving && w.ends <= now:
			f.count(&w, -1)
			ended = append(ended, w.id)
			continue
		case !w.moving && w.starts <= now:
			w.moving = true
			f.count(&w, 1)
		}
		kept = append(kept, w)
	}
	f.flows = kept
	f.setEnds()
	return ended
}

// Cancel ends those transfers at now, which is at most Next, for which is returns true, and returns them in the order
// in which they were asked for.
func (f *Fair) Cancel(now des.Time, is func(id int32) bool) (canceled []int32) {
	f.move(now)
	kept := f.flows[:0]
	for _, w := range f.flows {
		if !is(w.id) {
			kept = append(kept, w)
			continue
		}
		if w.moving {
			f.count(&w, -1)
		}
		canceled = append(canceled, w.id)
	}
	f.flows = kept
	f.setEnds()
	return canceled
}

// move moves bytes until now.
func (f *Fair) move(now des.Time) {
	for i := range f.flows {
		if w := &f.flows[i]; w.moving {
			w.left -= float64(f.rate(w) * float64(now-f.now))
		}
	}
	f.now = now
}

// setEnds sets when the transfers in progress end from now on.
func (f *Fair) setEnds() {
	for i := range f.flows {
		if w := &f.flows[i]; w.moving {
			w.ends = max(w.asked+1, f.now+des.Time(math.Ceil(w.left/f.rate(w)-roundingSlack)))
		}
	}
}

// roundingSlack is the part of a µs by which the rounding of a transfer's bytes may exceed a whole µs.
const roundingSlack = 1e-9

// rate is how fast a transfer moves bytes, in bytes/µs.
func (f *Fair) rate(w *flow) float64 {
	return min(f.out/float64(f.sending[w.from]), f.in/float64(f.reaching[w.to]))
}

func (f *Fair) count(w *flow, n int32) {
	f.sending[w.from] += n
	f.reaching[w.to] += n
}
