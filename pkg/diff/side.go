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
	// ownMetrics are those that the run carries; raw those that are compared.
	ownMetrics *metrics.Record
	raw        *metrics.Raw
	// requests are by index; one that only the other side has is missingRequest.
	requests pagedSlice[request]
	// decisions are in the order of the stream; last maps the index of a request to that
	// of the last decision about it, noIndex without one.
	decisions pagedSlice[decision]
	last      pagedSlice[int32]
	// outcomes is the number of requests in the stream.
	outcomes int64
	// recorded is the contents of a recording; nil for a run.
	recorded *recording.Run
	format   string // of the recording
}

// missing is a time in µs that a request does not have.
const missing = -1

// request holds what is compared of one request: times in µs from arrival, each may be
// missing; arrival in µs of the run.
type request struct {
	arrival, ttft, e2e, queue          int64
	input, output, cached, preemptions int64
	group, replica                     int32
	// notIssued counts the calls that were not issued because this one ended its session.
	notIssued int32
	// state is an index of states, 0 if the stream does not have the request.
	state uint8
	flags uint8
}

// missingRequest is a request that a stream does not have.
var missingRequest = request{arrival: missing, ttft: missing, e2e: missing, queue: missing}

// Flags of a request.
const (
	admitted = 1 << iota
	scheduled
	hasTargets // its class has targets
	metTargets
	selected // by --where
)

// Indices of states.
const (
	completed = 1 + iota
	rejected
	timedOut
	failed
	unfinished
)

// states are the final states; the first means that the request is not present.
var states = [...]string{"absent", completed: stream.StateCompleted, rejected: stream.StateRejected,
	timedOut: stream.StateTimedOut,
	failed:   stream.StateFailed, unfinished: stream.StateUnfinished}

func (r *request) has(what uint8) bool { return r.flags&what != 0 }

// tpot returns the time per output token after the first, in ms.
func (r *request) tpot() (ms float64, ok bool) {
	if r.ttft == missing || r.e2e == missing || r.output <= 1 {
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
			if s.ownMetrics != nil {
				return r.Errorf("this is the second metrics record of the run")
			}
			s.ownMetrics = &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
			return r.Decode(s.ownMetrics)
		case stream.KindOutcome:
			err := r.Outcome(o)
			if err == nil {
				if err = s.storeOutcome(o); err != nil {
					err = r.Errorf("%v", err)
				}
			}
			return err
		case stream.KindSessionOutcome:
			return s.storeNotIssued(r)
		case stream.KindDecision:
			if err := r.Decision(d); err != nil {
				return err
			}
			s.storeDecision(d, int32(r.Line()))
		case stream.KindEnd:
			s.end = r.End()
			for _, msg := range r.Warnings() {
				s.warn("%s", msg)
			}
		}
		return nil
	})
}

// storeNotIssued stores the number of calls that a broken session did not issue with the
// call that broke it.
func (s *side) storeNotIssued(r *stream.Reader) error {
	var o stream.SessionOutcome
	if err := r.SessionOutcome(&o); err != nil {
		return err
	}
	if n, ok := s.ids[o.Breaker()]; ok && o.Lost() > 0 {
		s.requests.at(n).notIssued = int32(o.Lost())
	}
	return nil
}

// walk visits all records of a run. o and d are buffers for visit.
func (s *side) walk(ctx context.Context, visit func(r *stream.Reader, o *stream.Outcome,
	d *stream.Decision) error) error {
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
		if err := visit(r, &o, &d); errors.Is(err, errStop) {
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

// errStop ends a walk early without an error.
var errStop = errors.New("stop")

// requestIndex returns the index of the request and ensures that s has an entry for it.
func (s *side) requestIndex(id string) int32 {
	n, ok := s.ids[id]
	if !ok {
		id = strings.Clone(id) // it may be part of larger memory
		n = int32(len(s.names))
		s.ids[id] = n
		s.names = append(s.names, id)
	}
	for s.requests.length <= n {
		s.requests.append(missingRequest)
		s.last.append(noIndex)
	}
	return n
}

// storeOutcome stores what is compared of an outcome.
func (s *side) storeOutcome(o *stream.Outcome) error {
	n := s.requestIndex(o.ID)
	q := s.requests.at(n)
	if q.state != 0 {
		return fmt.Errorf("the request %q has two outcomes", o.ID)
	}
	s.outcomes++
	*q = request{arrival: int64(o.ArrivalUS), ttft: elapsedOrMissing(o.ArrivalUS, o.FirstTokenUS),
		e2e:   elapsedOrMissing(o.ArrivalUS, o.CompletedUS),
		queue: elapsedOrMissing(o.EnqueuedUS, o.ScheduledUS), input: o.InputTokens, output: o.OutputTokens,
		cached: o.CachedTokens, preemptions: o.Preemptions,
		group:   s.groups.number(group{o.SLOClass, o.Tenant, o.Model}),
		replica: s.replicaIDs.number(replicaID{o.Deployment, o.Replica}), flags: selected}
	for k, name := range states {
		if o.State == name {
			q.state = uint8(k)
		}
	}
	if !o.AdmittedUS.IsZero() {
		q.flags |= admitted
	}
	if !o.ScheduledUS.IsZero() {
		q.flags |= scheduled
	}
	if o.SLOMet != nil {
		q.flags |= hasTargets
		if *o.SLOMet {
			q.flags |= metTargets
		}
	}
	if s.options.selects != nil {
		isSelected, err := s.options.selects(o)
		if err != nil {
			return fmt.Errorf("--where: %w", err)
		}
		if !isSelected {
			q.flags &^= selected
		}
	}
	return nil
}

// elapsedOrMissing returns the µs between two times, missing if one of them is.
func elapsedOrMissing(from, to stream.Micros) int64 {
	if from.IsZero() || to < from {
		return missing
	}
	return int64(to - from)
}

// at returns the request with that index, missingRequest if the stream does not have it.
func (s *side) at(n int32) *request {
	if n >= s.requests.length {
		return &missingRequest
	}
	return s.requests.at(n)
}
