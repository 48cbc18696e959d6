package sim

import (
	"slices"

	"blis/pkg/anomaly"
	"blis/pkg/stream"
)

// recorder writes the records of a run in their order. It leaves what takes long to a goroutine of its own: to format
// decisions and outcomes, and to detect anomalies. The goroutine gets all that it needs in batches. It reads nothing of
// the simulation, and the simulation learns nothing from it but that a record could not be written: a run does not
// depend on when its batches are processed.
type recorder struct {
	w       *stream.Writer // nil if nothing is written; then there is no goroutine
	encoder *stream.Encoder
	batch   *recordBatch // that is being filled
	// full passes batches to the goroutine, and free returns them, with the first error so far.
	full chan *recordBatch
	free chan processed
	// err is the first error of the goroutine that is known.
	err    error
	closed bool
	// lists are those of steps that are written.
	lists [][]stream.BatchEntry
	// places are those of the replicas that events may name. They are only appended to.
	places []place
	// anomalies belongs to the goroutine until it has ended.
	anomalies *anomalyLog
}

// place is where a replica is.
type place struct {
	deployment string
	replica    stream.Index
}

// processed is a batch that is free, nil for one that is not made yet.
type processed struct {
	batch *recordBatch
	err   error
}

// recordBatches is the number of batches in circulation: one in use, two in transit.
const recordBatches = 3

// recordBatch is a sequence of entries, and the data of each kind in its order.
type recordBatch struct {
	entries   []entry
	decisions []stream.Decision
	outcomes  []stream.Outcome
	steps     []stream.Step
	batched   int // requests in the batches of steps
	// lines are records that are formatted already; ends are where they end.
	lines  []byte
	ends   []int
	events []anomaly.Event
	// candidates and terms are those of the decisions, requests those of the events.
	candidates []stream.Candidate
	terms      []float64
	requests   []anomaly.Request
	places     []place
}

// entry is a kind of entry.
type entry uint8

const (
	decisionEntry entry = iota
	outcomeEntry
	stepEntry
	lineEntry
	eventEntry
	anomaliesEntry // the anomalies found so far are written and counted
)

// A batch is full when it has this many entries, candidates, requests in the batches of steps, or bytes of lines.
const (
	fullEntries    = 512
	fullCandidates = 1024
	fullBatched    = 4096
	fullLines      = 64 << 10
)

// newRecorder returns a recorder that writes to w until it is closed.
func newRecorder(s *simulation, w *stream.Writer) *recorder {
	o := &recorder{w: w, batch: &recordBatch{}, anomalies: newAnomalyLog(s)}
	if w != nil {
		o.encoder = stream.NewEncoder()
		o.full, o.free = make(chan *recordBatch, recordBatches), make(chan processed, recordBatches)
		for range recordBatches - 1 {
			o.free <- processed{}
		}
		go o.processAll()
	}
	return o
}

// Any records v, a record with its kind set.
func (o *recorder) Any(v any) error { return o.line(o.encoder.Any(o.batch.lines, v)) }

// Step records a copy of v. The list of its requests belongs to the recorder then.
func (o *recorder) Step(v *stream.Step) error {
	o.batch.steps = append(o.batch.steps, *v)
	o.batch.batched += len(v.Batch)
	return o.add(stepEntry)
}

// list returns an empty list for the requests of a step. It may have the memory of an earlier one.
func (o *recorder) list() (list []stream.BatchEntry) {
	if n := len(o.lists); n > 0 {
		list, o.lists = o.lists[n-1][:0], o.lists[:n-1]
	}
	return list
}

// Regret records v.
func (o *recorder) Regret(v *stream.Regret) error { return o.line(o.encoder.Regret(o.batch.lines, v)) }

// line accepts lines: those of the batch and one more, unless err says why there is none.
func (o *recorder) line(lines []byte, err error) error {
	if err != nil {
		return err
	}
	o.batch.lines, o.batch.ends = lines, append(o.batch.ends, len(lines))
	return o.add(lineEntry)
}

// Outcome records a copy of v.
func (o *recorder) Outcome(v *stream.Outcome) error {
	o.batch.outcomes = append(o.batch.outcomes, *v)
	return o.add(outcomeEntry)
}

// candidates returns memory for n candidates of the next decision.
func (o *recorder) candidates(n int) []stream.Candidate { return take(&o.batch.candidates, n) }

// terms returns memory for n terms of a candidate of the next decision.
func (o *recorder) terms(n int) []float64 { return take(&o.batch.terms, n) }

// take returns the memory of n more elements of a list.
func take[T any](list *[]T, n int) []T {
	from := len(*list)
	*list = slices.Grow(*list, n)[:from+n]
	return (*list)[from : from+n : from+n]
}

// Decision records a copy of v, whose candidates are from the current batch.
func (o *recorder) Decision(v *stream.Decision) error {
	o.batch.decisions = append(o.batch.decisions, *v)
	return o.add(decisionEntry)
}

// event passes an event and a copy of its request, if it has one, to the detectors of anomalies. The next record
// returns its error.
func (o *recorder) event(s *simulation, e anomaly.Event) {
	for int(e.Replica) >= len(o.places) {
		r := &s.replicas[len(o.places)]
		o.places = append(o.places, place{s.deployments[r.deployment].id, r.index})
	}
	b := o.batch
	if e.Request != nil {
		b.requests = append(b.requests, *e.Request)
		e.Request = &b.requests[len(b.requests)-1]
	}
	b.events = append(b.events, e)
	_ = o.add(eventEntry)
}

// add adds an entry whose data is in the batch.
func (o *recorder) add(x entry) error {
	b := o.batch
	b.entries = append(b.entries, x)
	if len(b.entries) < fullEntries && len(b.candidates) < fullCandidates && b.batched < fullBatched &&
		len(b.lines) < fullLines {
		return o.err
	}
	return o.flush()
}

// flush has the batch processed and begins another one.
func (o *recorder) flush() error {
	o.batch.places = o.places
	if o.full == nil {
		o.err = o.process(o.batch)
	} else {
		o.full <- o.batch
		next := <-o.free
		o.batch, o.err = next.batch, next.err
	}
	if o.batch == nil {
		o.batch = &recordBatch{}
	}
	for i := range o.batch.steps {
		o.lists = append(o.lists, o.batch.steps[i].Batch)
	}
	o.batch.clear()
	return o.err
}

// clear empties a batch and keeps its memory.
func (b *recordBatch) clear() {
	b.entries, b.decisions, b.outcomes = b.entries[:0], b.decisions[:0], b.outcomes[:0]
	b.steps, b.batched = b.steps[:0], 0
	b.lines, b.ends, b.events = b.lines[:0], b.ends[:0], b.events[:0]
	b.candidates, b.terms, b.requests = b.candidates[:0], b.terms[:0], b.requests[:0]
}

// close returns when all is written. Closing again does nothing.
func (o *recorder) close() error {
	if o.closed {
		return o.err
	}
	o.closed = true
	if o.full == nil {
		return o.flush()
	}
	o.batch.places = o.places
	o.full <- o.batch
	close(o.full)
	for done := range o.free {
		o.err = done.err
	}
	return o.err
}

// processAll runs in the goroutine. After an error it only returns batches.
func (o *recorder) processAll() {
	defer close(o.free)
	var err error
	for b := range o.full {
		if err == nil {
			err = o.process(b)
		}
		o.free <- processed{b, err}
	}
}

// process writes the records of a batch and notifies the detectors of its events.
func (o *recorder) process(b *recordBatch) (err error) {
	rest := *b
	line := 0
	for _, x := range b.entries {
		switch x {
		case decisionEntry:
			err = o.w.Decision(&rest.decisions[0])
			rest.decisions = rest.decisions[1:]
		case outcomeEntry:
			err = o.w.Outcome(&rest.outcomes[0])
			rest.outcomes = rest.outcomes[1:]
		case stepEntry:
			err = o.w.Step(&rest.steps[0])
			rest.steps = rest.steps[1:]
		case lineEntry:
			err = o.w.Raw(b.lines[line:rest.ends[0]])
			line, rest.ends = rest.ends[0], rest.ends[1:]
		case eventEntry:
			o.anomalies.detect(&rest.events[0])
			rest.events = rest.events[1:]
		case anomaliesEntry:
			err = o.anomalies.write(o.w, b.places)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
