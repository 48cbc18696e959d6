package summarize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// summary is one stream as it is read.
type summary struct {
	options *Options
	// fitness can replace the targets of classes; nil does not.
	fitness *fitness.Fitness
	header  *stream.Header
	end     *stream.End
	// ownMetrics is the record that the run carries; computed is nil unless the metrics
	// are computed from outcomes.
	ownMetrics *metrics.Record
	computed   *metrics.Accumulator
	// outcomesSelected of the outcomesSeen are in computed. withITL of the selected
	// outcomes with several tokens carry inter-token gaps, withoutITL do not.
	outcomesSeen, outcomesSelected, withITL, withoutITL int64
	// abandoned counts the selected outcomes that timed out or failed, unfinished those
	// that are unfinished.
	abandoned, unfinished int64
	anomalies             []stream.Anomaly
	// narrative is nil unless the output explains the run. reference marks a run that is
	// only compared with and is not explained.
	*narrative
	reference bool
	// rows are nil unless runs are compared by their scores.
	rows *rows
	// missedSessions names the sessions with a request that missed its targets, if the
	// targets are not those of the workload; nil otherwise.
	missedSessions map[string]bool
	// brokenCalls are the ids of selected session calls that did not complete.
	brokenCalls map[string]bool
	// skippedSessions counts sessions that are not selected because a condition is about
	// requests.
	skippedSessions int64
	raw             *metrics.Raw
	// workload is nil unless the stream is one.
	workload *workloadDoc
	digest   string // of the records of the workload
	warnings []string
	// watchers receive all records.
	watchers []watcher
	// merged is nil unless the runs of shards are merged.
	merged *merged
	// integrity is that of the stream; integrityText says what is wrong with it, "" if nothing is.
	integrity     stream.Integrity
	integrityText string
}

// manyRecords make a stream large. It is a power of two, and a multiple of 4096.
const manyRecords = 1 << 18

func (s *summary) read(ctx context.Context, in io.Reader) error {
	r := stream.NewReader(in)
	r.Expect(stream.StreamRun, stream.StreamRecording, stream.StreamWorkload)
	defer r.Close()
	var o stream.Outcome
	for n := 1; r.Next(); n++ {
		if err := s.addRecord(r, &o); err != nil {
			return err
		}
		for _, w := range s.watchers {
			if err := w.Record(r, &o); err != nil {
				return err
			}
		}
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if s.options.Progress != nil {
				s.options.Progress(fmt.Sprintf("%d records", n))
			}
			if n >= manyRecords && n&(n-1) == 0 && s.options.Large != nil {
				s.options.Large(n)
			}
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if s.merged != nil {
		return s.endShard(r)
	}
	s.end = r.End()
	s.integrity, s.integrityText = r.Integrity()
	if s.warnings = r.Warnings(); s.options.Strict && len(s.warnings) > 0 {
		return errors.New(s.warnings[0])
	}
	if s.integrity != stream.IntegrityOK {
		s.options.warn(s.integrityText)
	}
	return s.finish(r)
}

// addRecord adds the current record. o is a buffer for outcomes.
func (s *summary) addRecord(r *stream.Reader, o *stream.Outcome) error {
	switch r.Kind() {
	case stream.KindHeader:
		if s.merged != nil {
			return s.addShard(r)
		}
		s.header = r.Header()
		if s.header.Stream == stream.StreamWorkload {
			return s.startWorkload(r)
		}
		if s.options.Cluster != nil {
			return r.Errorf("-c is for workloads; this is a %s, which contains its cluster", s.header.Stream)
		}
		if s.options.isPartial() && s.minimal() {
			return r.Errorf("the run was written with --trace minimal and has no outcomes; " +
				"--where, --from and --to need --trace decisions or full")
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
		if s.merged != nil {
			return s.merged.addMetrics(r)
		}
		if s.ownMetrics != nil {
			return r.Errorf("this is the second metrics record of the run")
		}
		s.ownMetrics = &metrics.Record{Raw: metrics.Raw{FromUS: stream.Never, UntilUS: stream.Never}}
		return r.Decode(s.ownMetrics)
	case stream.KindOutcome:
		if s.computed == nil && s.narrative == nil && s.rows == nil && len(s.watchers) == 0 {
			return nil
		}
		if err := r.Outcome(o); err != nil {
			return err
		}
		return s.addOutcome(r, o)
	case stream.KindAnomaly:
		if s.merged != nil {
			return nil
		}
		return s.addAnomaly(r)
	case stream.KindSessionOutcome:
		if s.computed != nil || s.rows != nil || s.narrative != nil {
			return s.addSession(r)
		}
	default:
		if s.narrative != nil && s.merged == nil {
			return s.observe(r)
		}
	}
	return nil
}

// addOutcome adds the current outcome.
func (s *summary) addOutcome(r *stream.Reader, o *stream.Outcome) error {
	excluded := false
	if s.computed != nil {
		before := s.outcomesSelected
		if err := s.selectOutcome(o); err != nil {
			return r.Errorf("--where: %v", err)
		}
		excluded = s.outcomesSelected == before
	}
	if s.narrative != nil && s.merged == nil {
		s.insight.Outcome(o, excluded || o.Retried)
	}
	if s.rows != nil && !excluded && !o.Retried {
		met := o.SLOMet
		if s.computed != nil {
			met = metrics.SLOMet(o, s.computed.Targets(o.SLOClass))
		}
		s.rows.addOutcome(o, met)
	}
	return nil
}

// prepare sets up what is needed for the outcomes of a run.
func (s *summary) prepare(r *stream.Reader) error {
	classes := s.header.SLOClasses
	if s.fitness != nil && len(s.fitness.SLO) > 0 {
		if s.minimal() {
			return r.Errorf("the run was written with --trace minimal and has no outcomes; " +
				"the targets of the fitness file (slo) need --trace decisions or full")
		}
		classes, s.missedSessions = s.fitness.Classes(classes), map[string]bool{}
	}
	if s.options.isPartial() || s.merged != nil || s.missedSessions != nil ||
		s.header.Stream == stream.StreamRecording {
		s.computed, s.brokenCalls = metrics.New(classes), map[string]bool{}
		if s.header.Stream == stream.StreamRecording {
			s.computed.MarkRecording()
		}
	}
	if s.options.wantsNoise() && !s.minimal() {
		s.rows = &rows{index: map[string]int32{}}
	}
	if s.options.wantsText() && (!s.reference || len(s.options.Parent) > 0) {
		h := *s.header
		h.SLOClasses = classes
		s.narrative = &narrative{insight: attribution.New(&h)}
		if !s.reference {
			s.insight.SetQuery(&s.options.Explain)
			if o := s.options; o.Format == "json" || o.HTML != "" || o.Explain.IsSet() {
				s.insight.MeasureAll()
			}
		}
	}
	return nil
}

// minimal reports whether the run has only metrics.
func (s *summary) minimal() bool {
	return s.header.Run != nil && s.header.Run.Trace == stream.TraceLevels[0]
}

// addSession adds the current session outcome. Its metrics count if its arrival is selected. A
// condition is about requests: with one, no session is counted. Calls that were not issued go with
// the call that broke the session.
func (s *summary) addSession(r *stream.Reader) error {
	var o stream.SessionOutcome
	if err := r.SessionOutcome(&o); err != nil {
		return err
	}
	if s.rows != nil {
		s.rows.addNotIssued(&o)
	}
	if s.narrative != nil && s.merged == nil && s.options.Where.matches == nil && s.options.inTimeRange(o.ArrivalUS) {
		s.insight.Session(&o)
	}
	if s.computed == nil {
		return nil
	}
	if call := o.FailedRequest(); s.brokenCalls[call] {
		s.computed.AddNotIssued(&o)
		delete(s.brokenCalls, call)
	}
	if s.missedSessions != nil {
		o.SLOMet = nil
		if s.computed.Targets(o.SLOClass) != (stream.Targets{}) {
			o.SLOMet = stream.BoolPtr(o.State == stream.StateCompleted && !s.missedSessions[o.ID])
			delete(s.missedSessions, o.ID)
		}
	}
	if s.options.Where.matches != nil {
		s.skippedSessions++
	} else if s.options.inTimeRange(o.ArrivalUS) {
		s.computed.AddSession(&o)
	}
	return nil
}

// selectOutcome counts the outcome if it is selected.
func (s *summary) selectOutcome(o *stream.Outcome) error {
	s.outcomesSeen++
	if s.missedSessions != nil && o.Session != "" && !o.Retried {
		if met := metrics.SLOMet(o, s.computed.Targets(o.SLOClass)); met != nil && !*met {
			s.missedSessions[strings.Clone(o.Session)] = true
		}
	}
	options := s.options
	if !options.inTimeRange(o.Began()) {
		return nil
	}
	if options.Where.matches != nil {
		if selected, err := options.Where.matches(o); err != nil || !selected {
			return err
		}
	}
	s.outcomesSelected++
	s.computed.Add(o)
	if o.Session != "" && o.State != stream.StateCompleted && !o.Retried {
		s.brokenCalls[strings.Clone(o.Original())] = true
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

// finish computes the metrics after the last record.
func (s *summary) finish(r *stream.Reader) error {
	switch {
	case s.workload != nil:
		return s.finishWorkload(r)
	case s.computed != nil:
		if err := s.checkSelection(); err != nil {
			return err
		}
		s.compute()
	case s.ownMetrics != nil:
		s.raw = &s.ownMetrics.Raw
	default:
		return r.Errorf("the run has no metrics record; it was filtered out")
	}
	if s.end.Requests != nil && s.end.Requests.BeyondHorizon > 0 {
		s.warn("%d requests arrive after the horizon and were not offered", s.end.Requests.BeyondHorizon)
	}
	if s.narrative != nil && !s.insight.Empty() {
		s.insight.Metrics(s.raw)
	}
	return nil
}

// compute computes the metrics of the selected outcomes and warns about what is unknown.
func (s *summary) compute() {
	own, complete := s.ownMetrics, s.outcomesSelected == s.outcomesSeen
	// The complete run, and unfinished requests, end with the run.
	endKnown := own != nil && (complete || s.unfinished > 0)
	if endKnown {
		s.computed.ExtendTo(own.UntilUS)
	}
	if own != nil && own.Shadow != nil {
		s.computed.HasPrefixPrediction()
	}
	if own != nil && complete && own.Anomalies != nil {
		s.computed.TrackAnomalies(slices.Collect(maps.Keys(own.Anomalies)))
		for i := range s.anomalies {
			s.computed.AddAnomaly(s.anomalies[i].Type)
		}
	}
	s.raw = s.computed.Raw()
	if own != nil && complete && !s.options.isPartial() {
		s.raw = own.WithTargets(s.raw)
		return
	}
	s.warn("computed from the outcomes of %d of %d requests: "+
		"metrics of replicas (KV utilization, cost, replica) are missing", s.outcomesSelected, s.outcomesSeen)
	s.warnUnknown(endKnown)
}

// warnUnknown warns about what the selected outcomes do not have.
func (s *summary) warnUnknown(endKnown bool) {
	if s.skippedSessions > 0 {
		s.warn("session metrics are missing: --where selects requests, so %d sessions are not counted",
			s.skippedSessions)
	}
	switch {
	case s.withoutITL > 0 && s.withITL == 0:
		s.warn("itl is missing: the outcomes have no inter-token gaps (run blis-sim --itl)")
	case s.withoutITL > 0:
		s.warn("itl covers %d of %d requests: the others have no inter-token gaps", s.withITL, s.withITL+s.withoutITL)
	}
	if s.abandoned > 0 && !endKnown {
		s.warn("the end of %d requests that timed out or failed is unknown: the run may have lasted longer",
			s.abandoned)
	}
}

func (s *summary) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// addAnomaly adds the current record.
func (s *summary) addAnomaly(r *stream.Reader) error {
	a := stream.Anomaly{Replica: stream.NoIndex}
	if err := r.Decode(&a); err != nil {
		return err
	}
	s.anomalies = append(s.anomalies, a)
	if s.narrative != nil {
		s.insight.Anomaly(&a)
	}
	return nil
}
