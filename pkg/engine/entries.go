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

// keepDecoding adds a token of each decoding sequence to the entries of b. KeepBatches must be set.
func (e *Engine) keepDecoding(b *batch) {
	for d := range e.decoding.All() {
		e.keep(b, &e.seqs[d.Slot], 1)
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
