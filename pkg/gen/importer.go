package gen

import (
	"fmt"
	"io"

	"blis/pkg/dist"
	"blis/pkg/stream"
	"blis/pkg/trace"
)

// traces is a source of what stands in traces, brought into one order: by
// arrival, at the same time by the order of the inputs.
type traces struct {
	inputs []*input
	// now is the input that gave the arrival at hand; nil before the first.
	now *input
	// scale multiplies times.
	scale float64
	// outputTokens, if not 0, is how many every request has.
	outputTokens int64
	// us is the arrival at hand, not scaled and not rounded; patience is how long
	// after it its deadline or its last step is, if it has one.
	us       float64
	patience stream.Micros
	// spaceUS, if not 0, is the gap between arrivals, which then have no times of
	// their own; accepted counts them.
	spaceUS  float64
	accepted int64
	// loops are the passes through the inputs still to come, period how much later
	// in the trace's own time each is, pass which one this is, from 0.
	loops, pass int64
	period      float64
}

// input is one trace of several.
type input struct {
	trace.Reader
	naming
	format trace.Format
	// ahead is the next arrival and us when it is; more tells whether there is one.
	ahead stream.Arrival
	us    float64
	more  bool
	// read counts the arrivals, last is the time of the latest that was accepted.
	read int64
	last float64
	// reopen begins the trace again.
	reopen func() (trace.Reader, error)
}

// advance reads the next arrival of i.
func (i *input) advance() (err error) {
	if i.us, err = i.Next(&i.ahead); err != nil {
		i.more = false
		if err == io.EOF {
			err = nil
		}
		return err
	}
	i.more = true
	return nil
}

// open begins to read the inputs.
func (t *traces) open() error {
	t.now = nil
	for _, i := range t.inputs {
		reader, err := i.reopen()
		if err != nil {
			return err
		}
		i.Reader, i.last, i.read = reader, 0, 0
		if err := i.advance(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the reading of all inputs.
func (t *traces) close() {
	for _, i := range t.inputs {
		if i.Reader != nil {
			i.Close()
			i.Reader = nil
		}
	}
}

// next fills a with the next arrival. Its id says which one of its trace it is,
// so that a filter renames none; its time is not scaled yet, so that a filter
// sees the trace's own.
func (t *traces) next(a *stream.Arrival) error {
	// The input at hand is read on only now: an error in it comes after all that
	// stands before.
	if t.now != nil {
		if err := t.now.advance(); err != nil {
			return err
		}
	}
	t.now = t.earliest()
	for t.now == nil {
		if t.loops == 0 {
			return io.EOF
		}
		t.loops--
		t.pass++
		t.close()
		if err := t.open(); err != nil {
			return err
		}
		if t.now = t.earliest(); t.now == nil {
			return io.EOF
		}
	}
	i := t.now
	*a, i.ahead = i.ahead, *a
	t.us = i.us + float64(t.pass)*t.period
	if t.us < 0 {
		return i.Errorf("arrives before the first row; rows must be sorted by time")
	}
	i.name(a, i.read, t.pass)
	i.read++
	if t.outputTokens > 0 && !a.IsSession {
		a.Request.OutputTokens = t.outputTokens
	}
	t.patience = *until(a)
	return t.setTime(a, t.us)
}

// earliest is the input whose next arrival is the first; nil if there is none.
func (t *traces) earliest() *input {
	var first *input
	for _, i := range t.inputs {
		if i.more && (first == nil || i.us < first.us) {
			first = i
		}
	}
	return first
}

// accept checks the arrival at hand, which may have been impossible as long as
// a filter could drop it, and scales its time.
func (t *traces) accept(a *stream.Arrival) error {
	i := t.now
	if !a.IsSession {
		r := &a.Request
		for _, length := range []struct {
			name   string
			tokens int64
			or     string
		}{{"input_tokens", r.InputTokens, ""}, {"output_tokens", r.OutputTokens, ", --output-tokens N gives all requests N"}} {
			if length.tokens < 1 {
				return i.Errorf("%s must be at least 1, is %d (--where '%[1]s >= 1' leaves such rows out%[3]s)", length.name, length.tokens, length.or)
			}
			if length.tokens > maxTokens {
				return i.Errorf("%s must be at most %d, is %d", length.name, maxTokens, length.tokens)
			}
		}
	}
	if i.us < i.last {
		return i.Errorf("arrives before a row above it; rows must be sorted by time")
	}
	i.last = i.us
	us := t.us * t.scale
	if t.spaceUS > 0 {
		us = float64(t.accepted) * t.spaceUS
	}
	t.accepted++
	return t.setTime(a, us)
}

// until is the time in a that is not its arrival: a request's deadline, or when
// a session is over.
func until(a *stream.Arrival) *stream.Micros {
	if a.IsSession {
		return &a.Session.UntilUS
	}
	return &a.Request.DeadlineUS
}

// setTime gives a the time us. What else it has of times stays as far from its
// arrival as it was.
func (t *traces) setTime(a *stream.Arrival, us float64) error {
	rounded, err := dist.Micros(us)
	if err != nil {
		return t.now.Errorf("%v", err)
	}
	*a.At() = stream.Micros(rounded)
	if t.patience != stream.Never {
		*until(a) = stream.Micros(rounded) + t.patience
	}
	return nil
}

// warnings says what is likely to be a mistake in the call.
func (t *traces) warnings() []string {
	var odd []string
	for _, i := range t.inputs {
		if i.Reader == nil {
			continue
		}
		odd = append(odd, i.Warnings()...)
		if i.read == 0 {
			odd = append(odd, i.file+": holds no requests")
		}
		if i.format.Untimed && t.spaceUS == 0 && i.read > 1 {
			odd = append(odd, fmt.Sprintf("%s: nothing says when its %d sessions begin, they all arrive at 0; --rate R lets one begin every 1/R s", i.file, i.read))
		}
	}
	return odd
}

// maxTokens bounds lengths, as the wire does.
const maxTokens = 1<<31 - 1
