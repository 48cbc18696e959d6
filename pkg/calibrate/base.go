package calibrate

import (
	"cmp"
	"fmt"
	"slices"

	"blis/pkg/cluster"
	"blis/pkg/model"
	"blis/pkg/sim"
)

// server is what recordings say that they are of, as far as they do.
type server struct {
	model, gpu string
	tp         int
}

// recorded is what the recordings say first, and notes the engine. Flags win.
func (s *setup) recorded() server {
	var is server
	see := func(model, gpu string, tp int, engine string) {
		is = server{cmp.Or(is.model, model), cmp.Or(is.gpu, gpu), cmp.Or(is.tp, tp)}
		s.engine = cmp.Or(s.engine, engine)
	}
	for _, r := range s.files {
		for _, run := range r.Runs {
			see(run.Model, run.GPU, run.TensorParallel, run.Engine)
		}
		for _, step := range r.Steps {
			see(step.Model, step.GPU, step.TensorParallel, step.Engine)
		}
	}
	o := s.options
	return server{cmp.Or(o.Model, is.model), cmp.Or(o.GPU, is.gpu), max(1, cmp.Or(o.TP, is.tp))}
}

// base is a cluster file, or what stands for one, and the deployment of it that was
// recorded.
type base struct {
	options *Options
	id      string
	sets    []string
	what    string // served on what, for faults
}

// base finds the deployment in the cluster file, or makes one of what is known.
func (s *setup) base(is server) (*base, error) {
	o := s.options
	b := &base{options: o, id: "main", what: fmt.Sprintf("%s on %d x %s", is.model, is.tp, is.gpu)}
	if s.assumed {
		if is.model == "" || is.gpu == "" {
			return nil, &CallError{"the recordings do not say what was served on what: give --model and --gpu, or --cluster"}
		}
		if _, err := model.BuiltIn(is.model); err != nil {
			return nil, fmt.Errorf("--model: %w; for another, --cluster takes a file whose model_config names its config.json", err)
		}
		b.sets = []string{"policies={routing: {type: round-robin}}",
			fmt.Sprintf("deployments.main={id: main, model: %q, gpu: %q, replicas: 1, engine: {tensor_parallel_size: %d}}", is.model, is.gpu, is.tp)}
		return b, nil
	}
	c, err := cluster.Load(o.Cluster, cluster.Options{Hardware: o.Hardware})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return o.Model == "" || d.Model == o.Model })
	if i < 0 || o.Model == "" && len(c.Deployments) > 1 {
		return nil, &CallError{fmt.Sprintf("%s: --model must name the model of one of its deployments", o.Cluster)}
	}
	d := &c.Deployments[i]
	if o.TP > 0 && o.TP != d.Engine.TensorParallelSize {
		return nil, fmt.Errorf("--tp is %d, and tensor_parallel_size in %s %d", o.TP, o.Cluster, d.Engine.TensorParallelSize)
	}
	b.id = d.ID
	return b, nil
}

// load reads the cluster with so many replicas (0: what it says) and more settings.
func (b *base) load(replicas int, more ...string) (*cluster.Config, error) {
	all := append(slices.Clone(b.sets), fmt.Sprintf("deployments.%s.latency={model: roofline}", b.id))
	if replicas > 0 {
		all = append(all, fmt.Sprintf("deployments.%s.replicas=%d", b.id, replicas))
	}
	return cluster.Load(b.options.Cluster, cluster.Options{Hardware: b.options.Hardware, Sets: append(all, more...)})
}

// player is a playerOf.
func (b *base) player(replicas int, more ...string) (*sim.Player, error) {
	for k, m := range more {
		more[k] = fmt.Sprintf("deployments.%s.%s", b.id, m)
	}
	c, err := b.load(replicas, more...)
	if err != nil {
		return nil, err
	}
	return sim.NewPlayer(c)
}
