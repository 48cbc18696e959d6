package recording

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"blis/pkg/stream"
)

func isBLIS(h *head) bool { return !h.list && h.has("kind") }

// readBLIS reads BLIS streams: a recording, or the run of a simulated server. Times are shifted so
// that the first arrival is at 0.
func readBLIS(f *file, r *Recording) error {
	in := stream.NewReader(namedReader{f.Reader, f.Name})
	defer in.Close()
	in.Expect(stream.StreamRecording, stream.StreamRun)
	run := &Run{Clock: clientClock, Arrivals: true}
	var s stream.Step // a buffer
	for in.Next() {
		switch in.Kind() {
		case stream.KindOutcome:
			var o stream.Outcome
			if err := in.Outcome(&o); err != nil {
				return err
			}
			run.Outcomes = append(run.Outcomes, o)
		case stream.KindStep:
			if err := in.Step(&s); err != nil {
				return err
			}
			r.Steps = append(r.Steps, Step{Prefill: s.PrefillTokens, Decode: s.DecodeTokens, Context: Unknown,
				US: float64(s.EndUS - s.StartUS)})
		}
	}
	if err := in.Err(); err != nil {
		return err
	}
	r.Warnings = append(r.Warnings, in.Warnings()...)
	if len(run.Outcomes) == 0 {
		return f.Errorf("contains no outcomes; blis-sim writes them with --trace decisions or full")
	}
	run.shiftToFirstArrival()
	if h := in.Header(); h != nil && h.Recording != nil {
		m := h.Recording
		run.Clock, run.Arrivals, run.Model, run.GPU, run.Engine = m.Clock, m.Arrivals, m.Model, m.GPU, m.Engine
		run.TensorParallel, run.Replicas, run.TargetRPS = int(m.TensorParallelSize), int(m.Replicas), m.TargetRPS
	}
	r.Runs = append(r.Runs, run)
	return nil
}

// shiftToFirstArrival sorts outcomes by arrival and shifts their times so that the first is at 0.
func (r *Run) shiftToFirstArrival() {
	slices.SortStableFunc(r.Outcomes, func(a, b stream.Outcome) int { return cmp.Compare(a.ArrivalUS, b.ArrivalUS) })
	first := r.Outcomes[0].ArrivalUS
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		for _, t := range []*stream.Micros{&o.ArrivalUS, &o.AdmittedUS, &o.RoutedUS, &o.EnqueuedUS, &o.ScheduledUS,
			&o.FirstTokenUS, &o.CompletedUS, &o.EndedUS} {
			if *t != stream.Never {
				*t -= first
			}
		}
		if o.ScheduledUS != stream.Never {
			r.Clock = ServerClock
		}
	}
}

// namedReader is a reader with a name for errors.
type namedReader struct {
	io.Reader
	name string
}

func (n namedReader) Name() string { return n.name }

// Write writes the run as a stream, compressed unless plain is set. tool is the name of the
// program. A request that completed without a first token cannot be written and is an error.
func Write(out io.Writer, r *Run, tool, version string, plain bool) (err error) {
	w := stream.NewWriter(out, plain)
	defer func() { err = cmp.Or(err, w.Close()) }()
	if err := w.Header(&stream.Header{Stream: stream.StreamRecording, Tool: tool, Version: version,
		Recording: &stream.RecordingHeader{
			Clock: r.Clock, Arrivals: r.Arrivals, Model: r.Model, GPU: r.GPU, Engine: r.Engine,
			TensorParallelSize: int64(r.TensorParallel), Replicas: int64(r.Replicas), TargetRPS: r.TargetRPS,
		}}); err != nil {
		return err
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.State == completed && o.FirstTokenUS == stream.Never {
			return fmt.Errorf("request %s completed without a first token time, which a stream requires", o.ID)
		}
		if err := w.Outcome(o); err != nil {
			return err
		}
	}
	return w.End(&stream.End{})
}
