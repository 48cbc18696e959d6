package calibrate

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// span is a time in which one request counts for so much.
type span struct{ from, to, weight float64 }

// profile is a sum of spans over time: how many requests decode, or how many
// prompt tokens are computed, at each instant.
type profile struct {
	at []float64
	// height from at[i] on, and area up to it.
	height, area []float64
}

// profileOf adds up spans; those without a length or with unknown ends are left
// out.
func profileOf(spans []span) *profile {
	type change struct{ at, by float64 }
	var changes []change
	for _, s := range spans {
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

// until is the area up to a time.
func (p *profile) until(t float64) float64 {
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
	return (p.until(to) - p.until(from)) / (to - from)
}

// peak is the largest height.
func (p *profile) peak() float64 {
	most := 0.0
	for _, h := range p.height {
		most = max(most, h)
	}
	return most
}

// decoding counts, over time, the requests between their first and their last token.
func (r *run) decoding() *profile {
	var spans []span
	for i, s := range r.measured {
		at := float64(r.requests[i].ArrivalUS)
		spans = append(spans, span{at + s.ttft, at + s.e2e, 1})
	}
	return profileOf(spans)
}

// load is what the used requests of runs decoded beside, on one replica: the mean
// number of sequences and its standard deviation, both over time, and the mean
// context of each; and between what numbers the middle 95 % of requests decoded.
type load struct{ sequences, scatter, context, least, most float64 }

func loadOf(runs []*run) load {
	var n, sum, squares, context, requests float64
	var beside []float64
	for _, r := range runs {
		p := r.decoding()
		for i, s := range r.measured {
			at := float64(r.requests[i].ArrivalUS)
			m := p.mean(at+s.ttft, at+s.e2e) / float64(r.replicas)
			if !r.used[i] || !(m > 0) {
				continue
			}
			beside = append(beside, m)
			n += 1 / m // as many requests come in a time as there are
			sum++
			squares += m
			context += float64(r.requests[i].InputTokens) + float64(r.requests[i].OutputTokens)/2
			requests++
		}
	}
	if n == 0 {
		return load{math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	mean := sum / n
	least, most := extent(beside)
	return load{mean, math.Sqrt(max(0, squares/n-mean*mean)), context / requests, least, most}
}

// holding is how many tokens all replicas held in their caches over time, as far as
// answers overlap: half of an answer is there on the average. Prompts that share
// tokens are not known, and count each.
func (r *run) holding(all []seen) *profile {
	var spans []span
	for i, s := range all {
		q := &r.requests[i]
		at := float64(q.ArrivalUS)
		spans = append(spans, span{at + s.ttft, at + s.e2e, float64(q.InputTokens) + float64(q.OutputTokens)/2})
	}
	return profileOf(spans)
}

// held is the most tokens that one replica held at one time.
func (r *run) held() float64 { return r.holding(r.measured).peak() / float64(r.replicas) }

// repeats reports whether a prompt is that of an earlier request, and was cached.
func (r *run) repeats(i int) bool { return r.period > 0 && i >= r.period }

// prefillUS is how long before its first token a prompt is taken to be computed, in µs: the
// plane needs the mean over seconds alone.
const prefillUS = 30e3

// plane is TPOT = β0 + β1·(prompt tokens computed per token) + β2·(mean number
// decoding) + β3·(their context), with β3 given, over the used requests of runs: what
// a line takes for sequences may be prompts, which come with them. ok is false where
// there are too few, or hardly a prompt that was computed.
func plane(runs []*run, beta3 float64) (c Coefficients, ok bool) {
	r := regression{names: []string{names[beta0], names[beta1], names[beta2]}}
	for _, run := range runs {
		p, replicas := run.decoding(), float64(run.replicas)
		var prompts, contexts []span
		for i, s := range run.measured {
			q, at := &run.requests[i], float64(run.requests[i].ArrivalUS)
			contexts = append(contexts, span{at + s.ttft, at + s.e2e, float64(q.InputTokens) + float64(q.OutputTokens)/2})
			if !run.repeats(i) {
				prompts = append(prompts, span{at + s.ttft - prefillUS, at + s.ttft, float64(q.InputTokens) / prefillUS})
			}
		}
		computed, context := profileOf(prompts), profileOf(contexts)
		for i, s := range run.measured {
			from, to := float64(run.requests[i].ArrivalUS)+s.ttft, float64(run.requests[i].ArrivalUS)+s.e2e
			t, n := s.tpot(run.requests[i].OutputTokens), p.mean(from, to)
			if run.used[i] && t > 0 && !math.IsNaN(n) {
				us := t - beta3*context.mean(from, to)/replicas
				r.addIn(t, 0, us, 1, computed.mean(from, to)*t/replicas, n/replicas)
			}
		}
	}
	if len(r.rows) < 10 {
		return c, false
	}
	x := r.fit()
	copy(c.Beta[:], x)
	c.Beta[3] = beta3
	return c, x[0] > 0 && x[1] > 0
}

// line is TPOT = b0 + b2·(mean number decoding), over the used requests of runs: it
// holds to about 1 % where prompts are few or short beside answers, and is where
// the search starts. ok is false where concurrency hardly varies.
func line(runs []*run) (b0, b2 float64, ok bool) {
	r := regression{names: []string{"b0", "b2"}}
	for _, run := range runs {
		p := run.decoding()
		for i, s := range run.measured {
			at := float64(run.requests[i].ArrivalUS)
			t := s.tpot(run.requests[i].OutputTokens)
			if n := p.mean(at+s.ttft, at+s.e2e); run.used[i] && t > 0 && !math.IsNaN(n) {
				r.add(0, t, 1, n/float64(run.replicas))
			}
		}
	}
	if len(r.rows) < 10 {
		return 0, 0, false
	}
	x := r.fit()
	return x[0], x[1], x[0] > 0
}
