package calibrate

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/hardware"
	"blis/pkg/leastsq"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// spanBlocks is the number of blocks of time that a run's requests are divided into.
const spanBlocks = 30

// spanData is what a server's own times give: how long the prefill and the decode of each
// request took, and what else the replica computed meanwhile.
type spanData struct {
	fit, heldOut leastsq.Regression // phases of prefill and decode over beta[0..3]
	alpha        leastsq.Regression
	inputs       hardware.Span // of the requests of alpha
	load         load
}

// newSpanData reconstructs what was computed at each instant from the spans of all requests.
// A phase of n steps, among a mean of d decoding sequences with a total context of c, in
// which p prompt tokens were computed, takes
//
//	n·(β0 + β2·d + β3·c) + β1·p
//
// A decode phase has a step for each token after the first, a prefill phase as many as the
// prompt tokens computed then fill token budgets.
func newSpanData(runs []*replay, budget int) *spanData {
	d := &spanData{}
	d.fit.Names, d.alpha.Names = names[beta0:], names[:alpha2]
	var concurrent []float64
	sum, squares, contexts := 0.0, 0.0, 0.0
	for k, r := range runs {
		work := r.replicaWork()
		fitted, seen := 0, 0
		for i := range r.outcomes {
			if r.fitted[i] && hasPhases(&r.outcomes[i]) {
				fitted++
			}
		}
		for i := range r.outcomes {
			o := &r.outcomes[i]
			if !hasPhases(o) {
				continue
			}
			into, block := &d.heldOut, 0
			if r.fitted[i] {
				into, block = &d.fit, k*spanBlocks+seen*spanBlocks/fitted
				seen++
			}
			w := work[replicaOf(o)]
			add := func(from, to float64, steps func(tokens float64) float64) (sequences float64) {
				tokens, sequences := w.prefill.Mean(from, to)*(to-from), w.decode.Mean(from, to)
				n := steps(tokens)
				into.Add(block, to-from, n, tokens, n*sequences, n*w.context.Mean(from, to))
				return sequences
			}
			output := float64(r.requests[i].OutputTokens)
			start, first, last := float64(o.ScheduledUS), float64(o.FirstTokenUS), float64(o.CompletedUS)
			if output > 1 && last > first {
				n := add(first, last, func(float64) float64 { return output - 1 })
				concurrent = append(concurrent, n)
				sum, squares, contexts = sum+n, squares+n*n, contexts+r.contextOf(i)
			}
			if first > start {
				add(start, first, func(tokens float64) float64 {
					return max(1, math.Ceil(tokens/float64(budget)-0.05))
				})
			}
			if o.EnqueuedUS != stream.Never && r.hasArrivals && r.fitted[i] {
				input := float64(r.requests[i].InputTokens)
				d.inputs.Widen(input)
				d.alpha.AddScaled(1000, block, float64(o.EnqueuedUS-o.ArrivalUS), 1, input)
			}
		}
	}
	n := float64(len(concurrent))
	d.load = load{sequences: sum / n, context: contexts / n}
	d.load.sd = math.Sqrt(max(0, squares/n-d.load.sequences*d.load.sequences))
	if d.load.lo, d.load.hi = middle(concurrent, 40); d.load.lo < 1.01 {
		d.load.lo = 0 // a single sequence is fitted: no replica with work has fewer
	}
	return d
}

// replicaID identifies a replica; its index is stream.NoIndex if it is not recorded.
type replicaID struct {
	deployment string
	replica    stream.Index
}

func replicaOf(o *stream.Outcome) replicaID { return replicaID{o.Deployment, o.Replica} }

// replicasOf is how many replicas outcomes name, 0 if none.
func replicasOf(outcomes []stream.Outcome) int {
	last := stream.NoIndex
	for i := range outcomes {
		last = max(last, outcomes[i].Replica)
	}
	return int(last) + 1
}

// work is what a replica computes at each instant: decoding sequences, their total context,
// and prompt tokens per µs.
type work struct{ decode, context, prefill *stat.Profile }

// replicaWork sums the work of each replica of a run, also that of requests that were preempted
// or did not complete, as far as times are known. Where the replica is not recorded, each request
// runs in equal parts on all of them. No recording has when a preempted request waited: it counts
// all along by the share of the time that it ran. What it recomputed does not count.
func (r *replay) replicaWork() map[replicaID]work {
	spans, all := map[replicaID]*[3]stat.Spans{}, map[replicaID]work{}
	for i := range r.outcomes {
		o := &r.outcomes[i]
		start, first, end := o.ScheduledUS, o.FirstTokenUS, o.CompletedUS
		if end == stream.Never {
			end = o.EndedUS
		}
		if start == stream.Never && first == stream.Never || end == stream.Never {
			continue
		}
		if first == stream.Never {
			// It ended in its prefill, or its first token was early and not recorded.
			first = end
			if o.State == stream.StateCompleted {
				first = start
			}
		}
		id, part := replicaOf(o), 1.0
		if id.replica == stream.NoIndex {
			part = 1 / float64(r.engine.replicas)
		}
		if spans[id] == nil {
			spans[id] = new([3]stat.Spans)
		}
		of := spans[id]
		ran := part * max(0, 1-float64(o.PreemptedUS)/max(1, float64(end-first)))
		of[0].Add(float64(first), float64(end), ran)
		of[1].Add(float64(first), float64(end), ran*r.contextOf(i))
		if start != stream.Never {
			computed := part * (float64(r.requests[i].InputTokens) - float64(o.CachedTokens))
			of[2].Add(float64(start), float64(first), computed/max(1, float64(first-start)))
		}
	}
	for id, of := range spans {
		all[id] = work{of[0].Profile(), of[1].Profile(), of[2].Profile()}
	}
	return all
}

// hasPhases reports whether a request has the times of both phases and was not preempted.
func hasPhases(o *stream.Outcome) bool {
	return o.State == stream.StateCompleted && o.Preemptions == 0 && o.ScheduledUS != stream.Never &&
		o.FirstTokenUS != stream.Never && o.CompletedUS != stream.Never
}

// fitSpans fits α and β to the server's own times.
func (r *report) fitSpans(runs []*replay) error {
	s := r.setup
	d := newSpanData(runs, s.deployment.Engine.MaxNumBatchedTokens)
	if d.fit.Len() < 20 {
		return fmt.Errorf("only %d phases of prefill and decode have times: at least 20 are needed", d.fit.Len())
	}
	data := fmt.Sprintf("%d held-out phases of prefill and decode", d.heldOut.Len())
	r.regress(&d.fit, &d.heldOut, s.prior(d.load), data)
	r.fitAlpha(d)
	r.fit.load = d.load
	r.fit.method = fmt.Sprintf("non-negative regression with Huber weights on the server's times of %d phases of "+
		"prefill and decode, with concurrent work reconstructed from overlaps; intervals from a jackknife", d.fit.Len())
	return nil
}

// fitAlpha fits the time before the queue.
func (r *report) fitAlpha(d *spanData) {
	f := &r.fit
	f.source[alpha2] = "0: not identifiable without the times when tokens left the engine"
	if d.alpha.Len() < 20 {
		f.source[alpha0] = "0: unknown without times of arrival and of queueing"
		f.source[alpha1] = f.source[alpha0]
		r.setup.warnf("alpha[0] and alpha[1] are not identifiable without times of arrival and of queueing: " +
			"they are 0, and simulated TTFT is too short by them")
		return
	}
	x := d.alpha.Fit()
	copy(f.ci[:alpha2], d.alpha.Intervals(x, level))
	copy(f.uncertainty[:alpha2], f.ci[:alpha2])
	copy(f.value[:], x)
	f.source[alpha0], f.source[alpha1] = "fitted: TTFT minus queue and prefill", "fitted: the same, by input tokens"
	if x[1] == 0 {
		f.source[alpha1] = negative
	}
	if id := d.alpha.Identify(); len(id.Not) > 0 {
		r.setup.warnf("alpha[0] and alpha[1] are not identifiable separately: inputs have only %g to %g tokens",
			d.inputs[0], d.inputs[1])
	}
}

// profile sums a weight of the requests of a run between their first and last tokens.
func (r *replay) profile(all []timing, weight func(i int) float64) *stat.Profile {
	var spans stat.Spans
	for i, t := range all {
		at := float64(r.requests[i].ArrivalUS)
		spans.Add(at+t.ttft, at+t.e2e, weight(i))
	}
	return spans.Profile()
}

func unitWeight(int) float64 { return 1 }

// decodingProfile returns how many requests decode at each instant.
func (r *replay) decodingProfile() *stat.Profile { return r.profile(r.measured, unitWeight) }

// contextOf is a request's mean context while it decodes.
func (r *replay) contextOf(i int) float64 {
	return float64(r.requests[i].InputTokens) + float64(r.requests[i].OutputTokens)/2
}

// load is the load of a replica: mean and standard deviation over time of the number of
// decoding sequences, their mean context, the ratio of its 90th percentile to the 10th, and the
// numbers of sequences among which the middle 95 % of requests decoded.
type load struct{ sequences, sd, context, contextRatio, lo, hi float64 }

// loadOf is the load of the fitted requests; NaNs if none has token times.
func loadOf(replays []*replay) (l load) {
	time, sum := 0.0, 0.0
	var concurrent, contexts []float64
	for _, r := range replays {
		p := r.decodingProfile()
		for i, t := range r.measured {
			at := float64(r.requests[i].ArrivalUS)
			n := p.Mean(at+t.ttft, at+t.e2e) / float64(r.engine.replicas)
			if !r.fitted[i] || !(n > 0) {
				continue
			}
			concurrent, contexts = append(concurrent, n), append(contexts, r.contextOf(i))
			time += 1 / n // as many requests arrive in a time as there are
			sum += n
		}
	}
	l.sequences = float64(len(concurrent)) / time
	l.sd = math.Sqrt(max(0, sum/time-l.sequences*l.sequences))
	l.context = stat.Mean(contexts)
	low, high := middle(contexts, 10)
	l.contextRatio = high / low
	l.lo, l.hi = middle(concurrent, 40)
	return l
}

// middle sorts values and returns the ends of the middle ones, without one of n at either side; NaN
// if there are none.
func middle(values []float64, n int) (lo, hi float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(values)
	last := len(values) - 1
	return values[last/n], values[last-last/n]
}

// prefillUS is the assumed time to compute a prompt before its first token, in µs: only the
// mean over seconds matters.
const prefillUS = 30e3

// tokenTimes regresses TPOT on the mean number of decoding sequences: TPOT = β0 + β2·sequences
// + β3·context, with β3 = perContext. It holds to about 1 % where prompts are few or short. With
// prompts it also has β1·(prompt tokens computed per token): load that comes with sequences
// may be their prompts. ok is false where there is too little to fit.
func tokenTimes(replays []*replay, prompts bool, perContext float64) (c coefficients, ok bool) {
	fit := &leastsq.Regression{Names: []string{names[beta0], names[beta2], names[beta1]}}
	for _, r := range replays {
		sequences, context, n := r.decodingProfile(), r.profile(r.measured, r.contextOf), float64(r.engine.replicas)
		var prefills stat.Spans
		for i, t := range r.measured {
			if q := &r.requests[i]; !r.isRepeat(i) {
				at := float64(q.ArrivalUS) + t.ttft
				prefills.Add(at-prefillUS, at, float64(q.InputTokens)/prefillUS)
			}
		}
		computed := prefills.Profile()
		for i, t := range r.measured {
			at := float64(r.requests[i].ArrivalUS)
			from, to := at+t.ttft, at+t.e2e
			tpot, m := t.tpot(r.requests[i].OutputTokens), sequences.Mean(from, to)
			if !r.fitted[i] || !(tpot > 0) || math.IsNaN(m) {
				continue
			}
			fit.AddScaled(tpot, 0, tpot-perContext*context.Mean(from, to)/n, 1, m/n, computed.Mean(from, to)*tpot/n)
		}
	}
	if fit.Len() < 10 {
		return c, false
	}
	if !prompts {
		fit = fit.WithoutLast(0)
	}
	x := fit.Fit()
	c[beta0], c[beta2], c[beta3] = x[0], x[1], perContext
	if prompts {
		c[beta1] = x[2]
	}
	return c, x[0] > 0 && (!prompts || x[2] > 0)
}
