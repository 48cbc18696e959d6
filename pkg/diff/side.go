package diff

import (
	"context"
	"errors"
	"fmt"

	"blis/pkg/metrics"
	"blis/pkg/recording"
	"blis/pkg/resample"
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
	requests pages[request]
	// selected are the requests that --where selects, by index; nil without it.
	selected []bool
	// decisions are in the order of the stream. lastDecisions have the index of the last one about each request,
	// noIndex without one.
	decisions     pages[decision]
	lastDecisions pages[int32]
	// nextDecision is the index after that of the request that the last decision was about: two streams of one workload
	// have most of these in the same order.
	nextDecision int32
	// outcomes is the number of requests in the stream.
	outcomes int64
	// recorded is the contents of a recording; nil for a run.
	recorded *recording.Run
	format   string // of the recording
	file     string // that it was read from, perhaps in a folder
}

// request holds what is compared of one request.
type request struct {
	resample.Request
	group, replica int32
}

// missingRequest is a request that a stream does not have.
var missingRequest = request{Request: resample.Request{Arrival: resample.Missing, TTFT: resample.Missing,
	E2E: resample.Missing, Queue: resample.Missing}}

// read reads the whole run.
func (s *side) read(ctx context.Context) error {
	var o stream.Outcome
	var d stream.Decision
	changed := false
	err := s.walk(ctx, func(r *stream.Reader) error {
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
			if err := r.Outcome(&o); err != nil {
				return err
			}
			if err := s.storeOutcome(&o); err != nil {
				return r.Errorf("%v", err)
			}
		case stream.KindSessionOutcome:
			var ended stream.SessionOutcome
			if err := r.SessionOutcome(&ended); err != nil {
				return err
			}
			n, ok := s.ids.find(ended.FailedRequest())
			if ok && int(n) < s.requests.len && ended.NotIssued() > 0 {
				s.requests.at(n).NotIssued = int32(ended.NotIssued())
			}
		case stream.KindDecision:
			if err := r.DecisionResult(&d); err != nil {
				return err
			}
			s.storeDecision(&d, int32(r.Line()))
		case stream.KindEnd:
			s.end = r.End()
			integrity, _ := r.Integrity()
			changed = integrity != stream.IntegrityOK
			for _, msg := range r.Warnings() {
				s.warn("%s", msg)
			}
		}
		return nil
	})
	if err != nil || !changed {
		return err
	}
	return s.walk(ctx, func(r *stream.Reader) error { // what others wrote is checked completely
		if r.Kind() != stream.KindDecision {
			return nil
		}
		return r.Decision(&d)
	})
}

// walk visits all records of a run.
func (s *side) walk(ctx context.Context, visit func(r *stream.Reader) error) error {
	f, err := s.open(s.name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := stream.NewReader(f)
	r.Expect(stream.StreamRun)
	defer r.Close()
	for n := 1; r.Next(); n++ {
		if err := visit(r); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.progress("%s: %d records", s.name, n)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return r.Err()
}

// errStop ends a walk early without an error.
var errStop = errors.New("stop")

// request returns the index of the request with that id, which is new if s has none. It is probably a certain one.
func (s *side) request(id string, probably int32) int32 {
	n := s.ids.numberNear(id, probably)
	for s.requests.len <= int(n) {
		s.requests.add(missingRequest)
	}
	return n
}

// storeOutcome stores what is compared of an outcome.
func (s *side) storeOutcome(o *stream.Outcome) error {
	if o.Retried { // the last attempt is compared
		return nil
	}
	n := s.request(o.Original(), noIndex)
	q := s.requests.at(n)
	if q.State != 0 {
		return fmt.Errorf("the request %q has two outcomes", o.ID)
	}
	s.outcomes++
	*q = request{resample.NewRequest(o, o.SLOMet), s.groups.number(group{o.SLOClass, o.Tenant, o.Model}),
		s.replicaIDs.number(replicaID{o.Deployment, o.Replica})}
	if s.options.selects != nil {
		selected, err := s.options.selects(o)
		if err != nil {
			return fmt.Errorf("--where: %w", err)
		}
		s.selected = append(s.selected, make([]bool, s.requests.len-len(s.selected))...)
		s.selected[n] = selected
	}
	return nil
}

// at returns the request with that index, missingRequest if the stream does not have it.
func (s *side) at(n int32) *request {
	if int(n) >= s.requests.len {
		return &missingRequest
	}
	return s.requests.at(n)
}

// selects reports whether --where selects a request that the stream has.
func (s *side) selects(n int32) bool { return int(n) < len(s.selected) && s.selected[n] }
