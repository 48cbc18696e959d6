package sim

import (
	"blis/pkg/engine"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// metricsSink collects the metrics of a run.
type metricsSink struct {
	*metrics.Accumulator
	demand demand
}

func (m *metricsSink) hooks() []hook { return []hook{onTokens, onFinal, onSessionEnd} }

func (m *metricsSink) observe(s *simulation, h hook, i int32) error {
	switch h {
	case onTokens:
		m.addGaps(s.replicas[i].result)
	case onFinal:
		o := &s.request(i).out
		m.Add(o)
		m.demand.add(o)
		m.ExtendTo(stream.Micros(s.now))
	case onSessionEnd:
		m.AddSession(&s.sessions.open[i].out)
		m.AddNotIssued(&s.sessions.open[i].out)
	}
	return nil
}

// addGaps adds the inter-token latencies of the tokens of a step.
func (m *metricsSink) addGaps(e *engine.StepResult) {
	if e.Decoding > 0 {
		m.AddGaps(e.DecodeGap, int64(e.Decoding))
	}
	for _, gap := range e.Gaps {
		m.AddGaps(gap, 1)
	}
}

// result is the result of one request: its TTFT and E2E latency in µs, stream.Never if undefined,
// and whether it met its targets.
type result struct {
	ttft, e2e             stream.Micros
	known, completed, met bool
}

// results observes the result of each request, by position.
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
			d.SLOGained++
		case actual.met && !changed.met:
			d.SLOLost++
		}
		switch {
		case changed.completed && !actual.completed:
			d.Completed++
		case actual.completed && !changed.completed:
			d.Completed--
		case actual.completed && (actual.ttft != changed.ttft || actual.e2e != changed.e2e):
			d.LatencyChanged++
			ttft += actual.ttft - changed.ttft
			e2e += actual.e2e - changed.e2e
		}
	}
	d.TTFTMS, d.E2EMS = float64(ttft)/1000, float64(e2e)/1000
	return d
}

func (f *results) hooks() []hook { return []hook{onFinal} }

func (f *results) observe(s *simulation, _ hook, i int32) error {
	r := s.request(i)
	o := &r.out
	for int64(len(f.byPosition)) <= r.position {
		f.byPosition = append(f.byPosition, result{})
	}
	own := result{ttft: stream.Never, e2e: stream.Never, known: true, completed: o.State == stream.StateCompleted,
		met: o.SLOMet != nil && *o.SLOMet}
	if !o.FirstTokenUS.IsZero() {
		own.ttft = o.FirstTokenUS - o.ArrivalUS
	}
	if own.completed {
		own.e2e = o.CompletedUS - o.ArrivalUS
	}
	f.byPosition[r.position] = own
	return nil
}
