package calibrate

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"blis/pkg/leastsq"
)

// interval is a time in which one request adds a weight to a profile.
type interval struct{ from, to, weight float64 }

// profile is a sum of intervals over time: how many requests decode, or how many prompt
// tokens are computed, at each instant.
type profile struct {
	at []float64
	// height from at[i] on, and area up to it.
	height, area []float64
}

// newProfile sums intervals; those without a length or with unknown ends are ignored.
func newProfile(intervals []interval) *profile {
	type change struct{ at, by float64 }
	var changes []change
	for _, s := range intervals {
		if s.to > s.from {
			changes = append(changes, change{s.from, s.weight}, change{s.to, -s.weight})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	p := &profile{}
	height, area := 0.0, 0.0
	for i, c := range changes {
		if i > 0 {
			area += height * (c.at - changes[i-1].at)
		}
		height += c.by
		p.at, p.height, p.area = append(p.at, c.at), append(p.height, height), append(p.area, area)
	}
	return p
}

// areaTo is the area up to a time.
func (p *profile) areaTo(t float64) float64 {
	i := sort.SearchFloat64s(p.at, t)
	if i < len(p.at) && p.at[i] == t {
		return p.area[i]
	}
	if i == 0 {
		return 0
	}
	return p.area[i-1] + p.height[i-1]*(t-p.at[i-1])
}

// mean is the mean height between two times.
func (p *profile) mean(from, to float64) float64 {
	if !(to > from) {
		return math.NaN()
	}
	return (p.areaTo(to) - p.areaTo(from)) / (to - from)
}

// peak is the largest height.
func (p *profile) peak() float64 { return slices.Max(append(p.height, 0)) }

// profile sums a weight of the requests of a run between their first and last tokens.
func (r *replay) profile(all []timing, weight func(i int) float64) *profile {
	var decoding []interval
	for i, t := range all {
		at := float64(r.requests[i].ArrivalUS)
		decoding = append(decoding, interval{at + t.ttft, at + t.e2e, weight(i)})
	}
	return newProfile(decoding)
}

func one(int) float64 { return 1 }

// decoding is how many requests decode.
func (r *replay) decoding() *profile { return r.profile(r.measured, one) }

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
		p := r.decoding()
		for i, t := range r.measured {
			at := float64(r.requests[i].ArrivalUS)
			n := p.mean(at+t.ttft, at+t.e2e) / float64(r.engine.replicas)
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

// middle95 sorts values and returns the ends of their middle 95 %, NaN of none.
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
// + β3·context, with β3 given. It holds to about 1 % where prompts are few or short. With
// prompts it also has β1·(prompt tokens computed per token): load that comes with sequences
// may be their prompts. ok is false where there is too little to fit.
func tokenTimes(replays []*replay, prompts bool, beta3 float64) (c coefficients, ok bool) {
	fit := leastsq.Regression{Names: []string{names[beta0], names[beta2]}}
	if prompts {
		fit.Names = append(fit.Names, names[beta1])
	}
	for _, r := range replays {
		sequences, context, n := r.decoding(), r.profile(r.measured, r.contextOf), float64(r.engine.replicas)
		var prefills []interval
		for i, t := range r.measured {
			if q := &r.requests[i]; !r.isRepeat(i) {
				at := float64(q.ArrivalUS) + t.ttft
				prefills = append(prefills, interval{at - prefillUS, at, float64(q.InputTokens) / prefillUS})
			}
		}
		computed := newProfile(prefills)
		for i, t := range r.measured {
			at := float64(r.requests[i].ArrivalUS)
			from, to := at+t.ttft, at+t.e2e
			tpot, m := t.tpot(r.requests[i].OutputTokens), sequences.mean(from, to)
			if !r.fitted[i] || !(tpot > 0) || math.IsNaN(m) {
				continue
			}
			row := []float64{1, m / n}
			if prompts {
				row = append(row, computed.mean(from, to)*tpot/n)
			}
			fit.AddScaled(tpot, 0, tpot-beta3*context.mean(from, to)/n, row...)
		}
	}
	if fit.Len() < 10 {
		return c, false
	}
	x := fit.Fit()
	c.Beta[0], c.Beta[2], c.Beta[3] = x[0], x[1], beta3
	if prompts {
		c.Beta[1] = x[2]
	}
	return c, x[0] > 0 && (!prompts || x[2] > 0)
}
