package summarize

import (
	"context"
	"errors"

	"blis/pkg/attribution"
)

// minTried hints are simulated by --try, and more as long as they have triedRequests in total.
const (
	minTried      = 3
	triedRequests = 50_000
)

// checkTry rejects calls in which --try cannot know what to simulate.
func (o *Options) checkTry() error {
	switch {
	case o.Try == "":
		return nil
	case len(o.Streams) != 1 || o.Streams[0] == "-":
		return errors.New("--try needs exactly one run, from a file")
	case o.Format != "text" && o.Format != "json":
		return errors.New("--try needs --format text or json, not " + o.Format)
	}
	return nil
}

// tryHints simulates the first hints of the run with its configuration and seeds and notes their scores.
func (r *analysis) tryHints(ctx context.Context) error {
	if r.options.Try == "" || len(r.candidates) != 1 || r.candidates[0].err != nil {
		return nil
	}
	c := r.candidates[0]
	x := c.runs[0]
	if x.narrative == nil || x.findings == nil || len(x.findings.Hints) == 0 {
		r.options.warn("--try: no hints to simulate")
		return nil
	}
	hints := x.findings.Hints
	most := max(minTried, triedRequests/int(max(1, x.raw.Requests.Offered)))
	for i := range hints[:min(len(hints), most)] {
		score, err := r.scoreWith(ctx, hints[i].Settings())
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			hints[i].Measured = &attribution.Measured{Error: err.Error()}
		default:
			hints[i].Measured = &attribution.Measured{Score: score, Gain: score - c.score()}
		}
	}
	return nil
}

// scoreWith is the score of the run simulated again with other settings.
func (r *analysis) scoreWith(ctx context.Context, settings []string) (float64, error) {
	_, file := splitName(r.options.Streams[0])
	run, err := r.options.WhatIf(ctx, file, r.options.Try, settings)
	if err != nil {
		return 0, err
	}
	defer run.Close()
	o := *r.options
	o.Try, o.Streams, o.Progress = "", []string{"hint"}, nil
	again := &analysis{options: &o}
	if err := again.read(ctx, run); err != nil {
		return 0, err
	}
	if c := again.candidates[0]; c.err != nil {
		return 0, c.err
	}
	return again.candidates[0].score(), nil
}
