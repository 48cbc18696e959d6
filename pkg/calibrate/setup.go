package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/recording"
	"blis/pkg/sim"
	"blis/pkg/strictyaml"
)

// setup is a server as it was recorded, and what was recorded.
type setup struct {
	options *Options
	key     hardware.Key
	engine  string
	// assumed: no file says how the engine was set.
	assumed    bool
	deployment *cluster.Deployment
	routing    string
	roofline   latency.Model
	files      []*recording.Recording
	runs       []*run
	steps      []recording.Step
	warnings   []string
	// earlier is a fit to refine; nil without one.
	earlier *hardware.Set
	// hardware is what GPUs are known; aliases are names of a file that is being taken
	// for the setup's model and GPU.
	hardware *hardware.Catalog
	aliases  map[string]bool
}

func (s *setup) warnf(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// setup finds out what server the recordings are of, and prepares them to be played.
func (o *Options) setup(all []*recording.Recording) (*setup, error) {
	s := &setup{options: o, files: all, assumed: o.Cluster == ""}
	of, err := s.base(s.recorded())
	if err != nil {
		return nil, err
	}
	c, err := of.load(0)
	if fault := (*strictyaml.Error)(nil); s.assumed && errors.As(err, &fault) {
		// The file that was made of flags is nobody's: the fault is told without it.
		return nil, fmt.Errorf("%s: %s", of.what, strings.TrimPrefix(fault.Msg, "deployments[0]."))
	} else if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return d.ID == of.id })
	s.deployment = &c.Deployments[i]
	s.routing = c.Policies.WithoutLineage().Routing.Type
	if s.roofline, err = s.deployment.LatencyModel(); err != nil {
		return nil, err
	}
	e := &s.deployment.Engine
	s.key = hardware.Key{Model: canonical(s.deployment), GPU: s.deployment.GPU, TensorParallelSize: e.TensorParallelSize,
		PipelineParallelSize: e.PipelineParallelSize, DataParallelSize: e.DataParallelSize}
	if s.hardware, err = hardware.Open(o.Hardware...); err != nil {
		return nil, err
	}
	for _, r := range all {
		if err := s.take(r, of.player); err != nil {
			return nil, err
		}
	}
	if len(s.runs)+len(s.steps) == 0 {
		return nil, fmt.Errorf("the recordings have neither a completed request with an arrival nor a step of %s on %s with tensor parallelism %d%s", s.key.Model, s.key.GPU, s.key.TensorParallelSize, s.leftOut())
	}
	return s, nil
}

// leftOut are the warnings so far, which say what a file has in the place of what it
// should.
func (s *setup) leftOut() string {
	if len(s.warnings) == 0 {
		return ""
	}
	return ": " + strings.Join(s.warnings, "; ")
}

// playerOf makes a player of so many replicas (0: what the cluster file says) with
// more settings of the deployment.
type playerOf func(replicas int, more ...string) (*sim.Player, error)

// take adds what a file has of the setup.
func (s *setup) take(r *recording.Recording, player playerOf) error {
	s.findAliases(r)
	steps, runs := map[string]int{}, map[string]int{} // those of other setups
	for _, step := range r.Steps {
		if of := s.other(step.Model, step.GPU, step.TensorParallel); of != "" {
			steps[of]++
			continue
		}
		s.steps = append(s.steps, step)
	}
	for _, of := range r.Runs {
		if of := s.other(of.Model, of.GPU, of.TensorParallel); of != "" {
			runs[of]++
			continue
		}
		run, err := s.prepare(r, of, player)
		if err != nil {
			return err
		}
		if run != nil {
			s.runs = append(s.runs, run)
		}
	}
	s.warnOthers(r.Path, "step", steps)
	s.warnOthers(r.Path, "run", runs)
	return nil
}

// warnOthers warns of the steps or runs of a file that are of other setups.
func (s *setup) warnOthers(path, what string, others map[string]int) {
	for _, of := range slices.Sorted(maps.Keys(others)) {
		if n := others[of]; n == 1 {
			s.warnf("%s: 1 %s of %s is left out", path, what, of)
		} else {
			s.warnf("%s: %d %ss of %s are left out", path, n, what, of)
		}
	}
}

// other says what a run or step is of, where that is not this setup.
func (s *setup) other(model, gpu string, tp int) string {
	if model != "" && !s.isModel(model) || gpu != "" && !s.isGPU(gpu) || tp > 0 && tp != s.key.TensorParallelSize {
		parallel := ""
		if tp > 0 {
			parallel = fmt.Sprintf(", tensor parallelism %d", tp)
		}
		return cmp.Or(model, "a model not named") + " on " + cmp.Or(gpu, "a GPU not named") + parallel
	}
	return ""
}

// canonical is a deployment's model by its name in the catalogue of models, or by
// its own.
func canonical(d *cluster.Deployment) string {
	for _, name := range []string{d.ModelConfig, d.Model} {
		if a, err := model.BuiltIn(name); err == nil {
			return a.Name
		}
	}
	return d.Model
}

// isModel reports whether recordings that name a model are of the setup's, by its name
// in the catalogue or by one that a file calls it by (an alias).
func (s *setup) isModel(name string) bool {
	a, err := model.BuiltIn(name)
	return err == nil && a.Name == s.key.Model || strings.EqualFold(name, s.key.Model) || alike(name, s.key.Model) || alike(name, s.deployment.Model) || s.aliases[name]
}

// alike reports whether two names of models differ by their owner, by signs and by what
// one of them appends alone: llama2-70b and meta-llama/Llama-2-70b-hf.
func alike(a, b string) bool {
	bare := func(name string) string {
		name = strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, name)
	}
	a, b = bare(a), bare(b)
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && a != "" && (rest == "" || rest == "hf" || rest == "instruct" || rest == "chat" || rest == "chathf")
}

// isGPU is the like of GPUs.
func (s *setup) isGPU(name string) bool {
	g, err := s.hardware.GPU(name)
	return err == nil && g.ID == s.key.GPU || s.aliases[name]
}

// findAliases takes the name that a recording has for its model or GPU, and no
// catalogue knows, for the setup's, with a warning, where it is the only one of the
// file: a server may call its model as it likes. Of several none can be told from
// the others, and they are left out.
func (s *setup) findAliases(r *recording.Recording) {
	s.aliases = map[string]bool{}
	models, gpus := map[string]bool{}, map[string]bool{}
	for _, run := range r.Runs {
		models[run.Model], gpus[run.GPU] = true, true
	}
	for _, step := range r.Steps {
		models[step.Model], gpus[step.GPU] = true, true
	}
	for _, k := range []struct {
		what, is string
		names    map[string]bool
		known    func(string) bool
	}{
		{"model", s.key.Model, models, func(n string) bool { _, err := model.BuiltIn(n); return err == nil || s.isModel(n) }},
		{"GPU", s.key.GPU, gpus, func(n string) bool { _, err := s.hardware.GPU(n); return err == nil }},
	} {
		delete(k.names, "")
		for _, name := range slices.Sorted(maps.Keys(k.names)) {
			if len(k.names) == 1 && !k.known(name) {
				s.aliases[name] = true
				s.warnf("%s: its %s is called %s, which is not known: taken for %s", r.Path, k.what, name, k.is)
			}
		}
	}
}

// prepare makes a run of a recording's, nil if it has no request to compare with.
func (s *setup) prepare(file *recording.Recording, of *recording.Run, player playerOf) (*run, error) {
	r := &run{name: nameOf(file, of), of: of.Name, file: file, clock: of.Clock, arrivals: of.Arrivals, replicas: s.replicas(nameOf(file, of), of), async: s.deployment.Engine.AsyncScheduling,
		seats: s.deployment.Engine.MaxNumSeqs * s.deployment.Engine.DataParallelSize,
		room:  s.deployment.Blocks() * s.deployment.Engine.BlockSize * s.deployment.Engine.DataParallelSize}
	s.fill(r, of)
	if !slices.ContainsFunc(r.measured, func(m seen) bool { return !math.IsNaN(m.e2e) }) {
		return nil, nil
	}
	if r.period == 0 && !r.cached {
		s.warnTooSoon(r)
	}
	var err error
	if r.player, err = player(r.replicas); err != nil {
		return nil, err
	}
	r.otherwise, err = player(r.replicas, fmt.Sprintf("engine.async_scheduling=%v", !r.async))
	return r, err
}

// replicas is how many replicas a run was served by: as many as it says or names; where it
// does neither, as many as the cluster has, and no less than outcomes name.
func (s *setup) replicas(name string, of *recording.Run) int {
	stated, named := s.deployment.Replicas, replicasOf(of.Outcomes)
	if of.Replicas == 0 {
		return max(1, named, stated)
	}
	n := max(of.Replicas, named)
	if !s.assumed && n != stated {
		s.warnf("%s: its replicas are %d, and those of %s are %d: taken is what is recorded", name, n, filepath.Base(s.options.Cluster), stated)
	}
	return n
}

// prior is what physics says of the setup at a load.
func (s *setup) prior(l load) prior {
	replica := s.deployment.Computed.Roofline
	w, m := &replica.Work, &replica.Machine
	bytes := float64(w.KVBytes) / math.Min(float64(m.TensorParallel), float64(max(1, w.KVHeads)))
	return priorOf(s.roofline, l.sequences, l.context, bytes, m.Bandwidth)
}
