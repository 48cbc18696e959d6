package gen

import (
	"fmt"
	"io"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/stream"
	"blis/pkg/trace"
)

// mergedTraces is a source that merges traces by arrival; ties are in the order of the inputs.
type mergedTraces struct {
	inputs []*input
	// current is the input of the current arrival; nil before the first.
	current *input
	// scale multiplies arrival times.
	scale float64
	// outputTokens, if not 0, is the output length of every request.
	outputTokens int64
	// us is the current arrival, not scaled and not rounded. deadlineOffset is how much later its
	// deadline, or the end of its session, is; Never if it has none.
	us             float64
	deadlineOffset stream.Micros
	// gapUS, if not 0, is the gap between arrivals that have no times. accepted counts the
	// arrivals.
	gapUS    float64
	accepted int64
	// loops is the number of passes still to come and pass the current one, from 0. Each pass is
	// period µs after the one before, before scaling.
	loops, pass int64
	period      float64
}

// input is one of the merged traces.
type input struct {
	trace.Reader
	format trace.Format
	// file is its name in messages. prefix makes ids unique; "" if there is only one input.
	file, prefix string
	// pending is the next arrival and us its time; hasNext says whether there is one.
	pending stream.Arrival
	us      float64
	hasNext bool
	// read counts the arrivals, accepted those that filters keep, and together how many of these arrive at the
	// time of the one before; last is that time.
	read, accepted, together int64
	last                     float64
	// reopen starts the trace again.
	reopen func() (trace.Reader, error)
}

// advance reads the next arrival of i.
func (i *input) advance() (err error) {
	if i.us, err = i.Next(&i.pending); err != nil {
		i.hasNext = false
		if err == io.EOF {
			err = nil
		}
		return err
	}
	i.hasNext = true
	return nil
}

// open starts reading all inputs.
func (t *mergedTraces) open() error {
	t.current = nil
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

// close closes all inputs.
func (t *mergedTraces) close() {
	for _, i := range t.inputs {
		if i.Reader != nil {
			i.Close()
			i.Reader = nil
		}
	}
}

// next sets a to the next arrival. Its id is its position in its trace, whatever the filters drop.
// Its time is not scaled yet, so filters see the times of the trace.
func (t *mergedTraces) next(a *stream.Arrival) error {
	// The current input advances only now, so that an error in it comes after all earlier arrivals.
	if t.current != nil {
		if err := t.current.advance(); err != nil {
			return err
		}
	}
	i := t.earliest()
	if i == nil && t.loops > 0 {
		t.loops--
		t.pass++
		t.close()
		if err := t.open(); err != nil {
			return err
		}
		i = t.earliest()
	}
	if t.current = i; i == nil {
		return io.EOF
	}
	*a, i.pending = i.pending, *a
	t.us = i.us + float64(float64(t.pass)*t.period)
	if t.us < 0 {
		return i.Errorf("arrives before the first row; rows must be sorted by time")
	}
	i.name(a, t.pass)
	i.read++
	if t.outputTokens > 0 && !a.IsSession {
		a.Request.OutputTokens = t.outputTokens
	}
	t.deadlineOffset = *endTime(a)
	return t.setTime(a, t.us)
}

// earliest returns the input with the earliest pending arrival; nil if there is none.
func (t *mergedTraces) earliest() *input {
	var first *input
	for _, i := range t.inputs {
		if i.hasNext && (first == nil || i.us < first.us) {
			first = i
		}
	}
	return first
}

// accept validates the current arrival and scales its time. Validation comes after the filters,
// which may drop invalid rows.
func (t *mergedTraces) accept(a *stream.Arrival) error {
	i := t.current
	if !a.IsSession {
		r := &a.Request
		for _, length := range []struct {
			name   string
			tokens int64
		}{{"input_tokens", r.InputTokens}, {"output_tokens", r.OutputTokens}} {
			if length.tokens < 1 {
				hint := fmt.Sprintf("--where '%s >= 1' drops such rows", length.name)
				if length.name == "output_tokens" {
					hint = i.outputAdvice() + ", " + hint
				}
				return i.Errorf("%s must be at least 1, is %d (%s)", length.name, length.tokens, hint)
			}
			if length.tokens > maxTokens {
				return i.Errorf("%s must be at most %d, is %d", length.name, maxTokens, length.tokens)
			}
		}
	}
	if i.us < i.last {
		return i.Errorf("arrives before a row above it; rows must be sorted by time")
	}
	if i.us == i.last && i.accepted > 0 {
		i.together++
	}
	i.accepted++
	i.last = i.us
	us := t.us * t.scale
	if t.gapUS > 0 {
		us = float64(t.accepted) * t.gapUS
	}
	t.accepted++
	return t.setTime(a, us)
}

// outputAdvice names --output-tokens with the number that most requests of a recording have.
func (i *input) outputAdvice() string {
	if r, ok := i.Reader.(interface{ CommonOutput() int64 }); ok && r.CommonOutput() > 0 {
		return fmt.Sprintf("--output-tokens %d sets what most other requests have for all", r.CommonOutput())
	}
	return "--output-tokens N sets N for all requests"
}

// endTime points to the time in a besides its arrival: a request's deadline or a session's end.
func endTime(a *stream.Arrival) *stream.Micros {
	if a.IsSession {
		return &a.Session.UntilUS
	}
	return &a.Request.DeadlineUS
}

// setTime sets the arrival time and moves the deadline or end by the same amount.
func (t *mergedTraces) setTime(a *stream.Arrival, us float64) error {
	rounded, err := dist.Micros(us)
	if err != nil {
		return t.current.Errorf("%v", err)
	}
	*a.At() = stream.Micros(rounded)
	if t.deadlineOffset != stream.Never {
		*endTime(a) = stream.Micros(rounded) + t.deadlineOffset
	}
	return nil
}

// warnings reports likely mistakes in the options.
func (t *mergedTraces) warnings() []string {
	var warnings []string
	for _, i := range t.inputs {
		if i.Reader == nil {
			continue
		}
		warnings = append(warnings, i.Warnings()...)
		if i.read == 0 {
			warnings = append(warnings, i.file+": contains no requests")
		}
		if i.format.Untimed && t.gapUS == 0 && i.read > 1 {
			warnings = append(warnings, fmt.Sprintf("%s: has no arrival times, so its %d sessions all arrive at 0; "+
				"--rate R starts one every 1/R s", i.file, i.read))
		}
		if !i.format.Untimed && t.gapUS == 0 && i.accepted >= manyArrivals && 2*i.together >= i.accepted {
			warnings = append(warnings, fmt.Sprintf("%s: %d of %d arrivals are at the same time as the one before: "+
				"the trace rounds its times, and its bursts need not be those of the traffic", i.file, i.together,
				i.accepted))
		}
	}
	return warnings
}

// manyArrivals are enough to distinguish rounded times from a burst.
const manyArrivals = 100

// maxTokens bounds lengths, as records do.
const maxTokens = 1<<31 - 1

// name sets the final ids of a, which are unique across inputs and passes: request R of the second
// input is "2:R", in its third pass "2:R~3". A request without an id is named after its position.
// Segment ids identify content and are the same in each pass, except for content generated in the
// pass.
func (i *input) name(a *stream.Arrival, pass int64) {
	suffix := ""
	if pass > 0 {
		suffix = fmt.Sprintf("~%d", pass+1)
	}
	if s := &a.Session; a.IsSession {
		for k := range s.Steps {
			i.segments(s.Steps[k].Prompt, s.ID, suffix)
		}
		s.ID = i.prefix + s.ID + suffix
		return
	}
	r := &a.Request
	if r.ID == "" {
		r.ID = fmt.Sprintf("req-%06d", i.read)
	}
	r.ID = i.prefix + r.ID + suffix
	if r.Session != "" {
		r.Session = i.prefix + r.Session + suffix
	}
	i.segments(r.Prompt, "", suffix)
}

// segments renames the segments of a request or, if session is not "", of a session's step. The
// output of request R, "R.out", is renamed as R is.
func (i *input) segments(prompt []stream.Segment, session, suffix string) {
	if suffix == "" && i.prefix == "" {
		return
	}
	for k := range prompt {
		id := prompt[k].ID
		if suffix != "" {
			step, inSession := strings.CutPrefix(id, session+"/")
			request, generated := strings.CutSuffix(id, ".out")
			switch {
			case session != "" && inSession && generated:
				id = session + suffix + "/" + step
			case generated:
				id = request + suffix + ".out"
			}
		}
		prompt[k].ID = i.prefix + id
	}
}
