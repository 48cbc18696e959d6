package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
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

// setup is the recorded server, and what was recorded of it.
type setup struct {
	options *Options
	key     hardware.Key
	engine  string // with its version; "" if unknown
	// settings are those of the engine that the recordings state.
	settings []string
	// assumed: no file states the engine's settings.
	assumed bool
	// id is that of the recorded deployment in the cluster file, or in a cluster that the
	// overrides make of flags.
	id         string
	overrides  []string
	deployment *cluster.Deployment
	arch       *model.Architecture // nil if it is not in the catalog
	routing    string
	roofline   latency.Model
	shape      shape // with the server's kernels, if they are known
	files      []*recording.Recording
	replays    []*replay
	steps      []recording.Step
	warnings   []string
	given      *hardware.Set // coefficients to evaluate or to start from; nil without
	hardware   *hardware.Catalog
	// aliases are unknown names of a file, taken for the setup's model or GPU.
	aliases map[string]bool
}

func (s *setup) warnf(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// newSetup finds out which server the recordings are of, and prepares them for replay.
func newSetup(o *Options, files []*recording.Recording) (*setup, error) {
	s := &setup{options: o, files: files, assumed: o.Cluster == ""}
	c, err := s.findTarget()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return d.ID == s.id })
	s.deployment = &c.Deployments[i]
	s.routing = c.Policies.WithoutLineage().Routing.Type
	if s.roofline, err = s.deployment.LatencyModel(); err != nil {
		return nil, err
	}
	s.key = s.deployment.Key()
	if s.shape, err = s.findKernels(); err != nil {
		return nil, err
	}
	for _, name := range []string{s.deployment.Model, s.deployment.ModelConfig} {
		if a, err := model.BuiltIn(name); err == nil {
			s.key.Model, s.arch = a.Name, a // by its name in the catalog
		}
	}
	if s.hardware, err = hardware.Open(o.Hardware...); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := s.add(f); err != nil {
			return nil, err
		}
	}
	if err := s.raiseBlocks(); err != nil {
		return nil, err
	}
	if len(s.replays)+len(s.steps) == 0 {
		text := "the recordings have neither a completed request with an arrival nor a step of " + s.key.String() +
			"; what a folder states of the model and GPU counts: to state others, name the file of the requests instead"
		return nil, errors.New(strings.Join(append([]string{text}, s.warnings...), "; "))
	}
	return s, nil
}

// raiseBlocks gives an engine with unknown settings the KV blocks that recorded sequences hold, if it has fewer by
// vLLM's defaults: with too few, requests wait for each other in the simulation only.
func (s *setup) raiseBlocks() error {
	const name = "num_gpu_blocks_override"
	isBlocks := func(setting string) bool { return strings.HasPrefix(setting, name+"=") }
	held := 0.0
	for _, r := range s.replays {
		if tokens := r.heldTokens(); tokens > tolerance*float64(r.engine.kvTokens) && !r.sharesBlocks() {
			held = max(held, tokens)
		}
	}
	if held == 0 || !s.assumed || slices.ContainsFunc(s.settings, isBlocks) {
		return nil
	}
	e, before := &s.deployment.Engine, s.deployment.Computed.KVBlocks
	blocks := int(math.Ceil(held/float64(e.BlockSize*e.DataParallelSize))) + 1 // one holds nothing
	s.overrides = append(s.overrides, fmt.Sprintf("deployments.%s.engine.%s=%d", s.id, name, blocks))
	for _, r := range s.replays {
		c, err := s.cluster(r.engine.replicas)
		if err != nil {
			return err
		}
		s.deployment = &c.Deployments[0]
		r.engine.kvTokens = s.kvTokens()
		if r.player, err = sim.NewPlayer(c); err != nil {
			return err
		}
	}
	s.warnf("%s is assumed to be %d, the most KV blocks that recorded sequences hold at once: vLLM's defaults leave "+
		"memory for %d; set it as recorded, by --cluster", name, blocks, before)
	return nil
}

// kvTokens is the number of tokens that the KV blocks of a replica hold.
func (s *setup) kvTokens() int {
	e := &s.deployment.Engine
	return s.deployment.UsableBlocks() * e.BlockSize * e.DataParallelSize
}

// findTarget finds the deployment from the flags, and from the recordings where these are
// silent, and loads its cluster.
func (s *setup) findTarget() (*cluster.Config, error) {
	o := s.options
	name, gpu, tp := o.Model, o.GPU, o.TP
	note := func(ofModel, ofGPU string, ofTP int, engine string) {
		name, gpu, tp = cmp.Or(name, ofModel), cmp.Or(gpu, ofGPU), cmp.Or(tp, ofTP)
		s.engine = cmp.Or(s.engine, engine)
	}
	for _, f := range s.files {
		for _, run := range f.Runs {
			note(run.Model, run.GPU, run.TensorParallel, run.Engine)
		}
		for _, step := range f.Steps {
			note(step.Model, step.GPU, step.TensorParallel, step.Engine)
		}
	}
	tp = max(1, tp)
	if s.assumed {
		if err := s.askForSettings(name, gpu); err != nil {
			return nil, err
		}
		if name == "" || gpu == "" {
			var lacks, flags []string
			if name == "" {
				lacks, flags = append(lacks, "model"), append(flags, "--model")
			}
			if gpu == "" {
				lacks, flags = append(lacks, "GPU"), append(flags, "--gpu")
			}
			return nil, &UsageError{fmt.Sprintf("the recordings name no %s: give %s, or --cluster",
				strings.Join(lacks, " and no "), strings.Join(flags, " and "))}
		}
		if _, err := model.BuiltIn(name); err != nil {
			return nil, fmt.Errorf("--model: %w; for another, --cluster takes a file with model_config", err)
		}
		s.id, s.overrides = "main", []string{"policies={routing: {type: round-robin}}",
			fmt.Sprintf("deployments.main={id: main, model: %q, gpu: %q, replicas: 1, "+
				"engine: {tensor_parallel_size: %d}}", name, gpu, tp)}
		s.settings = s.recordedSettings()
		for _, setting := range s.settings {
			s.overrides = append(s.overrides, "deployments.main.engine."+setting)
		}
		c, err := s.cluster(0)
		if err != nil { // a server with so little memory was started with a shorter max_model_len
			shorter := fmt.Sprintf("deployments.main.engine.max_model_len=%d", s.longestRequest())
			s.overrides = append(s.overrides, shorter)
			if again, stillWrong := s.cluster(0); stillWrong == nil {
				s.warnf("max_model_len is assumed to be %d, the longest recorded request, since vLLM does not start "+
					"with the model's: %s", s.longestRequest(), withoutPath(err))
				c, err = again, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s on %d x %s: %s", name, tp, gpu, withoutPath(err))
		}
		return c, nil
	}
	c, err := cluster.Load(o.Cluster, cluster.Options{Hardware: o.Hardware, AllowPaths: o.AllowPaths})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return o.Model == "" || d.Model == o.Model })
	if i < 0 || o.Model == "" && len(c.Deployments) > 1 {
		return nil, &UsageError{o.Cluster + ": --model must name the model of one of its deployments"}
	}
	d := &c.Deployments[i]
	if have := d.Engine.TensorParallelSize; o.TP > 0 && o.TP != have {
		return nil, fmt.Errorf("--tp is %d, but tensor_parallel_size in %s is %d", o.TP, o.Cluster, have)
	}
	s.id = d.ID
	return s.cluster(0)
}

// askForSettings is an error that names what neither the flags nor the folder of a recording state. A recording that
// is a file alone may have an engine with default settings.
func (s *setup) askForSettings(name, gpu string) error {
	for _, f := range s.files {
		if f.Folder == nil {
			continue
		}
		missing := slices.DeleteFunc(f.Folder.Missing(), func(what string) bool {
			return what == "model" && name != "" || what == "gpu" && gpu != "" ||
				what == "vllm_version" && version.MatchString(s.engine)
		})
		if len(missing) > 0 {
			return &UsageError{fmt.Sprintf("the files of %s do not state %s of the server: write lines such as "+
				"\"%s: ...\" into %s, or put its launch command into launch.sh there, or give --cluster", f.Folder.Path,
				strings.Join(missing, ", "), missing[0], filepath.Join(f.Folder.Path, "server.yaml"))}
		}
	}
	return nil
}

// version is that of vLLM in a recording, up to its minor number.
var version = regexp.MustCompile(`(?i)^vllm v?(\d+\.\d+)`)

// recordedSettings are those of the engine that the recordings state, if they state the same.
func (s *setup) recordedSettings() (settings []string) {
	if m := version.FindStringSubmatch(s.engine); m != nil {
		settings = append(settings, "preset=vllm-"+m[1])
	}
	var runs []*recording.Run
	for _, f := range s.files {
		runs = append(runs, f.Runs...)
	}
	for i, run := range runs {
		if i > 0 && !slices.Equal(run.Settings, runs[0].Settings) {
			s.warnf("the recordings state different settings of the engine: these are ignored")
			return settings
		}
	}
	if len(runs) > 0 {
		settings = append(settings, runs[0].Settings...)
	}
	return settings
}

// withoutPath is the text of an error about the deployment that the flags describe: it is in no file.
func withoutPath(err error) string {
	if wrong := (*strictyaml.Error)(nil); errors.As(err, &wrong) {
		return strings.TrimPrefix(wrong.Msg, "deployments[0].")
	}
	return err.Error()
}

// longestRequest is the tokens of the longest recorded request, at least 1.
func (s *setup) longestRequest() int64 {
	longest := int64(1)
	for _, f := range s.files {
		for _, run := range f.Runs {
			for i := range run.Outcomes {
				longest = max(longest, run.Outcomes[i].InputTokens+run.Outcomes[i].OutputTokens)
			}
		}
	}
	return longest
}

// findKernels finds the kernels of the deployment; none if the model or the GPU has no tables of them.
func (s *setup) findKernels() (shape, error) {
	if s.options.Latency == "linear" {
		return shape{}, nil
	}
	load := func(override string) (*cluster.Config, error) {
		all := append(slices.Clone(s.overrides), fmt.Sprintf("deployments.%s.%s", s.id, override))
		return cluster.Load(s.options.Cluster, cluster.Options{Hardware: s.options.Hardware, Overrides: all,
			AllowPaths: s.options.AllowPaths})
	}
	c, err := load("latency.model=operators") // with the file's tables and kernels
	if err != nil {
		c, err = load("latency={model: operators}")
	}
	if err != nil && s.options.Latency == "operators" {
		return shape{}, fmt.Errorf("--latency operators: %w", err)
	}
	if err != nil {
		return shape{}, nil
	}
	i := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return d.ID == s.id })
	return newShape(c.Deployments[i].Computed.Operators)
}

// cluster loads the cluster with a number of replicas (0: as the file has).
func (s *setup) cluster(replicas int) (*cluster.Config, error) {
	all := append(slices.Clone(s.overrides), fmt.Sprintf("deployments.%s.latency={model: roofline}", s.id))
	if replicas > 0 {
		all = append(all, fmt.Sprintf("deployments.%s.replicas=%d", s.id, replicas))
	}
	return cluster.Load(s.options.Cluster, cluster.Options{Hardware: s.options.Hardware, Overrides: all,
		AllowPaths: s.options.AllowPaths})
}

// add adds the steps and runs of a file that are of the setup, and warns of the others.
func (s *setup) add(f *recording.Recording) error {
	s.findAliases(f)
	ignored := map[string]int{}
	for _, step := range f.Steps {
		if other := s.otherSetup(step.Model, step.GPU, step.TensorParallel); other != "" {
			ignored["steps of "+other]++
		} else {
			s.steps = append(s.steps, step)
		}
	}
	unquantized := map[string]bool{}
	for _, run := range f.Runs {
		if other := s.otherSetup(run.Model, run.GPU, run.TensorParallel); other != "" {
			ignored["runs of "+other]++
			continue
		}
		if err := s.addReplay(f, run); err != nil {
			return err
		}
		if model.IsQuantized(run.Model) && s.deployment.Engine.Quantization == "" && !model.IsQuantized(s.key.Model) {
			unquantized[run.Model] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unquantized)) {
		s.warnf("%s: %s has quantized weights, but %s is fitted: set engine.quantization by --cluster", f.Path, name,
			s.key.Model)
	}
	for _, what := range slices.Sorted(maps.Keys(ignored)) {
		s.warnf("%s: ignored %s: %d", f.Path, what, ignored[what])
	}
	return nil
}

// otherSetup describes the setup of a run or step; "" if it is this one.
func (s *setup) otherSetup(name, gpu string, tp int) string {
	text := cmp.Or(name, "an unnamed model") + " on " + cmp.Or(gpu, "an unnamed GPU")
	if tp > 0 {
		text += fmt.Sprintf(", tensor parallelism %d", tp)
	}
	if name != "" && !s.isModel(name) || gpu != "" && !s.isGPU(gpu) || tp > 0 && tp != s.key.TensorParallelSize {
		return text
	}
	return ""
}

// isModel reports whether a name is one of the setup's model.
func (s *setup) isModel(name string) bool {
	a, err := model.BuiltIn(name)
	return err == nil && a.Name == s.key.Model || model.SameName(name, s.key.Model) ||
		model.SameName(name, s.deployment.Model) || s.aliases[name]
}

func (s *setup) isGPU(name string) bool {
	g, err := s.hardware.GPU(name)
	return err == nil && g.ID == s.key.GPU || s.aliases[name]
}

// findAliases takes an unknown name of a model or GPU for the setup's, with a warning, if it
// is the only one of its file: a server may call its model by any name.
func (s *setup) findAliases(f *recording.Recording) {
	s.aliases = map[string]bool{}
	models, gpus := map[string]bool{}, map[string]bool{}
	for _, run := range f.Runs {
		models[run.Model], gpus[run.GPU] = true, true
	}
	for _, step := range f.Steps {
		models[step.Model], gpus[step.GPU] = true, true
	}
	take := func(what, is string, names map[string]bool, known func(string) bool) {
		delete(names, "")
		for name := range names {
			if len(names) == 1 && !known(name) {
				s.aliases[name] = true
				s.warnf("%s: unknown %s %s is assumed to be %s", f.Path, what, name, is)
			}
		}
	}
	take("model", s.key.Model, models, func(name string) bool {
		_, err := model.BuiltIn(name)
		return err == nil || s.isModel(name)
	})
	take("GPU", s.key.GPU, gpus, func(name string) bool {
		_, err := s.hardware.GPU(name)
		return err == nil
	})
}

// replicas is the number of replicas that served a run: as recorded, else as the cluster
// has, and at least as many as outcomes name.
func (s *setup) replicas(name string, run *recording.Run) int {
	stated, named := s.deployment.Replicas, replicasOf(run.Outcomes)
	if run.Replicas == 0 {
		return max(1, named, stated)
	}
	n := max(run.Replicas, named)
	if !s.assumed && n != stated {
		s.warnf("%s: recorded with %d replicas, but %s has %d: replayed as recorded",
			name, n, filepath.Base(s.options.Cluster), stated)
	}
	return n
}
