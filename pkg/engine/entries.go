package engine

import (
	"cmp"
	"slices"
)

// keep adds n tokens of q to the entries of b.
func (e *Engine) keep(b *batch, q *sequence, n int) {
	if e.cfg.KeepBatches {
		b.Entries = append(b.Entries, Entry{q.tag, n, q.admission})
	}
}

// started is a sequence that has started decoding.
type started struct {
	admission int64
	seq       int32
}

// keepDecoding adds a token of each decoding sequence to the entries of b, in order of admission. KeepBatches must be
// set.
func (e *Engine) keepDecoding(b *batch) {
	byAdmission := func(p, q started) int { return cmp.Compare(p.admission, q.admission) }
	e.started = slices.DeleteFunc(e.started, func(x started) bool {
		q := &e.seqs[x.seq]
		return q.state != decoding || q.admission != x.admission
	})
	slices.SortFunc(e.started, byAdmission) // fast, since few are new
	e.started = slices.Compact(e.started)   // some have started again
	if len(e.started) != e.decoding.Len() { // some only keep their blocks
		e.started = e.started[:0]
		for d := range e.decoding.All() {
			e.started = append(e.started, started{e.seqs[d.Slot].admission, d.Slot})
		}
		slices.SortFunc(e.started, byAdmission)
	}
	for _, x := range e.started {
		e.keep(b, &e.seqs[x.seq], 1)
	}
}

// withdraw removes q from the entries of b.
func (e *Engine) withdraw(b *batch, q *sequence) {
	b.Entries = slices.DeleteFunc(b.Entries, func(x Entry) bool { return x.Tag == q.tag })
}

// sortEntries puts the entries of b in the order of the running list, to which vLLM adds admitted requests.
func (b *batch) sortEntries() {
	slices.SortFunc(b.Entries, func(x, y Entry) int { return cmp.Compare(x.admission, y.admission) })
}
