package sim

import (
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// ledger is told what becomes of everything.
type ledger interface {
	// final takes the outcome of the request at a position, which ended now.
	final(position int64, o *stream.Outcome, now stream.Micros)
	session(o *stream.SessionOutcome)
	// gaps takes the times between tokens that a step has ended.
	gaps(*engine.Ends)
}

// book is the ledger of a run: its metrics, and the fates of requests where they are
// compared with others.
type book struct {
	*metrics.Accumulator
	fates  *fates
	demand demand
}

func (b *book) final(position int64, o *stream.Outcome, now stream.Micros) {
	b.Add(o)
	b.demand.add(o)
	b.Until(now)
	if b.fates != nil {
		b.fates.final(position, o, now)
	}
}

func (b *book) session(o *stream.SessionOutcome) {
	b.Session(o)
	b.Lost(o)
}

func (b *book) gaps(e *engine.Ends) {
	if e.Steady > 0 {
		b.Gap(e.Gap, int64(e.Steady))
	}
	for _, gap := range e.Gaps {
		b.Gap(gap, 1)
	}
}

// fate is what became of one request: its times from arrival to the client's
// first and last token in µs, stream.Never where these never came, and whether it
// met its targets.
type fate struct {
	ttft, e2e             stream.Micros
	known, completed, met bool
}

// fates is the ledger of an alternative: the fate of each request, by position.
type fates struct{ of []fate }

// at is the fate of the request at a position.
func (f *fates) at(position int) fate {
	if position < len(f.of) {
		return f.of[position]
	}
	return fate{}
}

// settled says, by position, whose fate is known.
func (f *fates) settled() []bool {
	known := make([]bool, len(f.of))
	for i := range f.of {
		known[i] = f.of[i].known
	}
	return known
}

// difference adds up what others change of these, over the positions that count.
func (f *fates) difference(others *fates, counts func(position int) bool) (d stream.Difference) {
	var ttft, e2e stream.Micros
	for i := range max(len(f.of), len(others.of)) {
		if !counts(i) {
			continue
		}
		was, would := f.at(i), others.at(i)
		switch {
		case would.met && !was.met:
			d.Gained++
		case was.met && !would.met:
			d.Lost++
		}
		switch {
		case would.completed && !was.completed:
			d.Completed++
		case was.completed && !would.completed:
			d.Completed--
		case was.completed && (was.ttft != would.ttft || was.e2e != would.e2e):
			d.Changed++
			ttft += was.ttft - would.ttft
			e2e += was.e2e - would.e2e
		}
	}
	d.TTFTMS, d.E2EMS = float64(ttft)/1000, float64(e2e)/1000
	return d
}

func (f *fates) final(position int64, o *stream.Outcome, _ stream.Micros) {
	for int64(len(f.of)) <= position {
		f.of = append(f.of, fate{})
	}
	x := fate{ttft: stream.Never, e2e: stream.Never, known: true, completed: o.State == stream.StateCompleted, met: o.SLOMet != nil && *o.SLOMet}
	if !o.FirstTokenUS.IsZero() {
		x.ttft = o.FirstTokenUS - o.ArrivalUS
	}
	if x.completed {
		x.e2e = o.CompletedUS - o.ArrivalUS
	}
	f.of[position] = x
}

func (f *fates) session(*stream.SessionOutcome) {}
func (f *fates) gaps(*engine.Ends)              {}
