package calibrate

import (
	"math"
	"strings"

	"blis/pkg/hardware"
)

// set makes the coefficients that blis-sim takes, with all that is known of them.
func (r *Report) set() *hardware.Set {
	s, f := r.setup, &r.fit
	set := &hardware.Set{Key: s.key, Engine: s.engine, Method: f.method, Warnings: r.Warnings}
	async, caching := s.deployment.Engine.AsyncScheduling, s.deployment.Engine.EnablePrefixCaching
	set.Settings = hardware.Settings{AsyncScheduling: &async, EnablePrefixCaching: &caching}
	rounded := f.list()
	for k := range rounded {
		rounded[k] = round(rounded[k], 5)
	}
	alphas := rounded[:alpha3]
	if f.Alpha[3] > 0 {
		alphas = rounded[:beta0]
	}
	set.Latency = hardware.Latency{Model: "linear", AlphaUS: alphas, BetaUS: rounded[beta0:]}
	if f.table != nil {
		set.Latency = hardware.Latency{Model: "table", AlphaUS: alphas, Table: f.table}
	}
	set.Intervals.Level = level
	set.Intervals.AlphaUS, set.Intervals.BetaUS = intervalsOf(f, &f.intervals, rounded)
	if f.doubts != f.intervals {
		set.Doubts.Level = level
		set.Doubts.AlphaUS, set.Doubts.BetaUS = intervalsOf(f, &f.doubts, rounded)
	}
	var sources []string
	for _, file := range s.files {
		name := file.Path[strings.LastIndexByte(file.Path, '/')+1:]
		recorded := hardware.Recording{File: name, Digest: file.Digest}
		for _, run := range s.runs {
			if run.file != file {
				continue
			}
			recorded.Requests += len(run.requests)
			if run.of != "" {
				recorded.Runs = append(recorded.Runs, run.of)
			}
		}
		set.Recordings = append(set.Recordings, recorded)
		sources = append(sources, name)
	}
	set.Source = "recordings " + strings.Join(sources, ", ")
	set.Range = s.ranges()
	for _, score := range r.Scores {
		for _, m := range score.Metrics {
			set.Errors = append(set.Errors, hardware.Error{Metric: m.Metric, Data: score.Data, Percent: round(m.Percent, 3)})
		}
	}
	if held := r.StepScore; held != nil {
		set.Errors = append(set.Errors, hardware.Error{Metric: "step", Data: held.Data + " (the median of what they are off by, whatever its sign)", Percent: held.Percent})
	}
	return set
}

// intervalsOf are intervals of the coefficients as files have them; those that were
// not fitted are their values.
func intervalsOf(f *fitted, intervals *[len(names)]Interval, values []float64) (alpha, beta [][]float64) {
	for k, i := range intervals {
		between := []float64{round(i.Low, 4), round(i.High, 4)}
		if i.High == i.Low {
			between = []float64{values[k], values[k]}
		}
		if k < alpha3 || k == alpha3 && f.Alpha[3] > 0 {
			alpha = append(alpha, between)
		} else if k >= beta0 && f.table == nil {
			beta = append(beta, between)
		}
	}
	return alpha, beta
}

// ranges are what the data cover.
func (s *setup) ranges() (r hardware.Range) {
	widen := func(span *hardware.Span, v float64) {
		if *span == nil {
			*span = hardware.Span{v, v}
		}
		(*span)[0], (*span)[1] = min((*span)[0], v), max((*span)[1], v)
	}
	for _, run := range s.runs {
		peak := 0.0
		if len(run.requests) > 0 {
			peak = math.Ceil(run.decoding().peak() / float64(run.replicas))
		}
		for _, q := range run.requests {
			in, out := float64(q.InputTokens), float64(q.OutputTokens)
			widen(&r.InputTokens, in)
			widen(&r.OutputTokens, out)
			if out > 1 {
				widen(&r.ContextTokens, in)
				widen(&r.ContextTokens, in+out-2)
			}
		}
		if peak >= 1 {
			widen(&r.DecodeSequences, 1)
			widen(&r.DecodeSequences, peak)
		}
	}
	for _, x := range s.steps {
		if x.Decode > 0 {
			widen(&r.DecodeSequences, float64(x.Decode))
			if x.Context >= 0 {
				widen(&r.ContextTokens, math.Round(float64(x.Context)/float64(x.Decode)))
			}
		}
		if x.Prefill > 0 {
			widen(&r.PrefillTokens, float64(x.Prefill))
		}
	}
	return r
}

// coefficientsOf are those of a linear set.
func coefficientsOf(set *hardware.Set) (c Coefficients) {
	copy(c.Alpha[:], set.Latency.AlphaUS)
	copy(c.Beta[:], set.Latency.BetaUS)
	return c
}
