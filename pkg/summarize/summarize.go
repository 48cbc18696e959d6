// Package summarize reads runs and says what they amount to and how good they
// are, or reads a workload and describes it: for people, for programs, for those
// who will change a policy.
package summarize

import (
	"context"
	"errors"
	"io"

	"blis/pkg/fitness"
	"blis/pkg/stream"
)

// Reported is an error that the product says, too: that is whole.
type Reported struct{ error }

// Unwrap is the error that is reported.
func (r Reported) Unwrap() error { return r.error }

// Run reads the first stream from in, which nil leaves to o.Open, and the others that o
// names, and writes their summary to out. The metrics of a run are those that it carries; those of
// a part of it, and of a recording, which carries none, are computed from the
// outcomes.
//
// A run that carries an error in place of a product is summarized as that, with
// score 0, and is no error here. One that cannot be read to its end is an error,
// and so is a fitness that does not fit; in the format json these are reported on
// out, too, and are Reported.
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

// analysis is all that a call reads, and what it comes to.
type analysis struct {
	options *Options
	// fitness is nil until it is known by what the runs are scored; assumed says that
	// the call does not name it.
	fitness *fitness.Fitness
	assumed bool
	// runs are in the order of the call, candidates in that of their first runs.
	runs       []*subject
	candidates []*candidate
	// baselines and parents are to compare with.
	baselines, parents []*subject
	warnings           []string
}

// subject is one stream of the call: its name, what was read, and what that is worth.
type subject struct {
	name string
	*summary
	// err is why there is nothing to be said of it.
	err    error
	result *fitness.Result
	// base and parent are nil without one. references are what they are worth in the
	// place of this run, by their trees.
	base, parent *subject
	references   map[string]*fitness.Result
	// noise has the interval of the score less that of base and of parent, where it is
	// known.
	noise map[string]Interval
}

// fault reports whether the run carries an error of an earlier stage in the place
// of a product.
func (r *subject) fault() bool {
	var fault *stream.FaultError
	return errors.As(r.err, &fault)
}

// read reads all streams and judges the runs. Its error is that of a stream that
// cannot be read, or of the fitness.
func (r *analysis) read(ctx context.Context, in io.Reader) (err error) {
	if f := r.options.Fitness; f != nil {
		if r.fitness, err = f.load(); err != nil {
			return err
		}
		if err := r.fitness.RefuseReferences(len(r.options.Baseline) > 0, len(r.options.Parent) > 0); err != nil {
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
	return r.judge()
}

// readAll reads the streams so called, to compare with or not; in is the first of them if
// it is open. A
// stream that cannot be opened, or a workload among several, ends it: that is no
// run that failed but a call that is wrong.
func (r *analysis) readAll(ctx context.Context, streams []string, in io.Reader, references bool) (all []*subject, err error) {
	names := namesOf(streams)
	for i, data := range streams {
		name := names[i]
		_, file := nameOf(data)
		from := in
		if i > 0 || in == nil {
			opened, err := r.options.Open(file)
			if err != nil {
				return nil, err
			}
			defer opened.Close()
			from = opened
		}
		x := &subject{name: name, summary: &summary{options: r.options, fitness: r.fitness, reference: references}}
		if x.err = x.summary.read(ctx, from); ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if x.workload != nil && (len(streams) > 1 || references) {
			return nil, errors.New(file + " is a workload: one can be described, by itself")
		}
		all = append(all, x)
	}
	return all, nil
}
