// Package plan finds the cheapest fleet that serves a workload within limits. For each kind of GPU and each combination
// of settings it searches the smallest number of replicas that meets all conditions. For the cheapest of these fleets
// it finds how much more load it serves and how the answer changes with the load.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/fitness"
	"blis/pkg/strictyaml"
	"blis/pkg/sweep"
)

// File says which fleets are possible and what they must do.
type File struct {
	Version int `yaml:"version" json:"version"`
	// Deployment is the id of the deployment whose replicas are counted.
	Deployment string `yaml:"deployment" json:"deployment"`
	// GPUs are the prices of an hour of each kind of GPU.
	GPUs map[string]float64 `yaml:"gpus" json:"gpus"`
	// Set has other settings by path, as in a grid: every combination is tried.
	Set map[string][]any `yaml:"set" json:"set"`
	// Require are conditions over the metrics, as the gates of a fitness file.
	Require []string `yaml:"require" json:"require"`
	// MaxGPUs is the largest fleet.
	MaxGPUs int `yaml:"max_gpus" json:"max_gpus"`
	// Seeds are those of the simulation, as for blis-sim --seed: a fleet meets a condition if it does with each.
	// Without them, the seed is that of the call.
	Seeds []uint64 `yaml:"seeds" json:"seeds"`
}

// UnknownField says where to write what callers try as a field of a plan.
func (f *File) UnknownField(name string) string {
	if name == "deployments" || name == "policies" {
		return "it belongs in a cluster file, which -c names"
	}
	return ""
}

// served is the condition that all plans have: otherwise fleets that serve less would be the cheapest.
const served = "m.requests.completed >= m.requests.offered + m.requests.not_issued"

// Call is what a plan needs from its caller.
type Call struct {
	Sweep sweep.Call
	// Options has the folder of results.
	Options sweep.Options
	// Workload is a file. Scaled returns the name, for Sweep.Open, of this workload with that many times the arrivals
	// per second.
	Workload string
	Scaled   func(load float64) string
	// Progress is called with the number of runs so far.
	Progress func(runs int)
}

// Option is a kind of fleet: a GPU and settings.
type Option struct {
	GPU string         `json:"gpu"`
	Set map[string]any `json:"set,omitempty"`
	// GPUsPerReplica and Price, of a replica's hour, follow from them. With pools a replica is one that decodes and, if
	// the prefill pool has as many, a prefill replica.
	GPUsPerReplica int     `json:"gpus_per_replica,omitempty"`
	Price          float64 `json:"replica_hour,omitempty"`
	// PrefillGPUs and PrefillPrice are those of all prefill replicas, if the file states their number.
	PrefillGPUs  int     `json:"prefill_gpus,omitempty"`
	PrefillPrice float64 `json:"prefill_hour,omitempty"`
	// State is feasible, not cheaper, infeasible or error. Replicas is the smallest feasible number, AtLeast the
	// smallest one that was not excluded where the search ended early: it costs more than the answer.
	State    string `json:"state"`
	Replicas int    `json:"replicas,omitempty"`
	AtLeast  int    `json:"at_least,omitempty"`
	Error    string `json:"error,omitempty"`
	// Largest is the fleet with as many GPUs as possible, if it is not feasible either.
	Largest *Fleet `json:"largest,omitempty"`
	latency cluster.Latency
	// slots is the number of batch slots of a replica. disaggregated replicas have a prefill pool.
	slots         int
	disaggregated bool
	// prefills is the number of prefill replicas: stated ones, or as many as replicas.
	prefills struct {
		stated int
		follow bool
	}
}

// gpus is the number of GPUs of some replicas, and most the number of replicas with at most that many GPUs.
func (o *Option) gpus(replicas int) int { return replicas*o.GPUsPerReplica + o.PrefillGPUs }

func (o *Option) most(gpus int) int { return max(0, gpus-o.PrefillGPUs) / o.GPUsPerReplica }

// prefillReplicas is the number of prefill replicas where some replicas decode.
func (o *Option) prefillReplicas(replicas int) int {
	if o.prefills.follow {
		return replicas
	}
	return o.prefills.stated
}

// cost is the price of an hour of some replicas. It has 12 digits, so that 3 x 0.2 and 2 x 0.3 are the same cost.
func (o *Option) cost(replicas int) float64 {
	exact := float64(float64(replicas)*o.Price) + o.PrefillPrice
	if replicas == 0 || exact == 0 {
		return 0
	}
	unit := math.Pow(10, 11-math.Floor(math.Log10(exact)))
	return math.Round(exact*unit) / unit
}

// The states of an Option.
const (
	feasible   = "feasible"
	notCheaper = "not cheaper"
	infeasible = "infeasible"
	failed     = "error"
)

// Fleet is the result of one simulation or, with several seeds, the worst values of all of them.
type Fleet struct {
	GPU      string         `json:"gpu"`
	Set      map[string]any `json:"set,omitempty"`
	Replicas int            `json:"replicas"`
	Prefill  int            `json:"prefill_replicas,omitempty"`
	GPUs     int            `json:"gpus"`
	// Cost is per hour. Load is relative to that of the workload.
	Cost     float64 `json:"cost_per_hour"`
	Load     float64 `json:"load"`
	Feasible bool    `json:"feasible"`
	// Failed are the conditions that do not hold, with the compared numbers.
	Failed []string `json:"failed,omitempty"`
	// Conditions are all of them, in the order of Answer.Require.
	Conditions []Condition `json:"conditions,omitempty"`
	// Attainment is the share of requests that met their targets or, if none has targets, of completed ones. The
	// others are metrics of the run, 0 if missing.
	Attainment  float64 `json:"attainment"`
	TTFTp99MS   float64 `json:"ttft_p99_ms"`
	TPOTp99MS   float64 `json:"tpot_p99_ms"`
	OutputTokS  float64 `json:"output_tok_s"`
	QueueP99MS  float64 `json:"queue_p99_ms"`
	MaxKVUse    float64 `json:"kv_util_max"`
	Preemptions float64 `json:"preemptions"`
	// MaxSlotUse is the largest share of batch slots that a replica had in use.
	MaxSlotUse float64 `json:"batch_slot_util_max"`
	// Limits say what binds a fleet that is not feasible: latencies of the conditions that fail (ttft, tpot, e2e), kv
	// if a replica ran out of KV blocks, slots if it ran out of batch slots, served if requests were not served.
	Limits []string `json:"limits,omitempty"`
}

// Condition is a required one with what was measured. Values has the number of each seed where a metric is compared
// with a constant; it has the compared numbers in words for other conditions.
type Condition struct {
	Expr   string   `json:"expr"`
	Met    bool     `json:"met"`
	Values []string `json:"values"`
}

// Sensitivity is the smallest fleet of the best option for another load.
type Sensitivity struct {
	Load     float64 `json:"load"`
	Replicas int     `json:"replicas"`
	GPUs     int     `json:"gpus"`
	Cost     float64 `json:"cost_per_hour"`
}

// Uncertainty is the smallest fleet of the best option with shorter and with longer step times. Measured coefficients
// are all at the lower and at the upper ends of their intervals at the confidence level Level. Their errors partly
// cancel, so the range is wider than that of the level. Computed step times are shorter and longer by the share
// StepError.
type Uncertainty struct {
	Level     float64     `json:"level,omitempty"`
	StepError float64     `json:"step_error,omitempty"`
	Lo        Sensitivity `json:"lo"`
	// Hi is null if max_gpus are too few.
	Hi *Sensitivity `json:"hi"`
}

// Answer is the result of a plan.
type Answer struct {
	Workload string   `json:"workload"`
	Require  []string `json:"require"`
	// Best is null if no fleet is feasible. Below is the fleet with one replica less, which is not feasible.
	Best  *Fleet `json:"best"`
	Below *Fleet `json:"below"`
	// Knee is the highest load that Best serves, within 2 %. AboveKnee is Best at the lowest tried load above it, null
	// if it serves all of them.
	Knee        float64       `json:"knee"`
	AboveKnee   *Fleet        `json:"above_knee"`
	Sensitivity []Sensitivity `json:"sensitivity"`
	// Uncertainty is null if it is unknown: the step times are in the cluster file.
	Uncertainty *Uncertainty `json:"uncertainty"`
	Options     []*Option    `json:"options"`
	Curve       []*Fleet     `json:"curve"`
	// Pareto are the fleets that no other simulated one beats in cost and attainment.
	Pareto   []*Fleet `json:"pareto"`
	Runs     int      `json:"runs"`
	Warnings []string `json:"warnings"`
	// Seeds is the number of seeds of each simulation.
	Seeds int `json:"seeds"`
}

// Read reads a file. Errors in it are *strictyaml.Error.
func Read(name string) (*File, *fitness.Fitness, error) {
	doc, err := strictyaml.Read(name)
	if err != nil {
		return nil, nil, err
	}
	f := &File{Deployment: "main", MaxGPUs: 64}
	if err := doc.Decode(f); err != nil {
		return nil, nil, err
	}
	if err := f.check(doc.Errorf); err != nil {
		return nil, nil, err
	}
	f.Require = append(slices.Clone(f.Require), served)
	conditions, err := fitness.Conditions(f.Require, func(i int, text string) error {
		return doc.Errorf(fmt.Sprintf("require[%d]", i), "%s", text)
	})
	if err == nil {
		err = conditions.CheckReferences(false, false)
	}
	return f, conditions, err
}

func (f *File) check(errorf strictyaml.Errorf) error {
	switch {
	case f.Version != 1:
		return errorf("version", "must be 1, is %d", f.Version)
	case len(f.GPUs) == 0:
		return errorf("gpus", "must have the price of at least one GPU, such as {H100: 2.5}")
	case len(f.Require) == 0:
		return errorf("require", "must have a condition, such as m.ttft.p99 <= 500: any fleet serves everything in "+
			"the end")
	case f.MaxGPUs < 1:
		return errorf("max_gpus", "must be at least 1, is %d", f.MaxGPUs)
	}
	if f.Seeds != nil && len(f.Seeds) == 0 {
		return errorf("seeds", "has no values")
	}
	for gpu, price := range f.GPUs {
		if !(price > 0) {
			return errorf("gpus."+gpu, "must be above 0, is %v", price)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f.Set)) {
		switch {
		case len(f.Set[path]) == 0:
			return errorf("set."+path, "has no values")
		case f.searches(path):
			return errorf("set."+path, "is what the plan searches; its gpus and max_gpus limit it")
		}
	}
	return nil
}

// searches is true of the paths whose values the search itself sets.
func (f *File) searches(path string) bool {
	field, ok := strings.CutPrefix(path, "deployments."+f.Deployment+".")
	return ok && (field == "gpu" || field == "replicas")
}

// checkSettings rejects settings of the call that the search would override.
func (p *planner) checkSettings() error {
	all, err := strictyaml.ParseSettings(p.call.Sweep.Run.Set)
	if err != nil {
		return err
	}
	for i := range all {
		path := all[i].Path
		if rest, ok := strings.CutPrefix(path, fmt.Sprintf("deployments.%d.", p.index)); ok {
			path = "deployments." + p.Deployment + "." + rest
		}
		if p.searches(path) {
			return all[i].Errorf("%s is what the plan searches; its gpus and max_gpus limit it", all[i].Path)
		}
	}
	return nil
}

// options returns all combinations in a fixed order.
func (f *File) options() (all []*Option) {
	for _, gpu := range slices.Sorted(maps.Keys(f.GPUs)) {
		sets := []map[string]any{{}}
		for _, path := range slices.Sorted(maps.Keys(f.Set)) {
			var more []map[string]any
			for _, set := range sets {
				for _, value := range f.Set[path] {
					with := maps.Clone(set)
					with[path] = value
					more = append(more, with)
				}
			}
			sets = more
		}
		for _, set := range sets {
			all = append(all, &Option{GPU: gpu, Set: set})
		}
	}
	return all
}

// Run returns the answer.
func Run(ctx context.Context, f *File, conditions *fitness.Fitness, call Call) (*Answer, error) {
	runner, err := sweep.NewRunner(call.Options, conditions, call.Sweep)
	if err != nil {
		return nil, err
	}
	p := &planner{File: f, call: call, runner: runner, ctx: ctx, index: -1,
		answer: &Answer{Workload: call.Workload, Require: f.Require, Sensitivity: []Sensitivity{}, Options: f.options(),
			Curve: []*Fleet{}, Pareto: []*Fleet{}, Warnings: []string{}, Seeds: max(1, len(f.Seeds))}}
	p.prepare()
	if err := p.checkSettings(); err != nil {
		return nil, err
	}
	if err := p.search(); err != nil {
		return nil, err
	}
	p.answer.Pareto = pareto(p.fleets)
	if p.answer.Best != nil {
		if err := p.load(); err != nil {
			return nil, err
		}
	}
	return p.answer, nil
}

// prepare finds the size and price of the replicas of each option, or why they do not start.
func (p *planner) prepare() {
	single, prices := map[*Option]*cluster.Deployment{}, map[string]float64{} // with one replica; by full name
	for _, o := range p.answer.Options {
		point := p.point(o, 1, 1)
		c, err := p.runner.Cluster(&point)
		if err != nil {
			o.State, o.Error = failed, err.Error()
			continue
		}
		i := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return d.ID == p.Deployment })
		if i < 0 {
			o.State, o.Error = failed, fmt.Sprintf("the cluster has no deployment with the id %s", p.Deployment)
			continue
		}
		p.index = i
		d := &c.Deployments[i]
		if d.Encode != nil {
			o.State, o.Error = failed, "a plan does not choose the number of encode replicas"
			continue
		}
		o.GPUsPerReplica, o.slots = d.Engine.GPUs(), d.Engine.ActiveSeqs()*d.Engine.DataParallelSize
		o.latency, o.disaggregated = d.Latency, d.Prefill != nil
		single[o], prices[d.GPU] = d, p.GPUs[o.GPU]
		o.Price = p.GPUs[o.GPU] * float64(o.GPUsPerReplica)
		if text := defaultBatch(d); text != "" && !slices.Contains(p.answer.Warnings, text) {
			p.answer.Warnings = append(p.answer.Warnings, text)
		}
	}
	for _, o := range p.answer.Options {
		if d := single[o]; d != nil && o.disaggregated {
			if err := p.countPrefills(o, d, prices); err != nil {
				o.State, o.Error = failed, err.Error()
			}
		}
	}
}

// countPrefills adds the prefill replicas of an option whose deployment, for one replica, is d. prices are those of
// GPUs.
func (p *planner) countPrefills(o *Option, d *cluster.Deployment, prices map[string]float64) error {
	point := p.point(o, 2, 1)
	c, err := p.runner.Cluster(&point)
	if err != nil {
		return err
	}
	two, pool := &c.Deployments[p.index], d.Prefill
	if two.Replicas == d.Replicas {
		return errors.New("the file states decode.replicas, which a plan chooses: leave it out")
	}
	gpu := cmp.Or(pool.GPU, d.GPU)
	price, known := prices[gpu]
	if !known {
		return fmt.Errorf("gpus has no price of %s, the GPU of the prefill pool", gpu)
	}
	gpus := pool.Engine.GPUs()
	if o.prefills.follow = two.Prefill.Replicas > pool.Replicas; o.prefills.follow {
		o.GPUsPerReplica += gpus
		o.Price += price * float64(gpus)
		return nil
	}
	o.prefills.stated = pool.Replicas
	o.PrefillGPUs = pool.Replicas * gpus
	o.PrefillPrice = price * float64(o.PrefillGPUs)
	return nil
}

// defaultBatch warns of a deployment whose batches have the general limits, which are below those of recent versions on
// large GPUs. It is empty if the file has a preset or one of the limits.
func defaultBatch(d *cluster.Deployment) string {
	e := &d.Engine
	if e.Preset != "" || d.Derived == nil || !slices.Contains(d.Derived.Values, "engine.max_num_seqs") ||
		!slices.Contains(d.Derived.Values, "engine.max_num_batched_tokens") {
		return ""
	}
	return fmt.Sprintf("deployment %s has no preset: %d sequences and %d tokens in a step; engine.preset names the "+
		"defaults of a version", d.ID, e.MaxNumSeqs, e.MaxNumBatchedTokens)
}

// point is a simulation of an option.
func (p *planner) point(o *Option, replicas int, load float64) sweep.Point {
	set := map[string]any{"deployments." + p.Deployment + ".gpu": o.GPU,
		"deployments." + p.Deployment + ".replicas": replicas}
	maps.Copy(set, o.Set)
	point := sweep.Point{Override: sweep.Override{Set: set}, Workload: p.call.Workload}
	if load != 1 {
		point.Workload = p.call.Scaled(load)
	}
	return point
}

// points are those of all seeds.
func (p *planner) points(t trial) []sweep.Point {
	point := p.point(t.option, t.replicas, t.load)
	if p.Seeds == nil {
		return []sweep.Point{point}
	}
	var all []sweep.Point
	for i := range p.Seeds {
		point.Seed = &p.Seeds[i]
		all = append(all, point)
	}
	return all
}

// pareto returns the fleets that no other one beats in cost and attainment, the cheapest first.
func pareto(fleets []*Fleet) (front []*Fleet) {
	sorted := slices.Clone(fleets)
	slices.SortStableFunc(sorted, func(a, b *Fleet) int {
		return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(b.Attainment, a.Attainment))
	})
	best := -1.0
	for _, f := range sorted {
		if f.Attainment > best {
			best, front = f.Attainment, append(front, f)
		}
	}
	return front
}

// settings are the settings of an option in words.
func settings(gpu string, set map[string]any) string {
	words := []string{gpu}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		words = append(words, fmt.Sprintf("%s %v", path[strings.LastIndexByte(path, '.')+1:], set[path]))
	}
	return strings.Join(words, ", ")
}
