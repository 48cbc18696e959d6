package recording

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// call is one request as a file tells of it, with its times in µs on the file's
// own clock, unrounded; NaN is absent.
type call struct {
	stream.Outcome
	at, queued, scheduled, first, last float64
	// ended is when a request that failed was final.
	ended float64
	// offer is what the file says of the request that no outcome says.
	offer offer
}

// offer is what a request was offered with beside its lengths. deadline is in µs
// from the arrival, 0 for none.
type offer struct {
	prompt   []stream.Segment
	deadline float64
	turn     int64
}

// completed is the state of an answer that came whole.
const completed = stream.StateCompleted

// absent is the time of what did not happen or was not measured.
var absent = math.NaN()

func isAbsent(us float64) bool { return us != us }

// newCall is a call of which nothing is known.
func newCall() call {
	c := call{at: absent, queued: absent, scheduled: absent, first: absent, last: absent, ended: absent}
	c.Kind, c.Replica = stream.KindOutcome, stream.Nowhere
	c.AdmittedUS, c.RoutedUS, c.ITLMaxUS = stream.Never, stream.Never, stream.Never
	return c
}

// complete takes c as completed with that many tokens; 0 is not counted.
func (c *call) complete(output int64) {
	c.State, c.OutputTokens, c.GeneratedTokens = completed, output, output
}

// fail takes c as failed for a reason, of which the first line is kept; last was
// when.
func (c *call) fail(reason string) {
	const most = 100
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	if reason = strings.ToValidUTF8(reason, "?"); len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + "…"
	}
	c.State, c.Reason = stream.StateFailed, cmp.Or(reason, "error")
	c.ended, c.last = c.last, absent
}

// fault is the message of an error in JSON: a text, or an object of a type and a
// message; "" for null, which is none.
func fault(text json.RawMessage) string {
	if len(text) == 0 || string(text) == "null" {
		return ""
	}
	var plain string
	var parts struct {
		Type      string `json:"type"`
		Message   string `json:"message"`
		ErrorType string `json:"error_type"`
		ErrorMsg  string `json:"error_msg"`
	}
	if json.Unmarshal(text, &plain) == nil {
		return plain
	}
	if json.Unmarshal(text, &parts) != nil {
		return string(text)
	}
	said := strings.TrimSpace(cmp.Or(parts.Type, parts.ErrorType) + " " + cmp.Or(parts.Message, parts.ErrorMsg))
	return cmp.Or(said, string(text))
}

// words are what a file calls the things that are checked of a call.
type words struct{ input, output, first, last string }

// check holds a call to what every call must be; p says where it stands.
func (c *call) check(p *textio.Place, w words) error {
	for _, n := range []struct {
		name   string
		tokens int64
		least  int64
	}{{w.input, c.InputTokens, 1}, {w.output, c.OutputTokens, 0}} {
		if c.State != completed {
			n.least = 0
		}
		if n.tokens < n.least || n.tokens > textio.MaxTokens {
			return p.Errorf("%s must be between %d and %d, is %d", n.name, n.least, textio.MaxTokens, n.tokens)
		}
	}
	switch {
	case c.first < c.at:
		return p.Errorf("%s must not be before the arrival, is %.6g ms before it", w.first, (c.at-c.first)/1e3)
	case c.last < c.at:
		return p.Errorf("%s must not be before the arrival, is %.6g ms before it", w.last, (c.at-c.last)/1e3)
	case c.last < c.first:
		return p.Errorf("%s must not be after %s, is %.6g ms after it: are the two mixed up?", w.first, w.last, (c.first-c.last)/1e3)
	case c.State == completed && isAbsent(c.last):
		return p.Errorf("%s is missing, though the request completed", w.last)
	}
	return nil
}

// outcomes brings calls into the order of arrival and onto a clock that begins
// with the first of them; calls with clocks of their own all arrive at 0. p is the
// file, at no line.
func outcomes(p *textio.Place, calls []call, r *Run) error {
	slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	origin := 0.0
	if len(calls) > 0 {
		origin = calls[0].at
	}
	r.Outcomes = make([]stream.Outcome, 0, len(calls))
	seen := make(map[string]bool, len(calls))
	for i := range calls {
		c := &calls[i]
		if c.ID == "" {
			c.ID = fmt.Sprintf("req-%06d", i)
		}
		if seen[c.ID] {
			return p.Errorf("two requests have the id %q", c.ID)
		}
		seen[c.ID] = true
		for _, t := range []struct {
			us   float64
			into *stream.Micros
		}{{c.at, &c.ArrivalUS}, {c.queued, &c.EnqueuedUS}, {c.scheduled, &c.ScheduledUS}, {c.first, &c.FirstTokenUS}, {c.last, &c.CompletedUS}, {c.ended, &c.EndedUS}} {
			var err error
			if *t.into, err = micros(t.us - origin); err != nil {
				return p.Errorf("request %s: %v", c.ID, err)
			}
		}
		if len(c.offer.prompt) > 0 || c.offer.deadline != 0 || c.offer.turn != 0 {
			if r.offers == nil {
				r.offers = map[string]offer{}
			}
			r.offers[c.ID] = c.offer
		}
		r.Outcomes = append(r.Outcomes, c.Outcome)
	}
	return nil
}

// micros rounds half up; NaN is Never.
func micros(us float64) (stream.Micros, error) {
	if isAbsent(us) {
		return stream.Never, nil
	}
	if us = math.Floor(us + 0.5); us < 0 || us > 1<<53 {
		return 0, fmt.Errorf("a time of %g s after the first arrival cannot be", us/1e6)
	}
	return stream.Micros(us), nil
}
