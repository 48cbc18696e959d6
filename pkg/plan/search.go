package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"blis/pkg/fitness"
	"blis/pkg/metrics"
	"blis/pkg/sweep"
)

type planner struct {
	*File
	call   Call
	runner *sweep.Runner
	ctx    context.Context
	answer *Answer
	// index is that of the deployment in the cluster, -1 if no option has it.
	index int
	// fleets are the simulated ones at the load of the workload.
	fleets []*Fleet
}

// trial is a fleet to simulate.
type trial struct {
	option   *Option
	replicas int
	load     float64
}

// try simulates fleets. A fleet whose run has no metrics is nil, and the error is that of its option.
func (p *planner) try(trials []trial) ([]*Fleet, error) {
	var points []sweep.Point
	for _, t := range trials {
		points = append(points, p.points(t)...)
	}
	results, err := p.runner.Run(p.ctx, points)
	if err != nil {
		return nil, err
	}
	p.answer.Runs += len(results)
	if p.call.Progress != nil {
		p.call.Progress(p.answer.Runs)
	}
	fleets := make([]*Fleet, len(trials))
	seeds := max(len(p.Seeds), 1)
	for i, t := range trials {
		if fleets[i], err = p.fleet(t, results[i*seeds:(i+1)*seeds]); err != nil {
			return nil, err
		}
		if fleets[i] != nil && t.load == 1 {
			p.fleets = append(p.fleets, fleets[i])
		}
	}
	return fleets, nil
}

// fleet combines the results of all seeds, nil if one has no metrics.
func (p *planner) fleet(t trial, results []*sweep.Result) (*Fleet, error) {
	var worst *Fleet
	for _, r := range results {
		if r.Metrics == nil || r.Error != "" {
			t.option.State, t.option.Error = failed, r.Error
			return nil, nil
		}
		f, err := fleetOf(t, r)
		if err != nil {
			return nil, err
		}
		if len(results) > 1 {
			for i := range f.Failed {
				f.Failed[i] += fmt.Sprintf(" with seed %d", r.Seed)
			}
		}
		if worst == nil {
			worst = f
		} else {
			worst.worsen(f)
		}
	}
	return worst, nil
}

// worsen takes the worse of each value.
func (f *Fleet) worsen(o *Fleet) {
	f.Feasible, f.Failed = f.Feasible && o.Feasible, append(f.Failed, o.Failed...)
	f.Attainment, f.OutputTokS = min(f.Attainment, o.Attainment), min(f.OutputTokS, o.OutputTokS)
	f.TTFTp99MS, f.TPOTp99MS = max(f.TTFTp99MS, o.TTFTp99MS), max(f.TPOTp99MS, o.TPOTp99MS)
	f.QueueP99MS, f.MaxKVUse = max(f.QueueP99MS, o.QueueP99MS), max(f.MaxKVUse, o.MaxKVUse)
	f.Preemptions, f.MaxSlotUse = max(f.Preemptions, o.Preemptions), max(f.MaxSlotUse, o.MaxSlotUse)
	for i, c := range o.Conditions {
		f.Conditions[i].Met = f.Conditions[i].Met && c.Met
		f.Conditions[i].Values = append(f.Conditions[i].Values, c.Values...)
	}
	for _, limit := range o.Limits {
		if !slices.Contains(f.Limits, limit) {
			f.Limits = append(f.Limits, limit)
		}
	}
}

func fleetOf(t trial, r *sweep.Result) (*Fleet, error) {
	values, err := r.Values()
	if err != nil {
		return nil, err
	}
	at := map[string]float64{}
	for _, v := range values {
		at[v.Path] = v.Value
	}
	f := &Fleet{GPU: t.option.GPU, Set: t.option.Set, Replicas: t.replicas, GPUs: t.option.gpus(t.replicas),
		Prefill: t.option.prefillReplicas(t.replicas),
		Cost:    t.option.cost(t.replicas), Load: t.load, Feasible: true, Attainment: at["goodput.ratio"],
		TTFTp99MS: at["ttft.p99"], TPOTp99MS: at["tpot.p99"], OutputTokS: at["throughput.output_tok_s"],
		QueueP99MS: at["queue.p99"], MaxKVUse: at["kv.util_max"], Preemptions: at["kv.preemptions"]}
	if _, hasTargets := at["goodput.ratio"]; !hasTargets {
		f.Attainment = at["requests.completed"] / max(at["requests.offered"], 1)
	}
	for _, g := range r.Fitness.Gates {
		f.Conditions = append(f.Conditions, Condition{g.Expr, g.Passed, []string{g.Value()}})
		if !g.Passed {
			f.Feasible, f.Failed = false, append(f.Failed, g.Text())
		}
	}
	f.MaxSlotUse = peakBatch(values) / float64(max(t.option.slots, 1))
	f.Limits = f.limits(r.Fitness.Gates)
	return f, nil
}

// peakBatch is the largest batch of a replica.
func peakBatch(values []metrics.Value) (most float64) {
	for _, v := range values {
		if strings.HasPrefix(v.Path, "replicas[") && strings.HasSuffix(v.Path, "].peak_batch") {
			most = max(most, v.Value)
		}
	}
	return most
}

// latencies of conditions.
var latencies = regexp.MustCompile(`\b(ttft|tpot|itl|e2e|goodput)\b`)

// limits are those of Fleet.Limits.
func (f *Fleet) limits(gates []fitness.Gate) (all []string) {
	if f.Feasible {
		return nil
	}
	add := func(limit string) {
		if !slices.Contains(all, limit) {
			all = append(all, limit)
		}
	}
	for _, g := range gates {
		switch {
		case g.Passed:
		case g.Expr == served:
			add("served")
		default:
			for _, name := range latencies.FindAllString(g.Expr, -1) {
				add(name)
			}
		}
	}
	if f.Preemptions > 0 || f.MaxKVUse > 0.99 {
		add("kv")
	}
	if f.MaxSlotUse >= 1 {
		add("slots")
	}
	return all
}

// bracket is the search of the smallest feasible number of replicas: below is the largest one known to fail, 0 none,
// above the smallest one known to be feasible, 0 none.
type bracket struct {
	option               *Option
	load                 float64
	below, above, most   int
	aboveFleet, belowRun *Fleet
}

// next returns the number to try, 0 if the search is over.
func (b *bracket) next() int {
	switch {
	case b.above == 0 && b.below >= b.most:
		return 0
	case b.above == 0:
		return min(max(2*b.below, 1), b.most)
	case b.above-b.below > 1:
		return (b.above + b.below) / 2
	}
	return 0
}

func (b *bracket) add(f *Fleet) {
	if f.Feasible {
		b.above, b.aboveFleet = f.Replicas, f
	} else {
		b.below, b.belowRun = f.Replicas, f
	}
}

// run searches all brackets at once. One ends early if even its next fleet would cost more than the cheapest feasible
// one: a fleet with the same cost can meet more targets.
func (p *planner) run(all []*bracket) error {
	for {
		cheapest := math.Inf(1)
		for _, b := range all {
			if b.above > 0 {
				cheapest = min(cheapest, b.option.cost(b.above))
			}
		}
		var trials []trial
		var of []*bracket
		for _, b := range all {
			n := b.next()
			excluded := b.above == 0 && b.option.cost(b.below+1) > cheapest
			if n > 0 && !excluded && b.option.State != failed {
				trials, of = append(trials, trial{b.option, n, b.load}), append(of, b)
			}
		}
		if len(trials) == 0 {
			return nil
		}
		fleets, err := p.try(trials)
		if err != nil {
			return err
		}
		for i, f := range fleets {
			if f != nil {
				of[i].add(f)
			}
		}
	}
}

// search finds the smallest fleet of each option, and the cheapest of them.
func (p *planner) search() error {
	var all []*bracket
	for _, o := range p.answer.Options {
		if o.State != failed {
			all = append(all, &bracket{option: o, load: 1, most: o.most(p.MaxGPUs)})
		}
	}
	if err := p.run(all); err != nil {
		return err
	}
	var best *bracket
	for _, b := range all {
		o := b.option
		switch {
		case o.State == failed:
		case b.above > 0:
			o.State, o.Replicas = feasible, b.above
			if best == nil || cheaper(b.aboveFleet, best.aboveFleet) {
				best = b
			}
		case b.most == 0:
			o.State = infeasible
			o.Error = fmt.Sprintf("a replica has %s: more than max_gpus, %d", gpus(o.gpus(1)), p.MaxGPUs)
			if o.PrefillGPUs > 0 {
				o.Error = fmt.Sprintf("a replica and the prefill replicas have %s: more than max_gpus, %d",
					gpus(o.gpus(1)), p.MaxGPUs)
			}
		case b.below >= b.most:
			o.State, o.Largest = infeasible, b.belowRun
		default:
			o.State, o.AtLeast = notCheaper, b.below+1
		}
	}
	if best != nil {
		p.answer.Best, p.answer.Below = best.aboveFleet, best.belowRun
		return nil
	}
	if !slices.ContainsFunc(p.answer.Options, func(o *Option) bool { return o.State != failed }) {
		return errors.New("no fleet can be simulated; the first: " + p.answer.Options[0].Error)
	}
	return nil
}

// cheaper compares fleets by cost, then by attainment.
func cheaper(a, b *Fleet) bool {
	return a.Cost < b.Cost || a.Cost == b.Cost && a.Attainment > b.Attainment
}

// resolution is how closely the knee is found.
const resolution = 1.02

// highest is the largest load that is tried, relative to the workload's.
const highest = 8.0

// load finds the knee, the curve and the sensitivity of the best fleet.
func (p *planner) load() error {
	best := p.answer.Best
	o := p.answer.Options[slices.IndexFunc(p.answer.Options, func(o *Option) bool {
		return o.State == feasible && o.Replicas == best.Replicas &&
			settings(o.GPU, o.Set) == settings(best.GPU, best.Set)
	})]
	tried := map[float64]*Fleet{1: best}
	at := func(loads []float64) error {
		var trials []trial
		for _, x := range loads {
			if tried[x] == nil {
				trials = append(trials, trial{o, best.Replicas, x})
			}
		}
		fleets, err := p.try(trials)
		for i, f := range fleets {
			if f == nil {
				return errors.New(o.Error)
			}
			tried[trials[i].load] = f
		}
		return err
	}
	lo, hi, first := 1.0, 0.0, []float64{1.1, 1.25, 1.5, 2, 3, highest}
	for _, x := range first {
		if err := at([]float64{x}); err != nil {
			return err
		}
		if !tried[x].Feasible {
			hi = x
			break
		}
		lo = x
	}
	for hi > lo*resolution {
		x := rounded(math.Sqrt(lo * hi))
		if err := at([]float64{x}); err != nil {
			return err
		}
		if tried[x].Feasible {
			lo = x
		} else {
			hi = x
		}
	}
	p.answer.Knee, p.answer.AboveKnee = lo, tried[hi]
	if hi == 0 {
		p.answer.Warnings = append(p.answer.Warnings, "the fleet serves the highest load that was tried: the knee is "+
			"above it")
	}
	var curve []float64
	for _, x := range []float64{0.25, 0.5, 0.75, 0.9, 1, 1.1, 1.25, 1.5} {
		curve = append(curve, rounded(lo*x))
	}
	if err := at(append(curve, 1)); err != nil {
		return err
	}
	for _, f := range tried {
		p.answer.Curve = append(p.answer.Curve, f)
	}
	slices.SortFunc(p.answer.Curve, func(a, b *Fleet) int { return int(math.Copysign(1, a.Load-b.Load)) })
	p.answer.warnUneven()
	return p.sensitivity(o)
}

// warnUneven warns of loads that are served above the knee, or not below it.
func (a *Answer) warnUneven() {
	for _, f := range a.Curve {
		if f.Feasible == (f.Load <= a.Knee) {
			continue
		}
		how := "is served, although it is above the knee"
		if !f.Feasible {
			how = "is not served, although it is below the knee"
		}
		a.Warnings = append(a.Warnings, fmt.Sprintf("%g x the load %s: few requests decide the conditions; a longer "+
			"workload or more seeds show the limit better", f.Load, how))
		return
	}
}

// sensitivity finds the smallest fleets for 10 % less and more load.
func (p *planner) sensitivity(o *Option) error {
	less := &bracket{option: o, load: 0.9, above: o.Replicas, most: o.Replicas}
	more := &bracket{option: o, load: 1.1, below: o.Replicas - 1, most: o.most(p.MaxGPUs)}
	for _, b := range []*bracket{less, more} {
		if err := p.run([]*bracket{b}); err != nil {
			return err
		}
		if b.above == 0 {
			p.answer.Warnings = append(p.answer.Warnings, "max_gpus are too few for 10 % more load")
			continue
		}
		p.answer.Sensitivity = append(p.answer.Sensitivity, Sensitivity{b.load, b.above, o.gpus(b.above),
			o.cost(b.above)})
	}
	return p.uncertainty(o)
}

// stepErrors are how far computed step times may be off, as the warnings about them say. In scripts/silicon, 90 % of
// the TPOTs of 409 measured servers are within 17 % with operators, and within 53 % with roofline.
var stepErrors = map[string]float64{"operators": 0.2, "roofline": 0.5}

// uncertainty finds the smallest fleets with shorter and with longer step times.
func (p *planner) uncertainty(o *Option) error {
	u := &o.latency.Uncertainty
	found := &Uncertainty{StepError: stepErrors[o.latency.Model]}
	measured := len(u.AlphaUS) > 0 && len(u.BetaUS) > 0
	switch {
	case measured:
		found = &Uncertainty{Level: u.Level}
	case found.StepError == 0 || o.latency.Factors != nil:
		return nil
	}
	for i, sign := range []float64{-1, 1} {
		set := p.stepFactor(o, 1+sign*found.StepError)
		if measured {
			set = p.intervalEnds(o, i)
		}
		maps.Copy(set, o.Set)
		at := *o // whose replicas have the same size and price
		at.Set = set
		b := &bracket{option: &at, load: 1, most: o.most(p.MaxGPUs)}
		if err := p.run([]*bracket{b}); err != nil {
			return err
		}
		if at.State == failed {
			return errors.New("with other step times: " + at.Error)
		}
		s := &Sensitivity{1, b.above, o.gpus(b.above), o.cost(b.above)}
		switch {
		case i == 0:
			found.Lo = *s
		case b.above > 0:
			found.Hi = s
		}
	}
	p.answer.Uncertainty = found
	return nil
}

// intervalEnds are settings with all coefficients at the lower (0) or upper (1) ends of their intervals.
func (p *planner) intervalEnds(o *Option, end int) map[string]any {
	latency := "deployments." + p.Deployment + ".latency"
	u := &o.latency.Uncertainty
	return map[string]any{latency + ".from": "", latency + ".model": o.latency.Model,
		latency + ".alpha_us": ends(u.AlphaUS, end), latency + ".beta_us": ends(u.BetaUS, end)}
}

// stepFactor are settings with which steps take factor times as long.
func (p *planner) stepFactor(o *Option, factor float64) map[string]any {
	main := "deployments." + p.Deployment
	factor *= cmp.Or(o.latency.StepFactor, 1)
	set := map[string]any{main + ".latency.step_factor": factor}
	if o.disaggregated {
		set[main+".prefill.latency.step_factor"] = factor
	}
	return set
}

// ends returns the lower (0) or upper (1) ends of intervals.
func ends(intervals [][]float64, i int) (all []float64) {
	for _, x := range intervals {
		all = append(all, x[i])
	}
	return all
}

// rounded is a load with three digits, so that runs are found again in the folder of results.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }
