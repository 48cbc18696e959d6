package calibrate

import (
	"fmt"
	"math"

	"blis/pkg/stream"
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
	for k, r := range runs {
		companies := companiesOf(r)
		used, seen := 0, 0
		for i := range r.outcomes {
			if r.used[i] && timed(&r.outcomes[i]) {
				used++
			}
		}
		for i, o := range r.outcomes {
			if !timed(&o) {
				continue
			}
			into, block := &f.held, 0
			if r.used[i] {
				into, block = &f.decode, k*spanBlocks+seen*spanBlocks/used
				seen++
			}
			beside := companies[placeOf(&o)]
			input, output := float64(r.requests[i].InputTokens), float64(r.requests[i].OutputTokens)
			start, first, last := float64(o.ScheduledUS), float64(o.FirstTokenUS), float64(o.CompletedUS)
			add := func(from, to, steps, tokens float64) {
				into.add(block, to-from, steps, tokens, steps*beside.decode.mean(from, to), steps*beside.context.mean(from, to))
			}
			if output > 1 && last > first {
				add(first, last, output-1, beside.prefill.mean(first, last)*(last-first))
				d := beside.decode.mean(first, last)
				f.beside = append(f.beside, d)
				f.overlap, f.scatter, f.context, n = f.overlap+d, f.scatter+d*d, f.context+input+output/2, n+1
			}
			if first > start {
				tokens := beside.prefill.mean(start, first) * (first - start)
				add(start, first, math.Max(1, math.Ceil(tokens/float64(budget)-0.05)), tokens)
			}
			if o.EnqueuedUS != stream.Never && r.arrivals && r.used[i] {
				f.alpha.addIn(1000, block, float64(o.EnqueuedUS-o.ArrivalUS), 1, input)
			}
			f.inputs[0], f.inputs[1] = math.Min(f.inputs[0], input), math.Max(f.inputs[1], input)
		}
	}
	f.overlap, f.context = f.overlap/n, f.context/n
	f.scatter = math.Sqrt(max(0, f.scatter/n-f.overlap*f.overlap))
	return f
}

// place is a replica; its index is stream.Nowhere where a recording does not say it.
type place struct {
	deployment string
	replica    stream.Index
}

func placeOf(o *stream.Outcome) place { return place{o.Deployment, o.Replica} }

// replicasOf is how many replicas the outcomes of a run name, 0 where they name none.
func replicasOf(outcomes []stream.Outcome) int {
	most := stream.Nowhere
	for i := range outcomes {
		most = max(most, outcomes[i].Replica)
	}
	return int(most) + 1
}

// company is what a replica computed at each instant: how many sequences decode, their
// context, and the tokens of prompts in a µs.
type company struct{ decode, context, prefill *profile }

// companiesOf adds up, for each replica of a run, all requests that ran there, as far as
// their times are known. Where it is not known where they ran, each ran in equal parts on
// all replicas.
func companiesOf(r *run) map[place]company {
	at := map[place][]int{}
	for i := range r.outcomes {
		p := placeOf(&r.outcomes[i])
		at[p] = append(at[p], i)
	}
	companies := map[place]company{}
	for p, requests := range at {
		part := 1.0
		if p.replica == stream.Nowhere {
			part = 1 / float64(r.replicas)
		}
		companies[p] = r.company(requests, part)
	}
	return companies
}

// company adds up requests, of each of which a part ran: also those that were
// interrupted, or did not complete. When one waited again after an interruption no
// recording says: it counts all along by the part of the time that it did not. What was
// computed again then does not count.
func (r *run) company(requests []int, part float64) company {
	var decoding, contexts, prefills []span
	for _, i := range requests {
		o := &r.outcomes[i]
		input, output := float64(r.requests[i].InputTokens), float64(r.requests[i].OutputTokens)
		start, first, end := o.ScheduledUS, o.FirstTokenUS, o.CompletedUS
		if end == stream.Never {
			end = o.EndedUS
		}
		if start == stream.Never && first == stream.Never || end == stream.Never {
			continue
		}
		if first == stream.Never {
			// It ended in its prefill, or its first token was not noted and was soon.
			first = end
			if o.State == stream.StateCompleted {
				first = start
			}
		}
		if start != stream.Never {
			computed := part * (input - float64(o.CachedTokens))
			prefills = append(prefills, span{float64(start), float64(first), computed / max(1, float64(first-start))})
		}
		ran := part * max(0, 1-float64(o.PreemptedUS)/max(1, float64(end-first)))
		decoding = append(decoding, span{float64(first), float64(end), ran})
		contexts = append(contexts, span{float64(first), float64(end), ran * (input + output/2)})
	}
	return company{profileOf(decoding), profileOf(contexts), profileOf(prefills)}
}

// timed reports whether a request has the times of both phases, and was not
// interrupted.
func timed(o *stream.Outcome) bool {
	return o.State == stream.StateCompleted && o.Preemptions == 0 && o.ScheduledUS != stream.Never && o.FirstTokenUS != stream.Never && o.CompletedUS != stream.Never
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
	if least < 1.01 {
		least = 0 // a request alone is fitted to: no replica has less, but nothing
	}
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
	x := f.alpha.fit()
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
