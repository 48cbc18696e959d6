package calibrate

import (
	"math"
	"slices"

	"blis/pkg/leastsq"
	"blis/pkg/stat"
)

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
// decoding sequences, their mean context, and the numbers of sequences among which the
// middle 95 % of requests decoded.
type load struct{ sequences, sd, context, lo, hi float64 }

// loadOf is the load of the fitted requests; NaNs if none has token times.
func loadOf(replays []*replay) load {
	var time, requests, sum, context float64
	var concurrent []float64
	for _, r := range replays {
		p := r.decodingProfile()
		for i, t := range r.measured {
			at := float64(r.requests[i].ArrivalUS)
			n := p.Mean(at+t.ttft, at+t.e2e) / float64(r.engine.replicas)
			if !r.fitted[i] || !(n > 0) {
				continue
			}
			concurrent = append(concurrent, n)
			time += 1 / n // as many requests arrive in a time as there are
			requests++
			sum += n
			context += r.contextOf(i)
		}
	}
	if requests == 0 {
		return load{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	mean := requests / time
	lo, hi := middle95(concurrent)
	return load{mean, math.Sqrt(max(0, sum/time-mean*mean)), context / requests, lo, hi}
}

// middle95 sorts values and returns the ends of their middle 95 %, NaN if there are none.
func middle95(values []float64) (lo, hi float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(values)
	n := len(values) - 1
	return values[n/40], values[n-n/40]
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
