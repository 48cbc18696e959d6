package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// request is one request of a file, with times in µs on the file's own clock, not rounded. NaN
// means missing.
type request struct {
	stream.Outcome
	at, queued, scheduled, first, last float64
	// ended is the time at which a failed request was final.
	ended float64
	// chunks is the number of chunks in which the output came; 0 means unknown.
	chunks int64
	// info holds what an outcome cannot.
	info requestInfo
}

// requestInfo holds properties of a request that are not part of an outcome. deadline is in µs from
// the arrival, 0 for none.
type requestInfo struct {
	prompt   []stream.Segment
	deadline float64
	turn     int64
}

// completed is the state of a complete response.
const completed = stream.StateCompleted

// missing is a time that did not occur or was not measured.
var missing = math.NaN()

func isMissing(us float64) bool { return us != us }

// inMicros converts a time in s, nil if it is missing, to µs.
func inMicros(s *float64) float64 {
	if s == nil {
		return missing
	}
	return *s * 1e6
}

// newRequest returns a request without data.
func newRequest() request {
	c := request{at: missing, queued: missing, scheduled: missing, first: missing, last: missing, ended: missing}
	c.Kind, c.Replica = stream.KindOutcome, stream.NoIndex
	c.ClearPrefill()
	c.AdmittedUS, c.RoutedUS, c.ITLMaxUS = stream.Never, stream.Never, stream.Never
	return c
}

// complete marks c as completed with the given number of tokens; 0 means not counted.
func (c *request) complete(output int64) {
	c.State, c.OutputTokens, c.GeneratedTokens = completed, output, output
}

// fail marks c as failed at c.last, with the first line of reason.
func (c *request) fail(reason string) {
	const most = 100
	reason, _, _ = strings.Cut(strings.TrimSpace(reason), "\n")
	if reason = strings.ToValidUTF8(reason, "?"); len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + "…"
	}
	c.State, c.Reason = stream.StateFailed, cmp.Or(reason, "error")
	c.ended, c.last = c.last, missing
}

// errorMessage returns the message of an error in JSON, which is a string or an object with type
// and message; "" for null.
func errorMessage(text json.RawMessage) string {
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
	message := strings.TrimSpace(cmp.Or(parts.Type, parts.ErrorType) + " " + cmp.Or(parts.Message, parts.ErrorMsg))
	return cmp.Or(message, string(text))
}

// fieldNames are the names of a request's fields in the file, for errors.
type fieldNames struct{ input, output, first, last string }

// check validates a request; p is its position.
func (c *request) check(p *textio.Position, w fieldNames) error {
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
		return p.Errorf("%s is %.6g ms before the arrival", w.first, (c.at-c.first)/1e3)
	case c.last < c.at:
		return p.Errorf("%s is %.6g ms before the arrival", w.last, (c.at-c.last)/1e3)
	case c.last < c.first:
		return p.Errorf("%s must not be after %s, is %.6g ms after it; are the two swapped?", w.first, w.last,
			(c.first-c.last)/1e3)
	case c.State == completed && isMissing(c.last):
		return p.Errorf("%s is missing, but the request completed", w.last)
	}
	return nil
}

// setOutcomes sets the outcomes and stages of r. It sorts requests by arrival and makes their times
// relative to the first one. Requests with separate clocks all arrive at 0. The stage of a request,
// if it has one, is in Step. file is the name for errors.
func (r *Run) setOutcomes(requests []request, file string) error {
	p := &textio.Position{Name: file}
	slices.SortStableFunc(requests, func(a, b request) int { return cmp.Compare(a.at, b.at) })
	origin := 0.0
	if len(requests) > 0 {
		origin = requests[0].at
	}
	r.Outcomes = make([]stream.Outcome, 0, len(requests))
	seen := make(map[string]bool, len(requests))
	for i := range requests {
		c := &requests[i]
		if c.ID == "" {
			c.ID = fmt.Sprintf("req-%06d", i)
		}
		if seen[c.ID] {
			return p.Errorf("duplicate request id %q", c.ID)
		}
		seen[c.ID] = true
		for _, t := range []struct {
			us   float64
			into *stream.Micros
		}{{c.at, &c.ArrivalUS}, {c.queued, &c.EnqueuedUS}, {c.scheduled, &c.ScheduledUS}, {c.first, &c.FirstTokenUS},
			{c.last, &c.CompletedUS}, {c.ended, &c.EndedUS}} {
			var err error
			if *t.into, err = micros(t.us - origin); err != nil {
				return p.Errorf("request %s: %v", c.ID, err)
			}
		}
		if len(c.info.prompt) > 0 || c.info.deadline != 0 || c.info.turn != 0 {
			if r.info == nil {
				r.info = map[string]requestInfo{}
			}
			r.info[c.ID] = c.info
		}
		r.Outcomes = append(r.Outcomes, c.Outcome)
	}
	return r.splitStages(p)
}

// splitStages sets the stages, which must not interleave, and clears the Step of outcomes.
func (r *Run) splitStages(p *textio.Position) error {
	var stages []Stage
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		name := o.Step
		o.Step = ""
		n := len(stages)
		if n > 0 && stages[n-1].Name == name {
			continue
		}
		if slices.ContainsFunc(stages, func(s Stage) bool { return s.Name == name }) && r.Arrivals {
			return p.Errorf("the stage %s continues after another stage has begun (request %s)", name, o.ID)
		}
		if n > 0 {
			stages[n-1].ToUS = o.ArrivalUS
		}
		stages = append(stages, Stage{Name: name, FromUS: o.ArrivalUS})
	}
	if len(stages) > 1 && r.Arrivals {
		stages[len(stages)-1].ToUS = r.Outcomes[len(r.Outcomes)-1].ArrivalUS + 1
		r.Stages = stages
	}
	return nil
}

// micros rounds half up; NaN is Never.
func micros(us float64) (stream.Micros, error) {
	if isMissing(us) {
		return stream.Never, nil
	}
	if us = math.Floor(us + 0.5); us < 0 || us > 1<<53 {
		return 0, fmt.Errorf("a time of %g s after the first arrival is out of range", us/1e6)
	}
	return stream.Micros(us), nil
}

// gaps are the times between the chunks of an output, in s.
type gaps struct {
	sum  float64
	list []float64
	// null says that some are unknown.
	null bool
}

// UnmarshalJSON reads a list of numbers, or null for none.
func (g *gaps) UnmarshalJSON(text []byte) error {
	g.list = nil
	g.null = len(text) > 0 && text[0] == '[' && bytes.Contains(text, []byte("null"))
	if err := json.Unmarshal(text, &g.list); err != nil {
		return err
	}
	g.sum = 0
	for _, s := range g.list {
		g.sum += s
	}
	return nil
}

// setITLs sets the inter-token latencies of c if every chunk was one token.
func (g *gaps) setITLs(c *request) {
	invalid := func(s float64) bool { return !(s >= 0) || s > 1e9 }
	if int64(len(g.list)) != c.OutputTokens-1 || slices.ContainsFunc(g.list, invalid) {
		return
	}
	for _, s := range g.list {
		us := int64(math.Floor(s*1e6 + 0.5))
		if n := len(c.ITLUS); n > 0 && c.ITLUS[n-1][0] == us {
			c.ITLUS[n-1][1]++
		} else {
			c.ITLUS = append(c.ITLUS, [2]int64{us, 1})
		}
		c.ITLMaxUS = max(c.ITLMaxUS, stream.Micros(us))
	}
}

// scale multiplies all gaps, to convert them to s.
func (g *gaps) scale(by float64) {
	for i := range g.list {
		g.list[i] *= by
	}
	g.sum *= by
}
