package sim

import (
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// sink receives the results of a run.
type sink interface {
	// addOutcome takes the outcome of the request at a position, which ended now.
	addOutcome(position int64, o *stream.Outcome, now stream.Micros)
	addSession(o *stream.SessionOutcome)
	// addGaps takes the inter-token latencies of the tokens of a step.
	addGaps(*engine.StepResult)
}

// metricsSink collects the metrics of a run, and results if alternatives are compared with it.
type metricsSink struct {
	*metrics.Accumulator
	results *results
	demand  demand
}

func (b *metricsSink) addOutcome(position int64, o *stream.Outcome, now stream.Micros) {
	b.Add(o)
	b.demand.add(o)
	b.ExtendTo(now)
	if b.results != nil {
		b.results.addOutcome(position, o, now)
	}
}

func (b *metricsSink) addSession(o *stream.SessionOutcome) {
	b.AddSession(o)
	b.AddNotIssued(o)
}

func (b *metricsSink) addGaps(e *engine.StepResult) {
	if e.Decoding > 0 {
		b.AddGaps(e.DecodeGap, int64(e.Decoding))
	}
	for _, gap := range e.Gaps {
		b.AddGaps(gap, 1)
	}
}

// result is the result of one request: its TTFT and E2E latency in µs, stream.Never if undefined,
// and whether it met its targets.
type result struct {
	ttft, e2e             stream.Micros
	known, completed, met bool
}

// results is the sink of an alternative: the result of each request by position.
type results struct{ byPosition []result }

// at is the result of the request at a position.
func (f *results) at(position int) result {
	if position < len(f.byPosition) {
		return f.byPosition[position]
	}
	return result{}
}

// finalized says, by position, which results are known.
func (f *results) finalized() []bool {
	known := make([]bool, len(f.byPosition))
	for i := range f.byPosition {
		known[i] = f.byPosition[i].known
	}
	return known
}

// difference sums up what others change, over the positions that count.
func (f *results) difference(others *results, counts func(position int) bool) (d stream.Difference) {
	var ttft, e2e stream.Micros
	for i := range max(len(f.byPosition), len(others.byPosition)) {
		if !counts(i) {
			continue
		}
		actual, changed := f.at(i), others.at(i)
		switch {
		case changed.met && !actual.met:
			d.Gained++
		case actual.met && !changed.met:
			d.Lost++
		}
		switch {
		case changed.completed && !actual.completed:
			d.Completed++
		case actual.completed && !changed.completed:
			d.Completed--
		case actual.completed && (actual.ttft != changed.ttft || actual.e2e != changed.e2e):
			d.Changed++
			ttft += actual.ttft - changed.ttft
			e2e += actual.e2e - changed.e2e
		}
	}
	d.TTFTMS, d.E2EMS = float64(ttft)/1000, float64(e2e)/1000
	return d
}

func (f *results) addOutcome(position int64, o *stream.Outcome, _ stream.Micros) {
	for int64(len(f.byPosition)) <= position {
		f.byPosition = append(f.byPosition, result{})
	}
	x := result{ttft: stream.Never, e2e: stream.Never, known: true, completed: o.State == stream.StateCompleted,
		met: o.SLOMet != nil && *o.SLOMet}
	if !o.FirstTokenUS.IsZero() {
		x.ttft = o.FirstTokenUS - o.ArrivalUS
	}
	if x.completed {
		x.e2e = o.CompletedUS - o.ArrivalUS
	}
	f.byPosition[position] = x
}

func (f *results) addSession(*stream.SessionOutcome) {}
func (f *results) addGaps(*engine.StepResult)        {}
