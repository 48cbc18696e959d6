package calibrate

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/record"
)

// spanBlocks is into how many blocks of time the requests of spans are divided.
const spanBlocks = 30

// phases are what a server's own times say: for each request, how long its prefill
// and its decode took, and what else was computed then.
type phases struct {
	decode  regression // over beta[0..3], of requests that the fit sees
	alpha   regression
	overlap float64 // mean number decoding, and its standard deviation
	scatter float64
	context float64
	beside  []float64  // the number that each request decoded beside
	inputs  [2]float64 // least and largest
	held    regression // as decode, of requests held back
}

// phasesOf reconstructs what was computed at each instant, from the spans of all
// requests. A phase that took n steps, beside a mean of d decoding sequences with a
// context of c in all, and in which p prompt tokens were computed, took
//
//	n·(β0 + β2·d + β3·c) + β1·p
//
// A decode phase has a step for each token after the first; a prefill phase as many
// as the tokens of prompts then fill budgets.
func phasesOf(runs []*run, budget int) *phases {
	f := &phases{inputs: [2]float64{math.Inf(1), 0}}
	f.decode.names = []string{names[beta0], names[beta1], names[beta2], names[beta3]}
	f.alpha.names = []string{names[alpha0], names[alpha1]}
	n := 0.0
	for _, r := range runs {
		var decoding, contexts, prefills []span
		for i, o := range r.outcomes {
			if !timed(&o) {
				continue
			}
			first, last := float64(o.FirstTokenUS), float64(o.CompletedUS)
			input, output := float64(r.requests[i].InputTokens), float64(r.requests[i].OutputTokens)
			decoding = append(decoding, span{first, last, 1})
			contexts = append(contexts, span{first, last, input + output/2})
			start := float64(o.ScheduledUS)
			prefills = append(prefills, span{start, first, (input - float64(o.CachedTokens)) / max(1, first-start)})
		}
		decode, context, prefill := profileOf(decoding), profileOf(contexts), profileOf(prefills)
		for i, o := range r.outcomes {
			if !timed(&o) {
				continue
			}
			block := i * spanBlocks / len(r.outcomes)
			input, output := float64(r.requests[i].InputTokens), float64(r.requests[i].OutputTokens)
			start, first, last := float64(o.ScheduledUS), float64(o.FirstTokenUS), float64(o.CompletedUS)
			into := &f.decode
			if !r.used[i] {
				into = &f.held
			}
			if output > 1 && last > first {
				steps, tokens := output-1, prefill.mean(first, last)*(last-first)
				into.add(block, last-first, steps, tokens, steps*decode.mean(first, last), steps*context.mean(first, last))
				f.overlap += decode.mean(first, last)
				f.beside = append(f.beside, decode.mean(first, last))
				f.scatter += decode.mean(first, last) * decode.mean(first, last)
				f.context += input + output/2
				n++
			}
			if first > start {
				tokens := prefill.mean(start, first) * (first - start)
				steps := math.Max(1, math.Ceil(tokens/float64(budget)-0.05))
				into.add(block, first-start, steps, tokens, steps*decode.mean(start, first), steps*context.mean(start, first))
			}
			if o.EnqueuedUS != record.Never && r.arrivals && r.used[i] {
				f.alpha.addIn(1000, block, float64(o.EnqueuedUS-o.ArrivalUS), 1, input)
			}
			f.inputs[0], f.inputs[1] = math.Min(f.inputs[0], input), math.Max(f.inputs[1], input)
		}
	}
	f.overlap, f.context = f.overlap/n, f.context/n
	f.scatter = math.Sqrt(max(0, f.scatter/n-f.overlap*f.overlap))
	return f
}

// timed reports whether a request has the times of both phases, and was not
// interrupted.
func timed(o *record.Outcome) bool {
	return o.State == record.StateCompleted && o.Preemptions == 0 && o.ScheduledUS != record.Never && o.FirstTokenUS != record.Never && o.CompletedUS != record.Never
}

// without is the regression with the coefficient of a column given.
func (r *regression) without(column int, value float64) *regression {
	out := &regression{blocks: r.blocks, scales: r.scales}
	for k, n := range r.names {
		if k != column {
			out.names = append(out.names, n)
		}
	}
	for i, row := range r.rows {
		var rest []float64
		for k, v := range row {
			if k != column {
				rest = append(rest, v)
			}
		}
		out.rows = append(out.rows, rest)
		out.times = append(out.times, r.times[i]-value*row[column])
	}
	return out
}

// fromSpans fits α and β to the server's own times.
func (r *Report) fromSpans(runs []*run) error {
	s := r.setup
	f := phasesOf(runs, s.deployment.Engine.MaxNumBatchedTokens)
	if len(f.decode.rows) < 20 {
		return fmt.Errorf("only %d phases of prefill and decode have times; 20 are the least to fit to", len(f.decode.rows))
	}
	p := s.prior(load{sequences: f.overlap, context: f.context})
	r.regress(&f.decode, &f.held, p, fmt.Sprintf("%d phases of prefill and decode held back", len(f.held.rows)))
	r.fitAlpha(f)
	least, most := extent(f.beside)
	r.fit.load = load{f.overlap, f.scatter, f.context, least, most}
	r.fit.method = fmt.Sprintf("regression on the server's own times of prefill and decode (%d phases), with what ran beside reconstructed from their overlaps; coefficients not negative, errors weighed robustly (Huber); intervals by resampling blocks of time", len(f.decode.rows))
	return nil
}

// alphaFromSpans takes α from spans where β is known from steps.
func (r *Report) alphaFromSpans(runs []*run) error {
	r.fitAlpha(phasesOf(runs, r.setup.deployment.Engine.MaxNumBatchedTokens))
	return nil
}

// fitAlpha fits what is before the queue.
func (r *Report) fitAlpha(f *phases) {
	r.fit.from[alpha2] = "0: no recording says when tokens left the engine and when they came"
	if len(f.alpha.rows) < 20 {
		r.fit.from[alpha0] = "unknown, taken as 0: no recording has both the arrival and the begin of the queue"
		r.fit.from[alpha1] = r.fit.from[alpha0]
		r.setup.warnf("alpha[0] and alpha[1] cannot be told: no recording says when requests arrived and when the engine's queue had them; they are taken as 0, and simulated TTFT is too short by what they are")
		return
	}
	x := f.alpha.fit(always)
	intervals := f.alpha.intervals(x, r.setup.options.Seed)
	r.fit.Alpha[0], r.fit.Alpha[1] = x[0], x[1]
	r.fit.intervals[alpha0], r.fit.intervals[alpha1] = intervals[alpha0], intervals[alpha1]
	r.fit.from[alpha0], r.fit.from[alpha1] = "fitted: TTFT less queue and prefill", "fitted: the same, by input tokens"
	if x[1] == 0 {
		r.fit.from[alpha1] = "0: fitted, it would be negative"
	}
	id := identify(f.alpha.names, f.alpha.normal())
	if len(id.Confounded) > 0 {
		r.setup.warnf("alpha[0] and alpha[1] cannot be told apart: inputs of %g to %g tokens are too much alike", f.inputs[0], f.inputs[1])
	}
}

// regress fits β to a regression over beta[0..3]. Beta[3] is what physics says of it,
// unless the data say better what was held back, by 2 % of its error. What is held back
// has a name, by which its score is told.
func (r *Report) regress(all, held *regression, p prior, name string) {
	seed := r.setup.options.Seed
	fixed := all.without(3, p.Beta[3])
	x := fixed.fit(always)
	id := identify(fixed.names, fixed.normal())
	intervals := append(fixed.intervals(x, seed), Interval{p.Beta[3], p.Beta[3]})
	x = append(x, p.Beta[3])
	r.fit.from[beta0], r.fit.from[beta1], r.fit.from[beta2] = "fitted", "fitted", "fitted"
	r.fit.from[beta3] = "physics: the bytes of a token's keys and values on one GPU over its memory's bandwidth"
	if len(held.rows) > 20 {
		free := all.fit(always)
		if a, b := deviation(held.errors(free)), deviation(held.errors(x)); a < 0.98*b {
			x, intervals, id = free, all.intervals(free, seed), identify(all.names, all.normal())
			r.fit.from[beta3] = fmt.Sprintf("fitted: it foretells what was held back better than physics does (%.3g), with errors of %.2g %% instead of %.2g %%", p.Beta[3], 100*a, 100*b)
		}
	}
	copy(r.fit.Beta[:], x)
	copy(r.fit.intervals[beta0:], intervals)
	r.fit.id = id
	if len(id.Confounded) > 0 {
		r.fallBack(fixed, p)
	}
	if len(held.rows) > 0 {
		r.StepScore = stepScore(name, held.errors(r.fit.Beta[:]))
	}
}

// fallBack holds what the data cannot tell apart to the prior: each coefficient of
// such a direction counts as measured by it, with the weight of a tenth of the rows'
// root. Where the data do tell, that is nothing.
func (r *Report) fallBack(fixed *regression, p prior) {
	more := *fixed
	more.rows, more.times, more.scales, more.blocks = slices.Clone(more.rows), slices.Clone(more.times), slices.Clone(more.scales), slices.Clone(more.blocks)
	weight := math.Sqrt(float64(len(fixed.rows))) / 10
	for k, name := range fixed.names {
		if value := p.Beta[k]; r.fit.id.has(name) && value > 0 {
			row := make([]float64, len(fixed.names))
			row[k] = weight
			more.addIn(value, 0, weight*value, row...)
			r.fit.from[beta0+k] = fmt.Sprintf("the data and a roofline's %.4g together: the data alone cannot tell it from the others", value)
		}
	}
	x := more.fit(always)
	copy(r.fit.Beta[:3], x)
	copy(r.fit.intervals[beta0:beta3], more.intervals(x, r.setup.options.Seed))
}
