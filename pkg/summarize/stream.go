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
	// ownMetrics is what the run carries; computed is nil unless the metrics are
	// to be computed.
	ownMetrics *metrics.Record
	computed   *metrics.Accumulator
	// outcomesSeen outcomes were there, of which chosen are in computed; of those that
	// have gaps between tokens, with carry them and without do not.
	outcomesSeen, outcomesSelected, withITL, withoutITL int64
	// abandoned of those chosen timed out or failed, unfinished are unfinished.
	abandoned, unfinished int64
	anomalies             []stream.Anomaly
	// told is nil unless the call asks for more than numbers; reference says that the run
	// is only to compare with, and need not tell.
	*narrative
	reference bool
	// rows are nil unless the call compares runs by their scores.
	rows *rows
	// missedSessions names the sessions of which a request missed its targets, where these
	// are not those of the workload; nil where they are.
	missedSessions map[string]bool
	// brokenCalls are the ids of those chosen calls of sessions that did not complete.
	brokenCalls map[string]bool
	// skippedSessions sessions were there beside a condition on requests.
	skippedSessions int64
	raw             *metrics.Raw
	// workload is nil unless the stream is one.
	workload *workloadDoc
	digest   string // of its records
	warnings []string
}

func (s *summary) read(ctx context.Context, in io.Reader) error {
	r := stream.NewReader(in)
	r.Expect(stream.StreamRun, stream.StreamRecording, stream.StreamWorkload)
	defer r.Close()
	var o stream.Outcome
	for n := 1; r.Next(); n++ {
		if err := s.addRecord(r, &o); err != nil {
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

// addRecord takes the record at hand. o is memory for outcomes.
func (s *summary) addRecord(r *stream.Reader, o *stream.Outcome) error {
	switch r.Kind() {
	case stream.KindHeader:
		s.header = r.Header()
		if s.header.Stream == stream.StreamWorkload {
			return s.startWorkload(r)
		}
		if s.options.Cluster != nil {
			return r.Errorf("-c is for workloads; this is a %s, and has its cluster in it", s.header.Stream)
		}
		if s.options.isPartial() && s.minimal() {
			return r.Errorf("the run was written with --trace minimal and holds no outcomes; --where, --from and --to need --trace decisions or full")
		}
		return s.prepare(r)
	case stream.KindRequest, stream.KindSession:
		if s.header == nil && s.workload == nil { // made by hand
			if err := s.startWorkload(r); err != nil {
				return err
			}
		}
		if s.workload != nil {
			return s.addArrival(r)
		}
	case stream.KindMetrics:
		if s.ownMetrics != nil {
			return r.Errorf("these are the second metrics of the run")
		}
		s.ownMetrics = &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
		return r.Decode(s.ownMetrics)
	case stream.KindOutcome:
		if s.computed == nil && s.narrative == nil && s.rows == nil {
			return nil
		}
		if err := r.Outcome(o); err != nil {
			return err
		}
		return s.addOutcome(r, o)
	case stream.KindAnomaly:
		return s.addAnomaly(r)
	case stream.KindSessionOutcome:
		if s.computed != nil || s.rows != nil {
			return s.addSession(r)
		}
	default:
		if s.narrative != nil {
			return s.observe(r)
		}
	}
	return nil
}

// addOutcome takes the outcome at hand.
func (s *summary) addOutcome(r *stream.Reader, o *stream.Outcome) error {
	apart := false
	if s.computed != nil {
		before := s.outcomesSelected
		if err := s.selectOutcome(o); err != nil {
			return r.Errorf("--where: %v", err)
		}
		apart = s.outcomesSelected == before
	}
	if s.narrative != nil {
		s.insight.Outcome(o, apart)
	}
	if s.rows != nil && !apart {
		met := o.SLOMet
		if s.computed != nil {
			met = metrics.SLOMet(o, s.computed.Targets(o.SLOClass))
		}
		s.rows.addOutcome(o, met)
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
		classes, s.missedSessions = s.fitness.Classes(classes), map[string]bool{}
	}
	if s.options.isPartial() || s.missedSessions != nil || s.header.Stream == stream.StreamRecording {
		s.computed, s.brokenCalls = metrics.New(classes), map[string]bool{}
		if s.header.Stream == stream.StreamRecording {
			s.computed.MarkRecording()
		}
	}
	if s.options.wantsNoise() && !s.minimal() {
		s.rows = &rows{index: map[string]int32{}}
	}
	if s.options.wantsText() && !s.reference {
		s.startNarrative(classes)
	}
	return nil
}

// minimal reports whether the run holds metrics only.
func (s *summary) minimal() bool {
	return s.header.Run != nil && s.header.Run.Trace == stream.TraceLevels[0]
}

// addSession takes the outcome of a session at hand.
func (s *summary) addSession(r *stream.Reader) error {
	var o stream.SessionOutcome
	if err := r.SessionOutcome(&o); err != nil {
		return err
	}
	if s.rows != nil {
		s.rows.addNotIssued(&o)
	}
	if s.computed != nil {
		s.selectSession(&o)
	}
	return nil
}

// selectSession counts the session, by its own arrival, if the options
// ask for it. Conditions are about requests: with one, no session is counted. The
// calls that it lost go with the one that broke it.
func (s *summary) selectSession(o *stream.SessionOutcome) {
	if call := o.Breaker(); s.brokenCalls[call] {
		s.computed.AddNotIssued(o)
		delete(s.brokenCalls, call)
	}
	if s.missedSessions != nil {
		o.SLOMet = nil
	}
	if s.missedSessions != nil && s.computed.Targets(o.SLOClass) != (stream.Targets{}) {
		o.SLOMet = stream.Met(o.State == stream.StateCompleted && !s.missedSessions[o.ID])
		delete(s.missedSessions, o.ID)
	}
	if s.options.Where.matches != nil {
		s.skippedSessions++
	} else if s.options.inTimeRange(o.ArrivalUS) {
		s.computed.AddSession(o)
	}
}

// selectOutcome counts the outcome if the options ask for it.
func (s *summary) selectOutcome(o *stream.Outcome) error {
	s.outcomesSeen++
	if s.missedSessions != nil && o.Session != "" {
		if met := metrics.SLOMet(o, s.computed.Targets(o.SLOClass)); met != nil && !*met {
			s.missedSessions[strings.Clone(o.Session)] = true
		}
	}
	want := s.options
	if !want.inTimeRange(o.ArrivalUS) {
		return nil
	}
	if want.Where.matches != nil {
		if kept, err := want.Where.matches(o); err != nil || !kept {
			return err
		}
	}
	s.outcomesSelected++
	s.computed.Add(o)
	if o.Session != "" && o.State != stream.StateCompleted {
		s.brokenCalls[strings.Clone(o.ID)] = true
	}
	switch o.State {
	case stream.StateTimedOut, stream.StateFailed:
		s.abandoned++
	case stream.StateUnfinished:
		s.unfinished++
	}
	for _, gap := range o.ITLUS {
		s.computed.AddGaps(gap[0], gap[1])
	}
	switch {
	case len(o.ITLUS) > 0:
		s.withITL++
	case o.GeneratedTokens > 1:
		s.withoutITL++
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
	case s.ownMetrics != nil:
		s.raw = &s.ownMetrics.Raw
	default:
		return r.Errorf("the run holds no metrics: somebody filtered them out")
	}
	if s.end.Requests != nil && s.end.Requests.BeyondHorizon > 0 {
		s.warn("%d requests arrive after the horizon and were not offered", s.end.Requests.BeyondHorizon)
	}
	if s.narrative != nil {
		s.finishNarrative(s.raw)
	}
	return nil
}

// compute computes the metrics from what was chosen, and says what is not
// known so.
func (s *summary) compute() {
	// The whole run, and what is unfinished, ends where the run does.
	known := s.ownMetrics != nil && (s.outcomesSelected == s.outcomesSeen || s.unfinished > 0)
	if known {
		s.computed.ExtendTo(s.ownMetrics.UntilUS)
	}
	if s.ownMetrics != nil && s.ownMetrics.Shadow != nil {
		s.computed.HasPrefixPrediction()
	}
	if s.outcomesSelected == s.outcomesSeen && s.ownMetrics != nil && s.ownMetrics.Anomalies != nil {
		s.computed.TrackAnomalies(slices.Collect(maps.Keys(s.ownMetrics.Anomalies)))
		for i := range s.anomalies {
			s.computed.AddAnomaly(s.anomalies[i].Type)
		}
	}
	s.raw = s.computed.Raw()
	if s.ownMetrics != nil && s.outcomesSelected == s.outcomesSeen && !s.options.isPartial() {
		s.raw = s.ownMetrics.WithTargets(s.raw)
		return
	}
	s.warn("computed from the outcomes of %d of %d requests: what only replicas know (kv utilization, cost, replica) is absent", s.outcomesSelected, s.outcomesSeen)
	if s.skippedSessions > 0 {
		s.warn("sessions are absent: --where is about requests, and %d sessions are there", s.skippedSessions)
	}
	switch {
	case s.withoutITL > 0 && s.withITL == 0:
		s.warn("itl is absent: the outcomes do not carry the gaps between tokens (blis-sim --itl)")
	case s.withoutITL > 0:
		s.warn("itl is of %d of %d requests: the others do not carry the gaps between their tokens", s.withITL, s.withITL+s.withoutITL)
	}
	if s.abandoned > 0 && !known {
		s.warn("outcomes do not say when %d requests timed out or failed: the run may have lasted longer", s.abandoned)
	}
}

func (s *summary) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}
