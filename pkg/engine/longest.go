package engine

import "math"

// longest is the most tokens that a decoding sequence has computed, less the ticks of the cache's clock:
// all get a token at each tick.
type longest struct {
	base  int64
	known bool
}

// add counts a sequence that has computed base + tick tokens.
func (l *longest) add(base int64) {
	if l.known && base > l.base {
		l.base = base
	}
}

// remove undoes add.
func (l *longest) remove(base int64) { l.known = l.known && base < l.base }

// longestBase returns the value, which is of at least one decoding sequence.
func (e *Engine) longestBase() int64 {
	if !e.longest.known {
		e.findLongest()
	}
	return e.longest.base
}

// findLongest is apart from longestBase so that a known value costs no call.
func (e *Engine) findLongest() {
	e.longest = longest{math.MinInt64, true}
	for d := range e.decoding.All() {
		q := &e.seqs[d.Slot]
		e.longest.add(int64(q.computed) - q.startTick)
	}
}

// longestScheduled returns the most tokens that an individual sequence that decodes in b had computed
// before.
func (e *Engine) longestScheduled(b *batch) (most int64) {
	for _, s := range e.individual {
		q := &e.seqs[s]
		decodes := (q.generated > 0 || q.pulled) && q.lastTokens == 1 && q.remaining() == 0
		if q.lastBatch == b.number && decodes {
			most = max(most, int64(q.computed)-1)
		}
	}
	return most
}
