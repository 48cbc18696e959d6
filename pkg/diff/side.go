package diff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/recording"
	"blis/pkg/stream"
)

// side is one stream as it is read.
type side struct {
	*comparison
	name   string
	header *stream.Header
	end    *stream.End
	// carried are the metrics of the run's own; raw those that are compared.
	carried *metrics.Record
	raw     *metrics.Raw
	// requests are by number; those of the other side only have no state.
	requests pages[request]
	// decisions are in the order of the stream; last is the last one about each
	// request, by number, -1 without one.
	decisions pages[decision]
	last      pages[int32]
	// outcomes counts the requests of the stream.
	outcomes int64
	// recorded is what a recording holds; nil of a run.
	recorded *recording.Run
	format   string // of the recording
}

// absent is a time in µs that a request does not have.
const absent = -1

// request is what is kept of one: times in µs from arrival, or absent; arrival in
// µs of the run.
type request struct {
	arrival, ttft, e2e, queue    int64
	input, output, cached, again int64 // again: preemptions
	group, place                 int32
	// lost calls were never made, because their session ended with this one.
	lost int32
	// state is its place in states, 0 if the stream does not have it.
	state uint8
	has   uint8
}

// nobody is a request that a stream does not have.
var nobody = request{arrival: absent, ttft: absent, e2e: absent, queue: absent}

// What else a request has.
const (
	admitted = 1 << iota
	scheduled
	judged // its class has targets
	met
	asked // for, by the options
)

// The places in states.
const (
	completed = 1 + iota
	rejected
	timedOut
	failed
	unfinished
)

// states in which a request may end; the first is of one that is not there.
var states = [...]string{"absent", completed: stream.StateCompleted, rejected: stream.StateRejected, timedOut: stream.StateTimedOut,
	failed: stream.StateFailed, unfinished: stream.StateUnfinished}

func (r *request) is(what uint8) bool { return r.has&what != 0 }

// tpot is the time per token after the first, in ms.
func (r *request) tpot() (ms float64, ok bool) {
	if r.ttft == absent || r.e2e == absent || r.output <= 1 {
		return 0, false
	}
	return stream.TPOT(r.e2e-r.ttft, r.output), true
}

// read reads the whole run.
func (s *side) read(ctx context.Context) error {
	return s.walk(ctx, func(r *stream.Reader, o *stream.Outcome, d *stream.Decision) error {
		switch r.Kind() {
		case stream.KindHeader:
			s.header = r.Header()
		case stream.KindMetrics:
			if s.carried != nil {
				return r.Errorf("these are the second metrics of the run")
			}
			s.carried = &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
			return r.Decode(s.carried)
		case stream.KindOutcome:
			err := r.Outcome(o)
			if err == nil {
				if err = s.keep(o); err != nil {
					err = r.Errorf("%v", err)
				}
			}
			return err
		case stream.KindSessionOutcome:
			return s.lose(r)
		case stream.KindDecision:
			if err := r.Decision(d); err != nil {
				return err
			}
			s.decide(d, int32(r.Line()))
		case stream.KindEnd:
			s.end = r.End()
			for _, msg := range r.Warnings() {
				s.warn("%s", msg)
			}
		}
		return nil
	})
}

// lose notes the calls that a broken session lost, with the call that broke it.
func (s *side) lose(r *stream.Reader) error {
	var o stream.SessionOutcome
	if err := r.SessionOutcome(&o); err != nil {
		return err
	}
	if n, ok := s.ids[o.Breaker()]; ok && o.Lost() > 0 {
		s.requests.at(n).lost = int32(o.Lost())
	}
	return nil
}

// walk visits all records of a run. o and d are memory for those that need it.
func (s *side) walk(ctx context.Context, visit func(r *stream.Reader, o *stream.Outcome, d *stream.Decision) error) error {
	f, err := s.open(s.name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := stream.NewReader(f)
	r.Expect(stream.StreamRun)
	defer r.Close()
	var o stream.Outcome
	var d stream.Decision
	for n := 1; r.Next(); n++ {
		if err := visit(r, &o, &d); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if s.options.Progress != nil {
				s.options.Progress(fmt.Sprintf("%s: %d records", s.name, n))
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.Err()
}

// errEnough ends a walk early and well.
var errEnough = errors.New("enough")

// number returns the request's, and makes sure that s has a place for it.
func (s *side) number(id string) int32 {
	n, ok := s.ids[id]
	if !ok {
		id = strings.Clone(id) // it may be part of larger memory
		n = int32(len(s.names))
		s.ids[id] = n
		s.names = append(s.names, id)
	}
	for s.requests.n <= n {
		s.requests.append(nobody)
		s.last.append(none)
	}
	return n
}

// keep keeps what is compared of an outcome.
func (s *side) keep(o *stream.Outcome) error {
	n := s.number(o.ID)
	q := s.requests.at(n)
	if q.state != 0 {
		return fmt.Errorf("the request %q has two outcomes", o.ID)
	}
	s.outcomes++
	*q = request{arrival: int64(o.ArrivalUS), ttft: span(o.ArrivalUS, o.FirstTokenUS), e2e: span(o.ArrivalUS, o.CompletedUS),
		queue: span(o.EnqueuedUS, o.ScheduledUS), input: o.InputTokens, output: o.OutputTokens, cached: o.CachedTokens, again: o.Preemptions,
		group: s.groups.number(group{o.SLOClass, o.Tenant, o.Model}), place: s.places.number(place{o.Deployment, o.Replica}), has: asked}
	for k, name := range states {
		if o.State == name {
			q.state = uint8(k)
		}
	}
	if !o.AdmittedUS.IsZero() {
		q.has |= admitted
	}
	if !o.ScheduledUS.IsZero() {
		q.has |= scheduled
	}
	if o.SLOMet != nil {
		q.has |= judged
		if *o.SLOMet {
			q.has |= met
		}
	}
	if s.options.keeps != nil {
		kept, err := s.options.keeps(o)
		if err != nil {
			return fmt.Errorf("--where: %w", err)
		}
		if !kept {
			q.has &^= asked
		}
	}
	return nil
}

// span is the time in µs from one instant to another, absent if one is missing.
func span(from, to stream.Micros) int64 {
	if from.IsZero() || to < from {
		return absent
	}
	return int64(to - from)
}

// at is the request of that number, an empty one if the stream does not have it.
func (s *side) at(n int32) *request {
	if n >= s.requests.n {
		return &nobody
	}
	return s.requests.at(n)
}
