package calibrate

import (
	"math"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

// coefficients are those of the linear model, by the indices below: queueing = α0 + α1·input;
// α2 + α3·decode from a token to the client; step = β0 + β1·prefill + β2·decode + β3·context.
// α0, α2 and β0 are in µs, α3 and β2 in µs per decoding sequence, the others in µs per token.
type coefficients [len(names)]float64

// names are those of the coefficients in tables of results and in files.
var names = [...]string{"alpha[0]", "alpha[1]", "alpha[2]", "alpha[3]", "beta[0]", "beta[1]", "beta[2]", "beta[3]"}

// Indices of names.
const (
	alpha0 = iota
	alpha1
	alpha2
	alpha3
	beta0
	beta1
	beta2
	beta3
)

// level is that of all confidence intervals.
const level = 0.90

// zLevel is the half-width of a normal distribution's interval of the level: 1.645 σ.
var zLevel = leastsq.TQuantile(math.Inf(1), level)

// prior is what physics predicts at a load, before any measurement: a line through a
// roofline's step times between half and twice the mean batch, at its mean context, and the
// time to read a token's keys and values.
func (s *setup) prior(l load) coefficients {
	roofline := s.deployment.Computed.Roofline
	w, m := &roofline.Work, &roofline.Machine
	kvBytes := float64(w.KVBytes) / math.Min(float64(m.TensorParallel), float64(max(1, w.KVHeads)))
	step := func(prefill, decode int64) float64 {
		b := latency.Batch{Prefill: prefill, Decode: decode, Context: int64(l.context * float64(decode))}
		if prefill > 0 {
			b.Chunks, b.Pairs = 1, prefill*(prefill+1)/2
		}
		return float64(s.roofline.Step(b))
	}
	low := int64(max(1, l.sequences/2))
	high := max(low+1, int64(2*l.sequences))
	var p coefficients
	p[beta3] = kvBytes / m.Bandwidth * 1e6
	slope := (step(0, high) - step(0, low)) / float64(high-low)
	p[beta2] = max(0, slope-p[beta3]*l.context)
	p[beta0] = max(0, step(0, low)-slope*float64(low))
	p[beta1] = (step(1024, high) - step(1, high)) / 1023
	return p
}

// withKernels is a prior with the kernels' time of prefill, and a slope between theirs and the
// roofline's, both as on other servers: either slope is wrong by about 20 %, and mostly not in the same
// direction.
func (p coefficients) withKernels(of shape, l load, most int) coefficients {
	p[beta1], _ = meanAndSD(prefillFactor)
	factor, _ := meanAndSD(slopeOfKernels)
	attention := p[beta3] * l.context
	p[beta2] = max(0, (p[beta2]+attention+factor*of.decodeSlope(l, most))/2-attention)
	return p
}

// set makes the coefficients that blis-sim takes, with their provenance.
func (r *report) set() *hardware.Set {
	s, f := r.setup, &r.fit
	e := &s.deployment.Engine
	set := &hardware.Set{Key: s.key, Engine: s.engine, Method: f.method, Warnings: r.Warnings, Range: s.ranges(),
		Settings: hardware.Settings{AsyncScheduling: &e.AsyncScheduling, EnablePrefixCaching: &e.EnablePrefixCaching},
		Latency:  hardware.Latency{Model: "linear"}, CI: hardware.Intervals{Level: level}}
	if f.table != nil {
		set.Latency.Model, set.Latency.Table = "table", f.table
	}
	if f.uncertainty != f.ci {
		set.Uncertainty.Level = level
	}
	if f.shape.kernels != nil {
		set.Latency = f.shape.latency(f.value, nil)
		set.Latency.AlphaUS = nil
		set.CI.Factors, set.Uncertainty.Factors = map[string][]float64{}, map[string][]float64{}
	}
	for _, c := range r.Fitted {
		if o := set.Latency.Factors; o != nil && !strings.HasPrefix(c.Name, "alpha") {
			set.CI.Factors[c.Name] = c.endsOf(c.CI)
			if f.uncertainty != f.ci {
				set.Uncertainty.Factors[c.Name] = c.endsOf(c.Uncertainty)
			}
			continue
		}
		values, ci, uncertainty := &set.Latency.AlphaUS, &set.CI.AlphaUS, &set.Uncertainty.AlphaUS
		if strings.HasPrefix(c.Name, "beta") {
			values, ci, uncertainty = &set.Latency.BetaUS, &set.CI.BetaUS, &set.Uncertainty.BetaUS
			if f.table != nil {
				break
			}
		}
		*values, *ci = append(*values, c.Value), append(*ci, c.endsOf(c.CI))
		if f.uncertainty != f.ci {
			*uncertainty = append(*uncertainty, c.endsOf(c.Uncertainty))
		}
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
			set.Errors = append(set.Errors, hardware.Error{Metric: m.Metric, Data: score.Data, Percent: m.Percent})
		}
	}
	if s := r.StepScore; s != nil {
		set.Errors = append(set.Errors, hardware.Error{Metric: "step", Data: s.Data + " (median absolute error)",
			Percent: s.MedianAbsError})
	}
	return set
}

// endsOf are the ends of an interval as files have them; without one, they are the value.
func (c *fittedCoefficient) endsOf(i *stat.Interval) []float64 {
	if i == nil {
		return []float64{c.Value, c.Value}
	}
	return []float64{i.Lo, i.Hi}
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
