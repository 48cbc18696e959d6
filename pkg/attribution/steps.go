package attribution

import (
	"math"
)

// stepTimes are what steps take: µs, for each prompt token and for each sequence that decodes.
type stepTimes struct{ fixed, token, sequence float64 }

// measureSteps finds runStats.steps: those of the configuration where they are linear, else a fit to the TPOTs of the
// requests of the deployment.
func (a *Analyzer) measureSteps() {
	fits := map[string]*stepFit{}
	for _, r := range a.requests.all() {
		tpot := a.tpotMS(r)
		if tpot == 0 || r.replica == missing {
			continue
		}
		id := a.topology.replicas[r.replica].deployment
		if fits[id] == nil {
			fits[id] = &stepFit{}
		}
		fits[id].add(r.decoding().features(), tpot)
	}
	a.stats.steps = map[string]stepTimes{}
	for i := range a.topology.Deployments {
		d := &a.topology.Deployments[i]
		b, fit := d.Latency.BetaUS, fits[d.ID]
		switch {
		case d.Latency.Model == "linear" && len(b) > 2:
			a.stats.steps[d.ID] = stepTimes{b[0], b[1], b[2]}
		case fit != nil && fit.n >= minFitted:
			c := fit.coefficients()
			a.stats.steps[d.ID] = stepTimes{1000 * c[0], 1000 * c[2], 1000 * c[1]}
		}
	}
}

// measureInterference finds for the requests of a replica how many prompt tokens of others it computed while they
// decoded, by the progress of all prefills, and runStats.prefillRates.
func (a *Analyzer) measureInterference(n int32, requests []*request, all *progress) {
	var prefills prefillTotals
	var begun, ended nearby
	for _, r := range requests {
		if r.scheduled() == never {
			continue
		}
		if prefills.add(r); !r.shared && r.firstToken() != never && r.ended() != never {
			r.evidence.promptsMeanwhile = all.until(r.ended(), &ended) - all.until(r.firstToken(), &begun)
		}
	}
	a.stats.prefillRates[n] = prefills.rate()
}

// prefillTotals are the prompt tokens that a replica computed, and when.
type prefillTotals struct {
	span
	tokens float64
}

// add adds those of a request that entered a batch.
func (p *prefillTotals) add(r *request) {
	p.span.add(r.scheduled(), max(r.scheduled(), r.firstTokenOrEnd()))
	p.tokens += uncachedTokens(r)
}

// rate is the number of tokens for each µs, 0 without any time.
func (p *prefillTotals) rate() float64 {
	if p.until <= p.from {
		return 0
	}
	return p.tokens / p.us()
}

// evenFactor times the TPOT target is above it by more than estimates are wrong.
const evenFactor = 1.1

// slowedByPrompts reports whether r would have met its TPOT target without the prompts that its replica computed while
// it decoded, and whether that replica has too many of them: r would have missed the target at an even rate of prompts,
// too. Without known step times or a target r is taken to be slowed down by prompts that come unevenly.
func (a *Analyzer) slowedByPrompts(r *request) (slowed, tooMany bool) {
	steps, known := a.stats.steps[a.topology.deploymentOf(r.replica).ID]
	target := 1000 * a.classes[a.names.list[r.labels.class]].Targets.TPOTMS
	if !known || target == 0 {
		return true, false
	}
	tokens := float64(r.tokens.output - 1)
	us := float64(r.ended()-r.firstToken()) / tokens
	alone := us - float64(steps.token*r.evidence.promptsMeanwhile)/tokens
	return alone <= target, steps.even(r.contention.concurrent, a.stats.prefillRates[r.replica]) > evenFactor*target
}

// even is the time of a step with as many sequences at a rate of prompt tokens for each µs.
func (s stepTimes) even(sequences, rate float64) float64 {
	idle := 1 - float64(s.token*rate)
	if idle <= 0 {
		return math.Inf(1)
	}
	return (s.fixed + float64(s.sequence*sequences)) / idle
}

// carries reports whether steps of as many tokens compute the prompts of the replica with most of the losing requests
// as fast as it did from the first to the last of these, and do not make most of them miss their TTFT target; true
// where step times are not known.
func (x *proposal) carries(budget int64) bool {
	counts, busiest := map[int32]int{}, x.p.losing[0].replica
	for _, r := range x.p.losing {
		if counts[r.replica]++; counts[r.replica] > counts[busiest] {
			busiest = r.replica
		}
	}
	var losing span
	for _, r := range x.p.losing {
		if r.replica == busiest && r.scheduled() != never && r.ended() != never {
			losing.add(r.scheduled(), r.ended())
		}
	}
	prompts := 0.0
	for _, r := range x.requests.all() {
		if t := r.scheduled(); r.replica == busiest && t != never && t >= losing.from && t < losing.until {
			prompts += uncachedTokens(r)
		}
	}
	steps, known := x.stats.steps[x.topology.deploymentOf(busiest).ID]
	if !known || losing.until <= losing.from {
		return true
	}
	rate := func(budget int64) float64 {
		tokens := float64(budget)
		us := steps.fixed + float64(steps.token*tokens) + float64(steps.sequence*mean(x.p.losing, resident))
		return tokens / us
	}
	then, now := rate(budget), rate(x.deployment().Engine.MaxNumBatchedTokens)
	return prompts/losing.us() <= then && 2*x.lateWith(then, now) <= len(x.p.losing)
}

// lateWith is how many of the losing requests would miss their TTFT target if prompts were computed at another rate
// than now: their own take longer, and wait for as many as did not fit while such a request decodes.
func (x *proposal) lateWith(then, now float64) (late int) {
	for _, r := range x.p.losing {
		target := x.classes[x.names.list[r.labels.class]].Targets.TTFTMS
		if target == 0 || r.firstToken() == never || r.ended() == never {
			continue
		}
		decode := latencyMS(r.firstToken(), r.ended())
		more := max(0, r.evidence.promptsMeanwhile/then/1000-decode)
		if ttftMS(r)*now/then+more > target {
			late++
		}
	}
	return late
}

// poolsCarry reports whether two pools, the first with some of n replicas for some requests, can serve these and the
// others as these came from the first to the last of the losing requests: with steps that meet the highest TPOT target
// of the losing requests, if they have one. It is true where step times are not known.
func (x *proposal) poolsCarry(own, n float64, isIn func(*request) bool) bool {
	steps, known := x.stats.steps[x.deployment().ID]
	if !known {
		return true
	}
	var losing span
	target := 0.0
	for _, r := range x.p.losing {
		if r.scheduled() != never && r.ended() != never {
			losing.add(r.scheduled(), r.ended())
		}
		target = max(target, 1000*x.classes[x.names.list[r.labels.class]].Targets.TPOTMS)
	}
	model := x.deployment().Model
	work := map[bool]float64{} // µs of all steps besides their fixed part
	for _, r := range x.requests.all() {
		if t := r.scheduled(); r.replica == missing || t == never || t < losing.from || t >= losing.until ||
			x.topology.deploymentOf(r.replica).Model != model {
			continue
		}
		work[isIn(r)] += float64(steps.token*uncachedTokens(r)) + float64(steps.sequence*float64(r.tokens.output))
	}
	for in, replicas := range map[bool]float64{true: own, false: n - own} {
		idle := 1 - work[in]/(replicas*max(1, losing.us()))
		if idle <= 0 || target > 0 && steps.fixed > float64(idle*target) {
			return false
		}
	}
	return true
}

// spreadPrompts proposes to route by load where all replicas of the model would meet the target with the same rate of
// prompts and as many fewer sequences, else replicas.
func (x *proposal) spreadPrompts() []Change {
	d, sum, n := x.deployment(), 0.0, 0.0
	for k, rate := range x.stats.prefillRates {
		if x.topology.deploymentOf(int32(k)).Model == d.Model {
			sum, n = sum+rate, n+1
		}
	}
	fits := 0
	for _, r := range x.p.losing {
		target := 1000 * x.classes[x.names.list[r.labels.class]].Targets.TPOTMS
		less := sum / n / x.stats.prefillRates[r.replica]
		if x.stats.steps[d.ID].even(less*r.contention.concurrent, sum/n) <= target {
			fits++
		}
	}
	if 2*fits < len(x.p.losing) {
		return x.moreReplicas()
	}
	return x.readQueues()
}
