package summarize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// summary is one run as it is read.
type summary struct {
	options *Options
	// fitness may change the targets of classes; nil does not.
	fitness *fitness.Fitness
	header  *stream.Header
	end     *stream.End
	// carried is what the run carries; computed is nil unless the metrics are
	// to be computed.
	carried  *metrics.Record
	computed *metrics.Accumulator
	// seen outcomes were there, of which chosen are in computed; of those that
	// have gaps between tokens, with carry them and without do not.
	seen, chosen, with, without int64
	// ended of those chosen timed out or failed, unfinished are unfinished.
	ended, unfinished int64
	anomalies         []stream.Anomaly
	// told is nil unless the call asks for more than numbers; reference says that the run
	// is only to compare with, and need not tell.
	*told
	reference bool
	// rows are nil unless the call compares runs by their scores.
	rows *rows
	// missed names the sessions of which a request missed its targets, where these
	// are not those of the workload; nil where they are.
	missed map[string]bool
	// broke are the ids of those chosen calls of sessions that did not complete.
	broke map[string]bool
	// unasked sessions were there beside a condition on requests.
	unasked int64
	raw     *metrics.Raw
	// workload is nil unless the stream is one.
	workload *described
	digest   string // of its records
	warnings []string
}

func (s *summary) read(ctx context.Context, in io.Reader) error {
	r := stream.NewReader(in)
	r.Expect(stream.StreamRun, stream.StreamRecording, stream.StreamWorkload)
	defer r.Close()
	var o stream.Outcome
	for n := 1; r.Next(); n++ {
		if err := s.accept(r, &o); err != nil {
			return err
		}
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if s.options.Progress != nil {
				s.options.Progress(fmt.Sprintf("%d records", n))
			}
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	s.end = r.End()
	if s.warnings = r.Warnings(); s.options.Strict && len(s.warnings) > 0 {
		return errors.New(s.warnings[0])
	}
	return s.finish(r)
}

// accept takes the record at hand. o is memory for outcomes.
func (s *summary) accept(r *stream.Reader, o *stream.Outcome) error {
	switch r.Kind() {
	case stream.KindHeader:
		s.header = r.Header()
		if s.header.Stream == stream.StreamWorkload {
			return s.describe(r)
		}
		if s.options.Cluster != nil {
			return r.Errorf("-c is for workloads; this is a %s, and has its cluster in it", s.header.Stream)
		}
		if s.options.part() && s.minimal() {
			return r.Errorf("the run was written with --trace minimal and holds no outcomes; --where, --from and --to need --trace decisions or full")
		}
		return s.prepare(r)
	case stream.KindRequest, stream.KindSession:
		if s.header == nil && s.workload == nil { // made by hand
			if err := s.describe(r); err != nil {
				return err
			}
		}
		if s.workload != nil {
			return s.arrival(r)
		}
	case stream.KindMetrics:
		if s.carried != nil {
			return r.Errorf("these are the second metrics of the run")
		}
		s.carried = &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
		return r.Decode(s.carried)
	case stream.KindOutcome:
		if s.computed == nil && s.told == nil && s.rows == nil {
			return nil
		}
		if err := r.Outcome(o); err != nil {
			return err
		}
		return s.outcome(r, o)
	case stream.KindAnomaly:
		return s.episode(r)
	case stream.KindSessionOutcome:
		if s.computed != nil || s.rows != nil {
			return s.session(r)
		}
	default:
		if s.told != nil {
			return s.hear(r)
		}
	}
	return nil
}

// outcome takes the outcome at hand.
func (s *summary) outcome(r *stream.Reader, o *stream.Outcome) error {
	apart := false
	if s.computed != nil {
		before := s.chosen
		if err := s.choose(o); err != nil {
			return r.Errorf("--where: %v", err)
		}
		apart = s.chosen == before
	}
	if s.told != nil {
		s.insight.Outcome(o, apart)
	}
	if s.rows != nil && !apart {
		met := o.SLOMet
		if s.computed != nil {
			met = metrics.SLOMet(o, s.computed.Targets(o.SLOClass))
		}
		s.rows.keep(o, met)
	}
	return nil
}

// prepare makes ready for the outcomes of a run, where they are needed.
func (s *summary) prepare(r *stream.Reader) error {
	classes := s.header.SLOClasses
	if s.fitness != nil && len(s.fitness.SLO) > 0 {
		if s.minimal() {
			return r.Errorf("the run was written with --trace minimal and holds no outcomes; to judge them by other targets (slo in the fitness file) it needs --trace decisions or full")
		}
		classes, s.missed = s.fitness.Classes(classes), map[string]bool{}
	}
	if s.options.part() || s.missed != nil || s.header.Stream == stream.StreamRecording {
		s.computed, s.broke = metrics.New(classes), map[string]bool{}
		if s.header.Stream == stream.StreamRecording {
			s.computed.Recorded()
		}
	}
	if s.options.compares() && !s.minimal() {
		s.rows = &rows{of: map[string]int32{}}
	}
	if s.options.tells() && !s.reference {
		s.listen(classes)
	}
	return nil
}

// minimal reports whether the run holds metrics only.
func (s *summary) minimal() bool {
	return s.header.Run != nil && s.header.Run.Trace == stream.TraceLevels[0]
}

// session takes the outcome of a session at hand.
func (s *summary) session(r *stream.Reader) error {
	var o stream.SessionOutcome
	if err := r.SessionOutcome(&o); err != nil {
		return err
	}
	if s.rows != nil {
		s.rows.lose(&o)
	}
	if s.computed != nil {
		s.chooseSession(&o)
	}
	return nil
}

// chooseSession counts the session, by its own arrival, if the options
// ask for it. Conditions are about requests: with one, no session is counted. The
// calls that it lost go with the one that broke it.
func (s *summary) chooseSession(o *stream.SessionOutcome) {
	if call := o.Breaker(); s.broke[call] {
		s.computed.Lost(o)
		delete(s.broke, call)
	}
	if s.missed != nil {
		o.SLOMet = nil
	}
	if s.missed != nil && s.computed.Targets(o.SLOClass) != (stream.Targets{}) {
		o.SLOMet = stream.Met(o.State == stream.StateCompleted && !s.missed[o.ID])
		delete(s.missed, o.ID)
	}
	if s.options.Where.keeps != nil {
		s.unasked++
	} else if s.options.within(o.ArrivalUS) {
		s.computed.Session(o)
	}
}

// choose counts the outcome if the options ask for it.
func (s *summary) choose(o *stream.Outcome) error {
	s.seen++
	if s.missed != nil && o.Session != "" {
		if met := metrics.SLOMet(o, s.computed.Targets(o.SLOClass)); met != nil && !*met {
			s.missed[strings.Clone(o.Session)] = true
		}
	}
	want := s.options
	if !want.within(o.ArrivalUS) {
		return nil
	}
	if want.Where.keeps != nil {
		if kept, err := want.Where.keeps(o); err != nil || !kept {
			return err
		}
	}
	s.chosen++
	s.computed.Add(o)
	if o.Session != "" && o.State != stream.StateCompleted {
		s.broke[strings.Clone(o.ID)] = true
	}
	switch o.State {
	case stream.StateTimedOut, stream.StateFailed:
		s.ended++
	case stream.StateUnfinished:
		s.unfinished++
	}
	for _, gap := range o.ITLUS {
		s.computed.Gap(gap[0], gap[1])
	}
	switch {
	case len(o.ITLUS) > 0:
		s.with++
	case o.GeneratedTokens > 1:
		s.without++
	}
	return nil
}

// finish settles the metrics after the last record.
func (s *summary) finish(r *stream.Reader) error {
	switch {
	case s.workload != nil:
		return s.finishWorkload(r)
	case s.computed != nil:
		s.compute()
	case s.carried != nil:
		s.raw = &s.carried.Raw
	default:
		return r.Errorf("the run holds no metrics: somebody filtered them out")
	}
	if s.end.Requests != nil && s.end.Requests.BeyondHorizon > 0 {
		s.warn("%d requests arrive after the horizon and were not offered", s.end.Requests.BeyondHorizon)
	}
	if s.told != nil {
		s.conclude(s.raw)
	}
	return nil
}

// compute computes the metrics from what was chosen, and says what is not
// known so.
func (s *summary) compute() {
	// The whole run, and what is unfinished, ends where the run does.
	known := s.carried != nil && (s.chosen == s.seen || s.unfinished > 0)
	if known {
		s.computed.Until(s.carried.UntilUS)
	}
	if s.carried != nil && s.carried.Shadow != nil {
		s.computed.Expects()
	}
	if s.chosen == s.seen && s.carried != nil && s.carried.Anomalies != nil {
		s.computed.Watch(slices.Collect(maps.Keys(s.carried.Anomalies)))
		for i := range s.anomalies {
			s.computed.Anomaly(s.anomalies[i].Type)
		}
	}
	s.raw = s.computed.Raw()
	if s.carried != nil && s.chosen == s.seen && !s.options.part() {
		s.raw = s.carried.Rejudged(s.raw)
		return
	}
	s.warn("computed from the outcomes of %d of %d requests: what only replicas know (kv utilization, cost, replica) is absent", s.chosen, s.seen)
	if s.unasked > 0 {
		s.warn("sessions are absent: --where is about requests, and %d sessions are there", s.unasked)
	}
	switch {
	case s.without > 0 && s.with == 0:
		s.warn("itl is absent: the outcomes do not carry the gaps between tokens (blis-sim --itl)")
	case s.without > 0:
		s.warn("itl is of %d of %d requests: the others do not carry the gaps between their tokens", s.with, s.with+s.without)
	}
	if s.ended > 0 && !known {
		s.warn("outcomes do not say when %d requests timed out or failed: the run may have lasted longer", s.ended)
	}
}

func (s *summary) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}
