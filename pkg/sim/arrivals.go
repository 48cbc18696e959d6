package sim

import (
	"cmp"
	"slices"

	"blis/pkg/stream"
)

// feed supplies a workload.
type feed interface {
	// next returns the next arrival and its position in the stream, or nil at the end. The position
	// of a session is that of its first step; the others follow. The arrival is valid until the next
	// call and must not be changed, but its session's memory may be taken.
	next() (a *stream.Arrival, position int64, err error)
	// skip reads the rest, starting with the last arrival that next returned, and returns the number
	// of arrivals.
	skip() (int64, error)
}

// source is a feed that knows the stream it comes from.
type source interface {
	feed
	// digest and warnings are those of the stream, after its end.
	digest() string
	warnings() []string
}

// arrivals reads a workload.
type arrivals struct {
	reader *stream.Reader
	// following is the position of the next arrival to read: each step of a session has a position.
	following int64
	last      stream.Micros
	ids       idSet
	// pending: the reader is at a record that has not been handled.
	pending bool
	// ahead holds read arrivals, of which ahead[at:n] have not been supplied. Reading several at once takes less time:
	// the instructions that decode them and those that simulate them displace each other from the processor's cache.
	ahead [32]readArrival
	at, n int
}

// readArrival is what next of a feed returns.
type readArrival struct {
	arrival  stream.Arrival
	position int64
	ok       bool // neither an error nor the end
	err      error
}

// openArrivals reads up to the first arrival. The header is nil if the workload has none.
func openArrivals(reader *stream.Reader) (*arrivals, *stream.Header, error) {
	reader.Expect(stream.StreamWorkload)
	a := &arrivals{reader: reader}
	if !reader.Next() {
		return nil, nil, reader.Err()
	}
	h := reader.Header()
	a.pending = h == nil
	return a, h, nil
}

func (a *arrivals) next() (*stream.Arrival, int64, error) {
	if a.at == a.n {
		a.readAhead()
	}
	r := &a.ahead[a.at]
	if !r.ok { // it stays
		return nil, 0, r.err
	}
	a.at++
	return &r.arrival, r.position, nil
}

// readAhead reads the next arrivals, up to an error or the end.
func (a *arrivals) readAhead() {
	a.at, a.n = 0, 0
	for a.n < len(a.ahead) {
		r := &a.ahead[a.n]
		a.n++
		if r.ok, r.err = a.readNext(r); !r.ok {
			return
		}
	}
}

// readNext reads the next arrival into r; it returns false at the end, and on errors.
func (a *arrivals) readNext(r *readArrival) (ok bool, err error) {
	for a.pending || a.reader.Next() {
		a.pending = false
		switch kind := a.reader.Kind(); kind {
		case stream.KindRequest, stream.KindSession:
			r.position = a.following
			err := a.read(&r.arrival)
			return err == nil, err
		case stream.KindEnd:
		default:
			return false, a.reader.Errorf("kind is %q; must be request or session", kind)
		}
	}
	if err := a.reader.Err(); err != nil {
		return false, err
	}
	return false, a.checkIDs()
}

// checkIDs reports a duplicate that was not found at once.
func (a *arrivals) checkIDs() error {
	line, err := a.ids.finish()
	if err == nil && line > 0 {
		err = a.reader.ErrorAt(line,
			"the id of this record, of one of its steps or of a retry is a duplicate; ids must be unique")
	}
	return err
}

// close removes temporary files.
func (a *arrivals) close() {
	if a != nil {
		a.ids.late.runs.Close()
	}
}

func (a *arrivals) read(q *stream.Arrival) error {
	if err := a.reader.Arrival(q); err != nil {
		return err
	}
	a.following++
	if at := *q.At(); at < a.last {
		return a.reader.Errorf(
			"arrival_us is %d, before %d of the previous request; requests must be sorted by arrival", at, a.last)
	}
	a.last, a.ids.line = *q.At(), a.reader.Line()
	if id := *q.ID(); !a.ids.add(id) {
		return a.reader.Errorf("id %q is a duplicate; ids must be unique", id)
	}
	if !q.IsSession {
		return cmp.Or(a.addRetries(q.Request.Retry, q.Request.ID), a.ids.late.err)
	}
	s := &q.Session
	a.following += int64(len(s.Steps)) - 1
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Tool == "" && !a.ids.addStep(s.ID, step.ID) {
			return a.reader.Errorf("id %q is a duplicate; ids must be unique", step.RequestID(s.ID))
		}
		if step.Retry != nil {
			if err := a.addRetries(step.Retry, step.RequestID(s.ID)); err != nil {
				return err
			}
		}
	}
	return a.ids.late.err
}

// addRetries takes the ids of the further attempts at the request with this id.
func (a *arrivals) addRetries(r *stream.Retry, id string) error {
	if r == nil {
		return nil
	}
	for n := range r.BackoffUS {
		if retry := retryID(id, n+1); !a.ids.add(retry) {
			return a.reader.Errorf("id %q is a duplicate; a retry of %q has it", retry, id)
		}
	}
	return nil
}

func (a *arrivals) skip() (n int64, err error) {
	for more := true; more && err == nil; n++ {
		var q *stream.Arrival
		q, _, err = a.next()
		more = q != nil
	}
	return n, err
}

func (a *arrivals) digest() string     { return a.reader.Digest() }
func (a *arrivals) warnings() []string { return a.reader.Warnings() }

// workload is a workload in memory.
type workload []recordedArrival

type recordedArrival struct {
	stream.Arrival
	position int64
}

// recordingFeed is a feed that keeps a copy of all it supplies.
type recordingFeed struct {
	feed
	workload workload
}

func (f *recordingFeed) next() (*stream.Arrival, int64, error) {
	a, position, err := f.feed.next()
	if a != nil && err == nil {
		f.workload = append(f.workload, recordedArrival{clone(a), position})
	}
	return a, position, err
}

// clone returns an arrival with its own memory.
func clone(a *stream.Arrival) stream.Arrival {
	if !a.IsSession {
		c := stream.Arrival{Request: a.Request}
		c.Request.Prompt = slices.Clone(a.Request.Prompt)
		return c
	}
	c := stream.Arrival{IsSession: true, Session: a.Session}
	c.Session.Steps = slices.Clone(a.Session.Steps)
	for i := range c.Session.Steps {
		step := &c.Session.Steps[i]
		step.After, step.Prompt = slices.Clone(step.After), slices.Clone(step.Prompt)
	}
	return c
}

// feed returns a feed that supplies the workload. Several may share it.
func (w workload) feed() *memoryFeed {
	return &memoryFeed{n: len(w), load: func(i int, a *stream.Arrival) int64 {
		*a = w[i].Arrival
		return w[i].position
	}}
}

// memoryFeed supplies n arrivals from memory. load loads arrival i into a and returns its position.
type memoryFeed struct {
	n       int
	load    func(i int, a *stream.Arrival) int64
	at      int // index of the next arrival
	arrival stream.Arrival
}

func (f *memoryFeed) next() (*stream.Arrival, int64, error) {
	if f.at == f.n {
		return nil, 0, nil
	}
	f.at++
	return &f.arrival, f.load(f.at-1, &f.arrival), nil
}

func (f *memoryFeed) skip() (int64, error) {
	n := int64(f.n - f.at + 1) // includes the last arrival of next
	f.at = f.n
	return n, nil
}
