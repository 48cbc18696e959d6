package sim

import (
	"blis/pkg/metrics"
	"blis/pkg/record"
)

// ledger is told what becomes of everything.
type ledger interface {
	// final takes the outcome of the request at a position, which ended now.
	final(position int64, o *record.Outcome, now record.Micros)
	session(o *record.SessionOutcome)
	// gap takes a time in µs between two tokens of a request, n times.
	gap(us, n int64)
}

// book is the ledger of a run: its metrics.
type book struct{ *metrics.Accumulator }

func (b *book) final(_ int64, o *record.Outcome, now record.Micros) {
	b.Add(o)
	b.Until(now)
}

func (b *book) session(o *record.SessionOutcome) { b.Session(o) }
func (b *book) gap(us, n int64)                  { b.Gap(us, n) }

// fate is what became of one request: its times from arrival to the client's
// first and last token in µs, record.Never where these never came, and whether it
// met its targets.
type fate struct {
	ttft, e2e             record.Micros
	known, completed, met bool
}

// fates is the ledger of an alternative: the fate of each request, by position.
type fates struct{ of []fate }

func (f *fates) final(position int64, o *record.Outcome, _ record.Micros) {
	for int64(len(f.of)) <= position {
		f.of = append(f.of, fate{})
	}
	x := fate{ttft: record.Never, e2e: record.Never, known: true, completed: o.State == record.StateCompleted, met: o.SLOMet != nil && *o.SLOMet}
	if !o.FirstTokenUS.IsZero() {
		x.ttft = o.FirstTokenUS - o.ArrivalUS
	}
	if x.completed {
		x.e2e = o.CompletedUS - o.ArrivalUS
	}
	f.of[position] = x
}

func (f *fates) session(*record.SessionOutcome) {}
func (f *fates) gap(int64, int64)               {}
