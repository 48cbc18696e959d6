package stream

import (
	"encoding/json"
	"fmt"
	"math"
)

// Encoder formats records. Its methods append the line of a record, without line feed, to b. A number in it that is not
// finite is an error, since JSON cannot represent it; then b is returned as it was. An Encoder must be used by one
// goroutine.
type Encoder struct {
	numbers numberCache
	// json formats the records without encoder of their own. It appends to any.
	json *json.Encoder
	any  appender
}

// NewEncoder returns an Encoder.
func NewEncoder() *Encoder {
	e := &Encoder{}
	e.json = json.NewEncoder(&e.any)
	e.json.SetEscapeHTML(false)
	return e
}

// appender is an io.Writer that appends to a slice.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// Request appends r.
func (e *Encoder) Request(b []byte, r *Request) []byte { return appendRequest(b, r, &e.numbers) }

// Session appends s.
func (e *Encoder) Session(b []byte, s *Session) []byte { return appendSession(b, s, &e.numbers) }

// Step appends s.
func (e *Encoder) Step(b []byte, s *Step) []byte { return appendStep(b, s, &e.numbers) }

// Outcome appends o.
func (e *Encoder) Outcome(b []byte, o *Outcome) ([]byte, error) {
	if !finite(o.Priority) {
		return b, fmt.Errorf("outcome %q: priority is %v, which JSON cannot represent", o.ID, o.Priority)
	}
	return appendOutcome(b, o, &e.numbers), nil
}

// Decision appends d.
func (e *Encoder) Decision(b []byte, d *Decision) ([]byte, error) {
	if !finite(d.Score) {
		return b, fmt.Errorf("decision %q: score is %v, which JSON cannot represent", d.ID, d.Score)
	}
	return appendDecision(b, d, &e.numbers), nil
}

// Regret appends g.
func (e *Encoder) Regret(b []byte, g *Regret) ([]byte, error) {
	if !g.finite() {
		return b, fmt.Errorf("regret of decision %q: a number is not finite, which JSON cannot represent", g.Decision)
	}
	return appendRegret(b, g, &e.numbers), nil
}

// Any appends v, a record with its kind set, with encoding/json.
func (e *Encoder) Any(b []byte, v any) ([]byte, error) {
	e.any = b
	err := e.json.Encode(v)
	if err != nil {
		return b, fmt.Errorf("writing a record: %w", err)
	}
	b, e.any = e.any[:len(e.any)-1], nil
	return b, nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
