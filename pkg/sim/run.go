package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"blis/pkg/anomaly"
	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/stream"
)

// Options are what a call of blis-sim may say.
type Options struct {
	Workload              string         `arg:"" optional:"" default:"-" help:"Workload stream, zstd or plain; - is stdin."`
	Cluster               string         `short:"c" placeholder:"FILE" help:"Cluster file (YAML or JSON); without it the built-in one: four replicas of an 8B model on an H100."`
	Policies              string         `short:"p" placeholder:"FILE" help:"A bundle of policies (YAML or JSON) in the place of the cluster file's."`
	Set                   []string       `sep:"none" placeholder:"PATH=VALUE" help:"Override one value of the cluster file: deployments.main.replicas=1, routing.params.queue-depth=0.3; @FILE has an object of such. Repeatable."`
	Hardware              []string       `sep:"none" placeholder:"PATH" help:"A file or directory (*.yaml) of your own GPUs and measured coefficients, beside the built-in ones. Repeatable."`
	Seed                  uint64         `default:"0" help:"Seed of the simulation's own random streams: of policies that draw, and of latency.jitter."`
	JitterSeed            *uint64        `placeholder:"SEED" help:"Another seed for latency.jitter."`
	Horizon               *Horizon       `placeholder:"DURATION" help:"Stop at this simulated time (90s, 10m); what is not final then is unfinished."`
	Trace                 string         `default:"decisions" enum:"minimal,decisions,full" help:"What to write: minimal (metrics), decisions (and outcomes and decisions), full (and every step, candidate, preemption and snapshot)."`
	ITL                   bool           `name:"itl" help:"Outcomes carry every gap between tokens."`
	Clairvoyant           bool           `help:"Route by the true state of the replicas and the true lengths of answers, to where each request ends first by estimate, whatever the policy says: a run to compare with."`
	Counterfactual        Counterfactual `placeholder:"K|exact:N|IDS" help:"Estimate what the K best replicas would have made of each request; or play the N decisions with the largest estimated regret (exact:N, exact:N:all), or those named (dec-000913,dec-000914), with other choices."`
	CounterfactualHorizon *Horizon       `placeholder:"DURATION" help:"How far beyond its decision an other choice is played; to the end of the run if absent."`
	Replay                string         `placeholder:"RUN" help:"Play this run again, with all that its header says, and compare: the first difference is an error. With --set or --policies it is a what-if: a run of its own, with those other settings."`
	Check                 bool           `help:"Hold the run to its contracts while it happens; slower."`
	Strict                bool           `help:"Warnings about the workload are errors."`
	PrintConfig           bool           `help:"Print the resolved configuration as JSON and exit."`
	List                  string         `enum:"${lists}," default:"" placeholder:"WHAT" help:"List one of these and exit: ${listed}."`
	Format                string         `enum:"text,json" default:"text" help:"Of --list: text or json (of policies: the search space, with ranges and defaults)."`
	Plain                 bool           `help:"Write the stream uncompressed."`

	// Given are the flags that the call names; a what-if takes the others from its
	// parent.
	Given  []string `kong:"-"`
	parent *parent  // nil of a run that does not come from another one
	// Version goes into the header; Warn and Progress speak to the user. A nil
	// func is silent.
	Version  string       `kong:"-"`
	Warn     func(string) `kong:"-"`
	Progress func(string) `kong:"-"`
}

// jitterSeed is the seed of the jitter's streams.
func (o *Options) jitterSeed() uint64 {
	if o.JitterSeed != nil {
		return *o.JitterSeed
	}
	return o.Seed
}

// Horizon is a simulated time at which a run stops.
type Horizon struct{ Time des.Time }

// UnmarshalText reads a Go duration.
func (h *Horizon) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d%time.Microsecond != 0 {
		return fmt.Errorf("must be a duration of whole µs such as 90s or 10m, is %q", text)
	}
	h.Time = d.Microseconds()
	return nil
}

func (o *Options) warn(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}

// us is the horizon as headers have it.
func (h *Horizon) us() *stream.Micros {
	if h == nil {
		return nil
	}
	at := stream.Micros(h.Time)
	return &at
}

// noHorizon is later than anything.
const noHorizon = des.Time(math.MaxInt64)

// Run plays the workload on in through the cluster that o names and writes the
// run to out. A fault in the cluster file is a *config.Error, one in the
// workload a *stream.SyntaxError; then the stream on out has no end record.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.List != "" {
		return list(out, o)
	}
	if o.Replay != "" {
		return replayRun(ctx, in, out, o)
	}
	c, err := cluster.Load(o.Cluster, cluster.Options{Bundle: o.Policies, Sets: o.Set, Hardware: o.Hardware, Warn: o.Warn})
	if err != nil {
		return err
	}
	return runLoaded(ctx, c, in, out, o)
}

// printConfig writes c as people read it.
func printConfig(out io.Writer, c *cluster.Config) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

// runLoaded is Run on a cluster that is loaded.
func runLoaded(ctx context.Context, c *cluster.Config, in io.Reader, out io.Writer, o Options) error {
	if o.PrintConfig {
		return printConfig(out, c)
	}
	jitters := slices.ContainsFunc(c.Deployments, func(d cluster.Deployment) bool { return d.Latency.Jitter.CV > 0 })
	if o.JitterSeed != nil && !jitters {
		o.warn("--jitter-seed has no effect: no deployment has latency.jitter")
	}
	servers, err := serversOf(c, o.jitterSeed())
	if err != nil {
		return err
	}
	return runCluster(ctx, c, servers, in, out, o)
}

// runCluster is Run on a cluster that is loaded and valid.
func runCluster(ctx context.Context, c *cluster.Config, servers []server, in io.Reader, out io.Writer, o Options) error {
	reader := stream.NewReader(in)
	defer reader.Close()
	return simulate(ctx, c, servers, reader, out, o)
}

// simulate plays the workload of a reader that the caller closes.
func simulate(ctx context.Context, c *cluster.Config, servers []server, reader *stream.Reader, out io.Writer, o Options) error {
	if o.ITL && o.Trace == stream.TraceLevels[0] {
		o.warn("--itl has no effect with --trace minimal: there are no outcomes")
	}
	if err := o.Contradiction(); err != nil {
		return err
	}
	arrivals, workload, err := openArrivals(reader)
	if err != nil {
		return err
	}
	header := runHeader(c, workload, o)
	if err := o.parent.check(header, &o); err != nil {
		return err
	}
	w := stream.NewWriter(out, o.Plain)
	if err := play(ctx, c, servers, arrivals, header, w, o); err != nil {
		w.Close() // what is written stays readable, and says that it is truncated
		return err
	}
	return w.Close()
}

// play runs the simulation between its header and its end.
func play(ctx context.Context, c *cluster.Config, servers []server, a *arrivals, header *stream.Header, w *stream.Writer, o Options) error {
	s, err := newSimulation(c, header.SLOClasses, servers, &o)
	if err != nil {
		return err
	}
	s.arrivals, s.out = a, &output{w: w, level: slices.Index(stream.TraceLevels, o.Trace)}
	book := &book{Accumulator: metrics.New(header.SLOClasses)}
	s.ledger = book
	kept := o.Counterfactual.watch(s, book)
	if s.out.level >= traceDecisions {
		book.Watch(anomaly.Detectors.Names())
		s.lookout = newLookout(len(s.replicas), book.Anomaly)
	}
	if s.seen.needs&(policy.NeedShadow|policy.NeedCache) != 0 {
		book.Expects()
	}
	if o.Horizon != nil {
		s.horizon = o.Horizon.Time
	}
	if o.Check {
		s.check = &checker{s}
	}
	for _, class := range s.router.Classes {
		if _, known := s.router.classes[class]; !known && class != "" {
			o.warn(fmt.Sprintf("the policies name the SLO class %q, which the workload does not have", class))
		}
	}
	// The first request before the first byte: a fault that comes down the pipe
	// can then still take the place of the run.
	if err := s.pull(); err != nil {
		return err
	}
	if err := w.Header(header); err != nil {
		return err
	}
	if err := s.run(func() error { s.progress(o.Progress); return ctx.Err() }); err != nil {
		return err
	}
	if err := s.close(); err != nil {
		return err
	}
	if kept != nil {
		if err := replay(ctx, c, servers, kept, s, header.SLOClasses, &o); err != nil {
			return err
		}
	}
	for _, warning := range a.reader.Warnings() {
		if o.Strict {
			return errors.New(warning)
		}
		o.warn(warning)
	}
	if failed := s.control().Warning(); failed != "" {
		o.warn(failed)
	}
	for i := range s.deployments {
		if d := &s.deployments[i]; d.fromFile {
			if beyond := s.beyond(d); beyond != "" {
				o.warn(beyond)
			}
		}
	}
	summary := s.summary(book.Accumulator)
	if summary.Load, err = book.demand.load(c); err != nil {
		return err
	}
	if err := w.Any(summary); err != nil {
		return err
	}
	return w.End(&stream.End{Requests: &s.counts, WorkloadDigest: a.reader.Digest()})
}

// runHeader names everything that the run's bytes depend on beside the
// workload's own.
func runHeader(c *cluster.Config, workload *stream.Header, o Options) *stream.Header {
	if workload == nil {
		workload = &stream.Header{}
	}
	return &stream.Header{Stream: stream.StreamRun, Tool: "blis-sim", Version: o.Version,
		Seed: o.Seed, SLOClasses: workload.SLOClasses,
		Run: &stream.RunHeader{
			Key:   stream.SimulationKey{Policy: stream.Digest(c.Policies.Anonymous()), WorkloadSeed: workload.Seed, SimSeed: o.Seed, JitterSeed: o.jitterSeed()},
			Trace: o.Trace, HorizonUS: o.Horizon.us(), ITL: o.ITL,
			Clairvoyant: o.Clairvoyant, Counterfactual: o.Counterfactual.text, CounterfactualUS: o.CounterfactualHorizon.us(),
			Workload:     stream.Source{Tool: workload.Tool, Seed: workload.Seed, SpecDigest: workload.SpecDigest},
			ConfigDigest: stream.Digest(c), Config: c,
		}}
}

// progress tells how far the run has come.
func (s *simulation) progress(tell func(string)) {
	if tell != nil {
		tell(fmt.Sprintf("%d requests, %.0f s simulated", s.counts.Offered, float64(s.now)/1e6))
	}
}
