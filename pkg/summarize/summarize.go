// Package summarize reads runs and reports their metrics, score and explanation, or reads
// a workload and describes it. Its readers are people, programs and language models that
// change a policy.
package summarize

import (
	"context"
	"errors"
	"io"

	"blis/pkg/fitness"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Reported is an error that the output reports too; the output is complete.
type Reported struct{ error }

// Unwrap returns the error.
func (r Reported) Unwrap() error { return r.error }

// Run reads the first stream from in, which is nil if o.Open opens it, and the other
// streams of o, and writes the summary to out. The metrics are those that a run carries.
// For a part of a run, and for a recording, they are computed from the outcomes.
//
// A run with an error record instead of metrics is summarized with score 0; that is not
// an error. A run that cannot be read to its end is an error, and so is a fitness that
// does not apply; in the format json these are also written to out, and are Reported.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	r := &analysis{options: &o}
	err := r.read(ctx, in)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && o.Format != "json" {
		return err
	}
	text, writing := r.render(err)
	if writing == nil {
		_, writing = out.Write(text)
	}
	if err != nil && writing == nil {
		return Reported{err}
	}
	return errors.Join(err, writing)
}

// analysis is everything that is read, and its results.
type analysis struct {
	options *Options
	// fitness is nil until the score is known; defaultFitness is true if the call names
	// none.
	fitness        *fitness.Fitness
	defaultFitness bool
	// runs are in the order of the arguments, candidates in that of their first runs.
	runs       []*runDoc
	candidates []*candidate
	// baselines and parents are reference runs.
	baselines, parents []*runDoc
	warnings           []string
}

// runDoc is one stream: its name, its contents, and its score.
type runDoc struct {
	name string
	*summary
	// err is why the stream has no result.
	err    error
	result *fitness.Result
	// base and parent are the reference runs, nil without one. references are their
	// scores in this run's place, by tree.
	base, parent *runDoc
	references   map[string]*fitness.Result
	// noise has the intervals of the score differences from base and parent, if known.
	noise map[string]stat.Interval
}

// carriesFault reports whether the run is an error record of an earlier tool.
func (r *runDoc) carriesFault() bool {
	var fault *stream.UpstreamError
	return errors.As(r.err, &fault)
}

// read reads all streams and scores the runs. It returns the error of a stream that
// cannot be read, or of the fitness.
func (r *analysis) read(ctx context.Context, in io.Reader) (err error) {
	if f := r.options.Fitness; f != nil {
		if r.fitness, err = f.load(); err != nil {
			return err
		}
		if err := r.fitness.CheckReferences(len(r.options.Baseline) > 0, len(r.options.Parent) > 0); err != nil {
			return err
		}
	}
	streams := r.options.Streams
	if len(streams) == 0 {
		streams = []string{"-"}
	}
	if r.runs, err = r.readAll(ctx, streams, in, false); err != nil {
		return err
	}
	if r.baselines, err = r.readAll(ctx, r.options.Baseline, nil, true); err != nil {
		return err
	}
	if r.parents, err = r.readAll(ctx, r.options.Parent, nil, true); err != nil {
		return err
	}
	return r.scoreAll()
}

// readAll reads the streams; in is the first if it is open already. It returns an error
// for a stream that cannot be opened and for a workload among several streams: these are
// wrong calls, not failed runs.
func (r *analysis) readAll(ctx context.Context, streams []string, in io.Reader, references bool) (all []*runDoc,
	err error) {
	names := streamNames(streams)
	for i, data := range streams {
		name := names[i]
		_, file := splitName(data)
		from := in
		if i > 0 || in == nil {
			opened, err := r.options.Open(file)
			if err != nil {
				return nil, err
			}
			defer opened.Close()
			from = opened
		}
		x := &runDoc{name: name, summary: &summary{options: r.options, fitness: r.fitness, reference: references}}
		if x.err = x.summary.read(ctx, from); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if x.workload != nil && (len(streams) > 1 || references) {
			return nil, errors.New(file + " is a workload; a workload must be the only stream")
		}
		all = append(all, x)
	}
	return all, nil
}
