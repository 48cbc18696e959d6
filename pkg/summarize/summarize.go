// Package summarize reads runs and reports their metrics, score and explanation, or reads
// a workload and describes it. Its readers are people, programs and language models that
// change a policy.
package summarize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"blis/pkg/fitness"
	"blis/pkg/registry"
	"blis/pkg/stat"
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
	timeline, err := o.createTimeline()
	if err != nil {
		return err
	}
	defer timeline.discard()
	r.timeline = timeline
	err = r.read(ctx, in)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = timeline.commit()
	}
	if err != nil && o.Format != "json" {
		return err
	}
	if err == nil {
		if err := r.tryHints(ctx); err != nil {
			return err
		}
		if o.HTML != "" {
			if err := r.writeHTML(); err != nil {
				return err
			}
		}
	}
	render, writing := Formats.Get("format", o.Format)
	if o.Plot != "" {
		render = (*analysis).plot
	}
	if writing != nil {
		return errors.Join(err, writing)
	}
	text, writing := render(r, err)
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
	// references are the baselines and the parents; see referenceKinds.
	references [2][]*runDoc
	warnings   []string
	// timeline is nil unless one is written.
	timeline *timeline
}

// runDoc is one stream: its name, its contents, and its score.
type runDoc struct {
	name string
	*summary
	// err is why the stream has no result.
	err    error
	result *fitness.Result
	// candidate is nil for a reference run.
	candidate *candidate
	// references are its baseline and its parent; see referenceKinds.
	references [2]reference
}

// reference is a run that another one is compared with; the zero value is none.
type reference struct {
	*runDoc
	// score is its score with the references of the other run.
	score *fitness.Result
	// noise is the confidence interval of the difference between the scores, nil if unknown.
	noise *stat.Interval
}

// referenceKinds are the kinds of reference runs; the flag of each is -- and its name.
var referenceKinds = [2]string{"baseline", "parent"}

// read reads all streams and scores the runs. It returns the error of a stream that
// cannot be read, or of the fitness.
func (r *analysis) read(ctx context.Context, in io.Reader) (err error) {
	if f := r.options.Fitness; f != nil {
		if r.fitness = f.compiled; r.fitness == nil {
			if r.fitness, err = fitness.Load(f.src); err != nil {
				return err
			}
		}
		if err := r.fitness.CheckReferences(len(r.options.Baseline) > 0, len(r.options.Parent) > 0); err != nil {
			return err
		}
	}
	if r.options.Merge {
		r.runs, err = r.readMerged(ctx, r.options.streams(), in)
	} else {
		r.runs, err = r.readAll(ctx, r.options.streams(), in, false)
	}
	if err != nil {
		return err
	}
	for i, streams := range [...][]string{r.options.Baseline, r.options.Parent} {
		if r.references[i], err = r.readAll(ctx, streams, nil, true); err != nil {
			return err
		}
	}
	return r.scoreAll()
}

// open returns the stream with a number, which is in for the first one unless in is nil, and a function that closes it.
func (r *analysis) open(i int, file string, in io.Reader) (from io.Reader, closeInput func(), err error) {
	if i == 0 && in != nil {
		return in, func() {}, nil
	}
	opened, err := r.options.Open(file)
	if err != nil {
		return nil, nil, err
	}
	return opened, func() { opened.Close() }, nil
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
		from, closeInput, err := r.open(i, file, in)
		if err != nil {
			return nil, err
		}
		defer closeInput()
		x := &runDoc{name: name, summary: &summary{options: r.options, fitness: r.fitness, reference: references}}
		if r.timeline != nil && i == 0 && !references {
			x.watchers = append(x.watchers, r.timeline)
		}
		if (r.options.HTML != "" || r.options.Plot != "") && !references {
			x.watchers = append(x.watchers, &figureWatcher{of: x.summary})
		}
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

// Formats are the output formats.
var Formats = registry.Table[func(r *analysis, err error) ([]byte, error)]{
	{Name: "text", Doc: "metrics, score and explanation, for people and language models", Value: (*analysis).text},
	{Name: "table", Doc: "the main numbers, for people; several runs side by side", Value: (*analysis).table},
	{Name: "markdown", Doc: "the same in Markdown", Value: (*analysis).markdown},
	{Name: "csv", Doc: "every number: a row per number, a column per run", Value: (*analysis).csv},
	{Name: "json", Doc: "one document for programs", Value: (*analysis).json},
}

// json renders the document with its texts.
func (r *analysis) json(err error) ([]byte, error) {
	d := r.document(err)
	d.Artifacts = r.artifacts(d)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(d)
	return b.Bytes(), err
}

// table renders the summary of one run or workload, or a table of several runs.
func (r *analysis) table(error) ([]byte, error) {
	if columns := r.columns(); len(columns) > 1 {
		return r.sideBySide(columns), nil
	}
	return r.document(nil).text(!r.defaultFitness && r.fitness != nil), nil
}
