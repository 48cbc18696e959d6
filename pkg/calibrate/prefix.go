package calibrate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/latency"
	"blis/pkg/leastsq"
	"blis/pkg/recording"
	"blis/pkg/stream"
)

// A shared prefix that a recording does not state is searched for if prompts take less than
// maxPrefillFactor of their kernels' time: fits to servers with known prompts find 0.6 to 1.1. It has
// at least minPrefix tokens.
const (
	maxPrefillFactor = 0.55
	minPrefix        = 64
)

// frontEnd is the prior of alpha[0] where a prefix is searched for, and frontEndSD its standard
// deviation, in µs: without it, a shorter time before the queue and a longer prefix are the same. Tokenizing takes
// cluster.TokenizeUS there: a prefix is tokenized even if its blocks are cached.
const frontEnd, frontEndSD = cluster.FrontEndUS, 4000

// setPrefix makes all prompts of the run begin with the same n tokens.
func (r *replay) setPrefix(n int64) { r.prefix, r.requests = n, r.withPrefix(n) }

// withPrefix is the requests of the run with prompts that begin with the same n tokens.
func (r *replay) withPrefix(n int64) []stream.Request {
	list := slices.Clone(r.requests)
	for i := range list {
		list[i].Prompt = recording.SharedPrefix(list[i].InputTokens, n)
	}
	return list
}

// longestPrefix is the longest prefix that nearly all prompts of the runs can share; 0 if the
// recording or the user says what they share.
func (s *setup) longestPrefix(runs []*replay) int64 {
	if slices.Contains(s.options.Given, "shared-prefix") || !s.deployment.Engine.EnablePrefixCaching {
		return 0
	}
	longest := math.Inf(1)
	for _, r := range runs {
		if r.hasPrompts() {
			return 0
		}
		var lengths []float64
		for _, q := range r.requests {
			lengths = append(lengths, float64(q.InputTokens))
		}
		shortest, _ := middle(lengths, 200)
		longest = min(longest, shortest-1)
	}
	return int64(longest)
}

// hasPrompts reports whether the recording has what prompts share, or says that they hit the cache.
func (r *replay) hasPrompts() bool {
	return r.period > 0 || r.hiddenPrefixes ||
		slices.ContainsFunc(r.requests, func(q stream.Request) bool { return len(q.Prompt) > 0 })
}

// findSharedPrefix fits again with a prefix that all prompts share, where they are computed so much
// faster than their kernels that they must have one.
//
// A prefix and a faster prefill shorten first tokens alike. But a faster prefill shortens those of long
// prompts more, and also the decode steps that compute prompts of others.
func (r *report) findSharedPrefix(ctx context.Context, f *simFit) (*simFit, error) {
	longest := r.setup.longestPrefix(f.replays)
	factor := f.dataOnly.X[atBeta1]
	if f.shape.kernels == nil {
		factor /= f.prior[beta1]
	}
	if longest < minPrefix {
		return f, nil
	}
	if f.shape.kernels != nil && f.known == nil { // the fit takes tokenizing for prefill
		factor -= cluster.TokenizeUS / f.shape.perToken(f.load.context)
	}
	if factor > maxPrefillFactor {
		f.askForPrefix(r.setup, longest)
		return f, nil
	}
	var names []string
	for _, run := range f.replays {
		names = append(names, run.name)
	}
	problem := fmt.Sprintf("%s: first tokens come as if prompts were computed in %.2g of the time of their "+
		"kernels: part of them must have been cached, but the recording does not state shared prefixes",
		strings.Join(names, ", "), factor)
	if f.shape.kernels == nil {
		r.setup.warnf("%s", problem+ask)
		return f, nil
	}
	r.setup.options.progress("searching for a shared prefix")
	p := f.prefixProblem(longest)
	s, err := f.searchPrefix(ctx, p, float64(longest))
	if err != nil {
		return nil, err
	}
	group, n := f.segments(jackknifeSegments)
	at := len(s.X) - 1
	sd := leastsq.StandardError(append(p.Jackknife(s, group, n), s.MCError...), at)
	block := float64(r.setup.deployment.Engine.BlockSize)
	prefix := min(math.Round(s.X[at]/block), math.Floor(float64(longest)/block)) * block
	if prefix < minPrefix || s.X[atBeta1] < maxPrefillFactor {
		r.setup.warnf("%s", problem+ask)
		return f, nil
	}
	half := leastsq.TQuantile(float64(n-1), level) * sd
	r.setup.warnf("%s; a system prompt of %.0f tokens (%.0f to %.0f) explains it and is assumed for all prompts%s",
		problem, prefix, max(0, s.X[at]-half), min(float64(longest), s.X[at]+half), ask)
	for _, run := range f.replays {
		run.setPrefix(int64(prefix))
	}
	for _, h := range r.holdouts {
		if !h.run.hasPrompts() {
			h.run.setPrefix(int64(prefix))
		}
	}
	with := newSimFit(f.replays, f.shape, f.prior, f.load, f.known)
	c := with.coefficientsAt(s.X[:atBeta2+1])
	return with, with.draft(ctx, []coefficients{c})
}

// ask is what the user can do about an unknown prefix.
const ask = "; give --shared-prefix N (0: none), or a column shared_prefix_tokens"

// askForPrefix warns if the kernels take about as long for prompts without the longest prefix that all can
// share, as where a few tokens need all experts: then a recording does not show whether part was cached.
func (f *simFit) askForPrefix(s *setup, longest int64) {
	total, n := int64(0), int64(0)
	for _, run := range f.replays {
		for _, q := range run.requests {
			total, n = total+q.InputTokens, n+1
		}
	}
	prompt := total / n
	if f.shape.kernels == nil || 3*longest < prompt {
		return
	}
	time := func(past int64) float64 {
		own := prompt - past
		return latency.PrefillTime(f.shape.kernels, latency.Batch{Prefill: own, Chunks: 1,
			Pairs: own*past + own*(own+1)/2, Decode: int64(f.load.sequences),
			Context: int64(f.load.sequences * f.load.context)})
	}
	mean, sd := meanAndSD(prefillFactor)
	if with := f.dataOnly.X[atBeta1] * time(0) / time(longest); with < mean+3*sd {
		s.warnf("prompts of %d tokens take the kernels only %.2g times as long as without the first %d: first tokens "+
			"do not show whether these are a shared prefix that was cached%s", prompt, time(0)/time(longest),
			longest, ask)
	}
}

// prefixProblem is the problem of the fit with a prefix as one more parameter, and with priors of what
// a prefix cannot be separated from.
func (f *simFit) prefixProblem(longest int64) *leastsq.Problem {
	p := newSimFit(f.replays, f.shape, f.prior, f.load, f.known).problem
	at := len(p.Parameters)
	p.Scale = f.problem.Scale
	p.Parameters[atBeta2] = f.problem.Parameters[atBeta2]
	if q := &p.Parameters[atAlpha0]; q.PriorSD == 0 {
		q.Prior, q.PriorSD = frontEnd, frontEndSD
	}
	p.Parameters = append(p.Parameters, leastsq.Parameter{Max: float64(longest), Step: float64(longest) / 16,
		MaxStep: float64(longest) / 4})
	p.Residuals = func(ctx context.Context, x []float64) ([]float64, error) {
		c := f.coefficientsAt(x[:at])
		if f.known == nil {
			c[alpha1] = cluster.TokenizeUS
		}
		m, err := f.shape.model(c, nil)
		if err != nil {
			return nil, err
		}
		var residuals []float64
		for _, run := range f.replays {
			simulated, err := run.simulateRequests(ctx, run.withPrefix(int64(x[at])), m)
			if err != nil {
				return nil, err
			}
			residuals = append(residuals, run.residuals(simulated)...)
		}
		return residuals, nil
	}
	return p
}

// searchPrefix searches from several prefixes up to the longest.
func (f *simFit) searchPrefix(ctx context.Context, p *leastsq.Problem, longest float64) (*leastsq.Solution, error) {
	var best *leastsq.Solution
	for _, c := range []coefficients{f.value, f.initialGuesses()[0]} {
		c[beta1], c[alpha0] = f.prior[beta1], frontEnd
		if f.known != nil {
			c[alpha0] = f.known[alpha0]
		}
		for _, share := range []float64{0.5, 0.9} {
			s, err := p.Explore(ctx, append(f.parametersAt(c), share*longest), 3, best)
			if err != nil {
				return nil, err
			}
			if best == nil || s.Loss < best.Loss {
				best = s
			}
		}
	}
	return p.Polish(ctx, best)
}
