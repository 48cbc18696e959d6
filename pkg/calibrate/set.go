package calibrate

import (
	"math"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/stat"
)

// set makes the coefficients that blis-sim takes, with their provenance.
func (r *report) set() *hardware.Set {
	s, f := r.setup, &r.fit
	e := &s.deployment.Engine
	values := f.list()
	for k := range values {
		values[k] = round(values[k], 5)
	}
	alphas := values[:alpha3]
	if f.Alpha[3] > 0 {
		alphas = values[:beta0]
	}
	set := &hardware.Set{Key: s.key, Engine: s.engine, Method: f.method, Warnings: r.Warnings, Range: s.ranges(),
		Settings: hardware.Settings{AsyncScheduling: &e.AsyncScheduling, EnablePrefixCaching: &e.EnablePrefixCaching},
		Latency:  hardware.Latency{Model: "linear", AlphaUS: alphas, BetaUS: values[beta0:]}}
	if f.table != nil {
		set.Latency = hardware.Latency{Model: "table", AlphaUS: alphas, Table: f.table}
	}
	set.CI = f.intervalsOf(&f.ci, values)
	if f.uncertainty != f.ci {
		set.Uncertainty = f.intervalsOf(&f.uncertainty, values)
	}
	var sources []string
	for _, file := range s.files {
		recorded := hardware.Recording{File: file.Path[strings.LastIndexByte(file.Path, '/')+1:], Digest: file.Digest}
		for _, run := range s.replays {
			if run.file != file {
				continue
			}
			recorded.Requests += len(run.requests)
			if run.run != "" {
				recorded.Runs = append(recorded.Runs, run.run)
			}
		}
		set.Recordings = append(set.Recordings, recorded)
		sources = append(sources, recorded.File)
	}
	set.Source = "recordings " + strings.Join(sources, ", ")
	for _, score := range r.Scores {
		for _, m := range score.Metrics {
			e := hardware.Error{Metric: m.Metric, Data: score.Data, Percent: round(m.Percent, 3)}
			set.Errors = append(set.Errors, e)
		}
	}
	if s := r.StepScore; s != nil {
		set.Errors = append(set.Errors, hardware.Error{Metric: "step", Data: s.Data + " (median absolute error)",
			Percent: s.MedianAbsError})
	}
	return set
}

// intervalsOf are intervals of the coefficients as files have them; one that was not fitted is
// its value.
func (f *fitResult) intervalsOf(intervals *[len(names)]stat.Interval, values []float64) hardware.Intervals {
	out := hardware.Intervals{Level: level}
	for k, i := range intervals {
		pair := []float64{round(i.Lo, 4), round(i.Hi, 4)}
		if i.Hi == i.Lo {
			pair = []float64{values[k], values[k]}
		}
		if k < alpha3 || k == alpha3 && f.Alpha[3] > 0 {
			out.AlphaUS = append(out.AlphaUS, pair)
		} else if k >= beta0 && f.table == nil {
			out.BetaUS = append(out.BetaUS, pair)
		}
	}
	return out
}

// ranges are what the data cover.
func (s *setup) ranges() (r hardware.Range) {
	for _, run := range s.replays {
		for _, q := range run.requests {
			in, out := float64(q.InputTokens), float64(q.OutputTokens)
			r.InputTokens.Widen(in)
			r.OutputTokens.Widen(out)
			if out > 1 {
				r.ContextTokens.Widen(in, in+out-2)
			}
		}
		if peak := math.Ceil(run.decodingProfile().Peak() / float64(run.engine.replicas)); peak >= 1 {
			r.DecodeSequences.Widen(1, peak)
		}
	}
	for _, x := range s.steps {
		if x.Decode > 0 {
			r.DecodeSequences.Widen(float64(x.Decode))
			if x.Context >= 0 {
				r.ContextTokens.Widen(math.Round(float64(x.Context) / float64(x.Decode)))
			}
		}
		if x.Prefill > 0 {
			r.PrefillTokens.Widen(float64(x.Prefill))
		}
	}
	return r
}
