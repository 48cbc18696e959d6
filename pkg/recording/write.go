package recording

import (
	"fmt"
	"io"

	"blis/pkg/stream"
)

// Write writes the run as a stream, compressed unless plain is set. tool is the name of the
// program. A request that completed without a first token cannot be written and is an error.
func Write(out io.Writer, r *Run, tool, version string, plain bool) error {
	w := stream.NewWriter(out, plain)
	err := write(w, r, tool, version)
	if closed := w.Close(); err == nil {
		err = closed
	}
	return err
}

func write(w *stream.Writer, r *Run, tool, version string) error {
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
