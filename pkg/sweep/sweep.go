// Package sweep simulates many configurations in one process: each workload is read once, configurations are
// loaded once, and runs use all cores. A run has the same bytes and metrics as a single one.
package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"blis/pkg/cluster"
	"blis/pkg/fitness"
	"blis/pkg/sim"
	"blis/pkg/stream"
)

// Options are those of a sweep besides the options of each run.
type Options struct {
	Sweep     string `group:"Many runs:" placeholder:"FILE" help:"Simulate all runs of a grid file, or of JSON lines on stdin (-), and write a result of each."`
	Fitness   string `group:"Many runs:" placeholder:"FILE|EXPR" help:"Score of each result of --sweep: a fitness file or an expression."`
	Results   string `rare:"" group:"Many runs:" placeholder:"DIR" help:"Keep each result of --sweep in a folder; runs that are there are not repeated."`
	KeepRuns  bool   `rare:"" group:"Many runs:" help:"Keep the runs of --sweep in the folder of --results, too."`
	EarlyStop bool   `rare:"" group:"Many runs:" help:"End a run of --sweep when a gate of --fitness cannot hold any more. It has score 0 and no metrics."`
	Shard     Shard  `rare:"" group:"Many runs:" placeholder:"K/N" help:"Only part K of N of --sweep."`
}

// Shard is a part of a sweep: every n-th point, beginning with point k-1. The zero value is the whole sweep.
type Shard struct{ k, n int }

// UnmarshalText reads "2/4".
func (s *Shard) UnmarshalText(text []byte) error {
	a, b, ok := strings.Cut(string(text), "/")
	k, errK := strconv.Atoi(a)
	n, errN := strconv.Atoi(b)
	if !ok || errK != nil || errN != nil || k < 1 || k > n {
		return fmt.Errorf("is %q; must be K/N with K from 1 to N, such as 1/4", text)
	}
	*s = Shard{k, n}
	return nil
}

func (s Shard) has(index int) bool { return s.n == 0 || index%s.n == s.k-1 }

// Call is the rest of a call: what the runs share.
type Call struct {
	// Run are the options of each run. Warn and Progress are not used: a result has its warnings.
	Run sim.Options
	// Workloads are those of the grid if it names none. With points on stdin, the first is that of points that name
	// none.
	Workloads []string
	// Build identifies the program besides its version: results of another one are not used.
	Build string
	// Open opens a workload.
	Open func(name string) (io.ReadCloser, error)
	// Prefix returns the name, for Open, of the first n requests or sessions of a workload.
	Prefix func(workload string, n int) string
	// AtRate returns the name, for Open, of a workload that is scaled to that many arrivals per second.
	AtRate func(workload string, rate float64) string
	// Progress is called with the number of results so far; nil if no one listens.
	Progress func(done int)
	// Warn is called with what concerns all results; nil if no one listens.
	Warn func(text string)
}

// AllFailed is the error of a sweep without a result that has metrics. The results were written.
type AllFailed struct{ error }

// Unwrap returns the error.
func (e AllFailed) Unwrap() error { return e.error }

// Run simulates the points of o.Sweep, in is stdin, and passes the results to write, in the order of the points.
func Run(ctx context.Context, in io.Reader, write func(*Result) error, o Options, call Call) error {
	s := &sweep{call: call, configs: cache[*configuration]{limit: cacheLimit},
		scaled: cache[*sim.Workload]{limit: cacheLimit}}
	points, grid, err := s.open(in, o)
	if err != nil {
		return err
	}
	seeds := seedCheck{write: write}
	write = seeds.add
	defer func() {
		if call.Warn != nil && seeds.haveNoEffect() {
			call.Warn("runs that differ only in their seed are equal: nothing in them is random. For replicates, use " +
				"workloads of several blis-gen --seed")
		}
	}()
	if grid != nil && grid.Halving != nil {
		if o.Shard != (Shard{}) {
			return errors.New("--shard has no effect on a grid with halving: each round compares all configurations")
		}
		return s.halve(ctx, grid, write)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var total, failed int
	var first string
	for waiting := range s.start(ctx, points, o.Shard) {
		var r *Result
		select {
		case r = <-waiting:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if total++; r.failed() {
			if failed++; first == "" {
				first = r.Error
			}
		}
		if err := write(r); err != nil {
			return err
		}
		if call.Progress != nil {
			call.Progress(total)
		}
	}
	if failed == total && total > 0 {
		return AllFailed{fmt.Errorf("no run of %d has metrics; the first: %s", total, first)}
	}
	return ctx.Err()
}

// Runner simulates points for a caller that chooses them by earlier results. Workloads, configurations and the folder
// of results are shared.
type Runner struct{ s *sweep }

// NewRunner returns a Runner that scores with f, nil for no score. Of o, only Results and KeepRuns are used.
func NewRunner(o Options, f *fitness.Fitness, call Call) (*Runner, error) {
	s := &sweep{call: call, fitness: f, configs: cache[*configuration]{limit: cacheLimit},
		scaled: cache[*sim.Workload]{limit: cacheLimit}}
	if o.Results == "" {
		return &Runner{s}, nil
	}
	var err error
	s.store, err = openStore(o.Results, o.KeepRuns)
	return &Runner{s}, err
}

// Run returns the results of points in their order. It uses all cores.
func (r *Runner) Run(ctx context.Context, points []Point) (all []*Result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for waiting := range r.s.start(ctx, slices.Values(points), Shard{}) {
		select {
		case result := <-waiting:
			all = append(all, result)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return all, ctx.Err()
}

// Cluster returns the configuration of a point.
func (r *Runner) Cluster(p *Point) (*cluster.Config, error) {
	c, err := r.s.configuration(&p.Override)
	if err != nil {
		return nil, err
	}
	return c.Config, nil
}

// sweep is the state that the runs share.
type sweep struct {
	call      Call
	fitness   *fitness.Fitness // nil if none was asked for
	earlyStop bool             // by the gates of the fitness
	store     *store           // nil if results are not kept
	workloads cache[*sim.Workload]
	scaled    cache[*sim.Workload] // to other rates
	configs   cache[*configuration]
}

// open reads what the options name.
func (s *sweep) open(in io.Reader, o Options) (points iter.Seq[Point], g *Grid, err error) {
	if o.Fitness != "" {
		if s.fitness, err = loadFitness(o.Fitness); err != nil {
			return nil, nil, err
		}
	}
	if s.earlyStop = o.EarlyStop; s.earlyStop && (s.fitness == nil || s.fitness.Watch(1, nil) == nil) {
		return nil, nil, errors.New("--early-stop has no effect: it needs a --fitness with a gate that can be " +
			"decided before the end, such as m.ttft.p99 < 500 or m.goodput.ratio >= 0.95")
	}
	if o.Results != "" {
		if s.store, err = openStore(o.Results, o.KeepRuns); err != nil {
			return nil, nil, err
		}
	}
	if o.Sweep == "-" {
		return readPoints(in), nil, nil
	}
	if g, err = readGrid(o.Sweep); err != nil {
		return nil, nil, err
	}
	return g.points(s.call.Workloads), g, nil
}

// loadFitness reads a fitness that metrics without outcomes can be scored by.
func loadFitness(src string) (*fitness.Fitness, error) {
	load := fitness.Load
	if !fitness.IsFile(src) {
		load = func(src string) (*fitness.Fitness, error) { return fitness.Expression("--fitness", src) }
	}
	f, err := load(src)
	if err != nil {
		return nil, err
	}
	if len(f.SLO) > 0 {
		return nil, fmt.Errorf("%s: slo: other SLO targets need the outcomes of the runs: set the targets in the "+
			"workload, or keep the runs and summarize them", src)
	}
	return f, f.CheckReferences(false, false)
}

// ahead is the number of points that wait for an earlier one to be written.
const ahead = 1 << 12

// start simulates the points on all cores, and returns channels of their results in order. It ends with ctx.
func (s *sweep) start(ctx context.Context, points iter.Seq[Point], part Shard) <-chan chan *Result {
	type job struct {
		index int
		Point
		done chan *Result
	}
	jobs, all := make(chan job), make(chan chan *Result, ahead)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range jobs {
				j.done <- s.run(ctx, j.index, &j.Point)
			}
		})
	}
	go func() {
		defer close(all)
		defer workers.Wait()
		defer close(jobs)
		index := -1
		for p := range points {
			if index++; !part.has(index) {
				continue
			}
			j := job{index, p, make(chan *Result, 1)}
			select {
			case all <- j.done:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	}()
	return all
}

// run returns the result of a point.
func (s *sweep) run(ctx context.Context, index int, p *Point) *Result {
	r := &Result{Kind: kindResult, Index: index, Set: p.Set, Policies: p.Policies, Workload: p.Workload,
		Rate: p.Rate, Seed: s.call.Run.Seed}
	if p.Seed != nil {
		r.Seed = *p.Seed
	}
	if r.Workload == "" && len(s.call.Workloads) > 0 {
		r.Workload = s.call.Workloads[0]
	}
	err := p.err
	if err == nil {
		err = s.simulate(ctx, r)
	}
	if err != nil {
		r.Error = err.Error()
	}
	if s.fitness != nil && r.Fitness == nil {
		r.Fitness = s.fitness.Empty()
	}
	return r
}

// simulate fills in the rest of r.
func (s *sweep) simulate(ctx context.Context, r *Result) error {
	w, err := s.workload(r.Workload, r.Rate)
	if err != nil {
		return err
	}
	c, err := s.configuration(&Override{Policies: r.Policies, Set: r.Set})
	if err != nil {
		return err
	}
	o := s.call.Run
	o.Seed, o.Progress = r.Seed, nil
	var warnings []string
	o.Warn = func(text string) { warnings = append(warnings, text) }
	run := w.Case(c.Config, o)
	h := run.Header.Run
	r.ID, r.WorkloadDigest, r.ConfigDigest, r.Policy = s.id(run, w), w.Digest(), h.ConfigDigest, h.Key.Policy
	var broken *fitness.Gate
	if s.earlyStop {
		if watch := s.fitness.Watch(w.Requests, run.Header.SLOClasses); watch != nil {
			o.StopWhen = func(out *stream.Outcome) bool { broken = watch.Add(out); return broken != nil }
			run = w.Case(c.Config, o)
		}
	}
	done, err := s.finished(ctx, r.ID, run, &warnings, &broken)
	if err != nil {
		return err
	}
	if r.Stopped = done.Stopped; r.Stopped != nil {
		return nil
	}
	r.Metrics, r.Warnings = done.Metrics, append(c.warnings[:len(c.warnings):len(c.warnings)], done.Warnings...)
	if s.fitness == nil {
		return nil
	}
	raw, err := decodeMetrics(r.Metrics)
	if err == nil {
		m := fitness.Tree{Raw: raw, NoAnomalies: o.Trace == minimal}
		r.Fitness, err = s.fitness.Evaluate(fitness.NewRun(m, w.SLOClasses(), fitness.Tree{}, fitness.Tree{}))
	}
	return err
}

// finished returns the stored result with this id, or simulates the run. broken is the gate that ended it.
func (s *sweep) finished(ctx context.Context, id string, run *sim.Case, warnings *[]string,
	broken **fitness.Gate) (*stored, error) {
	if s.store != nil {
		if done, err := s.store.load(id); done != nil || err != nil {
			return done, err
		}
	}
	record := emptyRecord()
	var err error
	if s.store != nil && s.store.runs {
		err = s.store.write(s.store.file(id, ".jsonl.zst"), func(out io.Writer) error {
			record, err = run.Write(ctx, out)
			return err
		})
	} else {
		record, err = run.Evaluate(ctx)
	}
	if stopped, ok := errors.AsType[sim.Stopped](err); ok {
		done := &stored{ID: id, Stopped: &Stopped{"gate", (*broken).Name, (*broken).Expr, stopped.AtUS}}
		if s.store != nil {
			return done, s.store.save(done)
		}
		return done, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := encode(&record.Raw)
	if err != nil {
		return nil, err
	}
	done := &stored{ID: id, Metrics: text, Warnings: *warnings}
	if s.store != nil {
		err = s.store.save(done)
	}
	return done, err
}

// encode is json.Marshal with the signs of expressions as they are.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// errNoWorkload is the error of a point without a workload.
var errNoWorkload = errors.New("no workload: name one in the call, the grid or the point")
