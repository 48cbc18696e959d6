package sim

import (
	"cmp"
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
	"blis/pkg/deploy"
	"blis/pkg/des"
	"blis/pkg/metrics"
	"blis/pkg/policy"
	"blis/pkg/spill"
	"blis/pkg/stream"
)

// Options are the options of blis-sim.
type Options struct {
	Workload string   `arg:"" optional:"" default:"-" help:"Workload stream, plain, zstd or gzip; - is stdin."`
	Cluster  string   `group:"Cluster:" short:"c" placeholder:"FILE" help:"Cluster file. Default: four H100 replicas of an 8B model."`
	Policies string   `group:"Cluster:" short:"p" placeholder:"FILE" help:"Policy bundle; replaces the policies of the cluster file."`
	Set      []string `group:"Cluster:" sep:"none" placeholder:"PATH=VALUE" help:"Override one value, or all values in @FILE. Repeatable."`
	Hardware []string `rare:"" group:"Cluster:" sep:"none" placeholder:"PATH" help:"Add GPUs and coefficients from a file or directory. Repeatable."`

	Operators string `rare:"" group:"Cluster:" placeholder:"DIR" help:"Measured kernels: a folder aiconfigurator_core/systems."`

	AllowPaths bool `rare:"" group:"Cluster:" env:"BLIS_ALLOW_PATHS" help:"Let the cluster file name files outside of its folder."`

	Seed       uint64   `group:"Run:" default:"0" help:"Seed of the random streams of policies and latency.jitter."`
	JitterSeed *uint64  `rare:"" group:"Run:" placeholder:"SEED" help:"Separate seed for latency.jitter."`
	Horizon    *Horizon `group:"Run:" placeholder:"DURATION" help:"End of the run (90s, 10m); requests in flight are unfinished."`

	// Trace is a trace level.
	Trace string `group:"Records:" default:"decisions" enum:"minimal,decisions,full" help:"Records: minimal (metrics), decisions or full."`
	ITL   bool   `rare:"" group:"Records:" name:"itl" help:"Record every inter-token latency in outcomes."`

	Series *Interval `rare:"" group:"Records:" placeholder:"DURATION" help:"Record the state of each deployment at the end of each interval, such as 1s."`

	Clairvoyant string `rare:"" group:"Records:" enum:",${goals}" default:"" placeholder:"GOAL" help:"Route with knowledge of all arrivals and output lengths, for the lowest mean E2E (latency) or the most met SLO targets (targets): a reference run."`

	Counterfactual Counterfactual `group:"Records:" placeholder:"K|exact:N|scaling:N|IDS" help:"Estimate each request's latency on all replicas and record the K lowest, or re-simulate N (or these) decisions, or N changes of the number of replicas."`

	CounterfactualHorizon *Horizon `rare:"" group:"Records:" placeholder:"DURATION" help:"Simulate only this long after each re-simulated decision."`

	Replay string `group:"Run:" placeholder:"RUN" help:"Repeat a run and compare; with --set or --policies, a what-if run."`
	Check  bool   `group:"Run:" help:"Check invariants during the run (slower)."`
	Strict bool   `rare:"" group:"Run:" help:"Treat warnings about the workload as errors."`

	PrintConfig bool   `group:"Output:" help:"Print the resolved configuration as JSON and exit."`
	Export      string `group:"Output:" enum:"${targets}," default:"" placeholder:"TARGET" help:"Print the configuration for real servers and routers and exit: ${targeted}."`

	List   string `group:"Output:" enum:"${lists}," default:"" placeholder:"WHAT" help:"List one of these and exit: ${listed}."`
	Format string `rare:"" group:"Output:" enum:"text,json,svg" default:"text" help:"Format of --list and --plan; for policies, json is the search space; svg draws the load curve of a plan."`
	Space  string `rare:"" group:"Output:" enum:"${spaces}" default:"policies" help:"What --list policies lists: policies, or the engine settings of the cluster (engine)."`
	Plain  bool   `group:"Output:" help:"Write the stream uncompressed."`

	// Given are the flags on the command line; a what-if inherits the others.
	Given  []string   `kong:"-"`
	parent *parentRun // of a what-if or its replay, else nil
	// memoryRows is how many requests and sessions are in memory for metrics, and ids to find duplicates; 0 is the
	// default of each.
	memoryRows int
	// Version goes into the header. Warn and Progress report to the user; a nil function is silent.
	Version  string       `kong:"-"`
	Warn     func(string) `kong:"-"`
	Progress func(string) `kong:"-"`
	// StopWhen is called with the outcome of each request when it is final. If it returns true, the run ends with
	// Stopped; nil stops none.
	StopWhen func(*stream.Outcome) bool `kong:"-"`
}

// jitterSeed is the seed of latency.jitter.
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
		return fmt.Errorf("is %q; must be a duration in whole µs such as 90s or 10m", text)
	}
	h.Time = d.Microseconds()
	return nil
}

// Interval is a time above 0.
type Interval struct{ Horizon }

// UnmarshalText reads a Go duration.
func (i *Interval) UnmarshalText(text []byte) error {
	if err := i.Horizon.UnmarshalText(text); err != nil {
		return err
	}
	if i.Time == 0 {
		return fmt.Errorf("is %q; must be above 0", text)
	}
	return nil
}

func (i *Interval) us() *stream.Micros {
	if i == nil {
		return nil
	}
	return i.Horizon.us()
}

func (o *Options) warn(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}

// us is the horizon as in headers.
func (h *Horizon) us() *stream.Micros {
	if h == nil {
		return nil
	}
	at := stream.Micros(h.Time)
	return &at
}

// noHorizon is later than any event.
const noHorizon = des.Time(math.MaxInt64)

// Run simulates the workload of in on the cluster that o names and writes the run to out. An error
// in the cluster file is a *strictyaml.Error, one in the workload a *stream.SyntaxError; then the
// stream on out has no end record.
func Run(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.List != "" {
		return list(out, o)
	}
	if o.Replay != "" {
		return replayRun(ctx, in, out, o)
	}
	c, err := o.LoadCluster()
	if err != nil {
		return err
	}
	return runLoaded(ctx, c, in, out, o)
}

// prints reports whether the configuration is printed and nothing is simulated.
func (o *Options) prints() bool { return o.PrintConfig || o.Export != "" }

// print writes c as indented JSON, or for a target.
func (o *Options) print(out io.Writer, c *cluster.Config) error {
	if o.Export != "" {
		text, err := deploy.Export(o.Export, c)
		if err != nil {
			return fmt.Errorf("--export %w", err)
		}
		_, err = io.WriteString(out, text)
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

// runLoaded is Run with a loaded cluster.
func runLoaded(ctx context.Context, c *cluster.Config, in io.Reader, out io.Writer, o Options) error {
	if o.prints() {
		return o.print(out, c)
	}
	specs, err := o.prepare(c)
	if err != nil {
		return err
	}
	return runCluster(ctx, c, specs, in, out, o)
}

// prepare warns of options without effect on c and returns the specs of its replicas.
func (o *Options) prepare(c *cluster.Config) ([]replicaSpec, error) {
	jitters := slices.ContainsFunc(c.Pools(), func(d *cluster.Deployment) bool { return d.Latency.Jitter.CV > 0 })
	if o.JitterSeed != nil && !jitters {
		o.warn("--jitter-seed has no effect: no deployment has latency.jitter")
	}
	if at := slices.IndexFunc(c.Deployments, func(d cluster.Deployment) bool { return d.PrefillFirst() }); at >= 0 &&
		(o.Counterfactual.enabled() || o.Clairvoyant != "") {
		return nil, fmt.Errorf("--counterfactual and --clairvoyant are not supported with stage_order: %s "+
			"(deployment %q)", cluster.PrefillFirst, c.Deployments[at].ID)
	}
	if c.HasEncodePools() && (o.Counterfactual.enabled() || o.Clairvoyant != "") {
		return nil, errors.New("--counterfactual and --clairvoyant are not supported with encode replicas")
	}
	moves := func(d cluster.Deployment) bool {
		return d.Disaggregates() && (d.Transfer.InPieces() || d.Transfer.Pipeline)
	}
	if o.Counterfactual.enabled() && slices.ContainsFunc(c.Deployments, moves) {
		o.warn("the estimates of --counterfactual do not know that blocks move while a prompt is computed or " +
			"decoding begins (transfer); --counterfactual exact:N does")
	}
	lockstep := func(d *cluster.Deployment) bool { return d.Lockstep() }
	if o.Counterfactual.enabled() && slices.ContainsFunc(c.Pools(), lockstep) {
		o.warn("the estimates of --counterfactual do not know that data-parallel ranks wait for each other; " +
			"--counterfactual exact:N does")
	}
	return replicaSpecs(c, o.jitterSeed())
}

// runCluster is Run with a loaded and valid cluster.
func runCluster(ctx context.Context, c *cluster.Config, specs []replicaSpec, in io.Reader, out io.Writer,
	o Options) error {
	reader := stream.NewReader(in)
	defer reader.Close()
	return simulate(ctx, c, specs, reader, out, o)
}

// simulate simulates the workload of a reader that the caller closes.
func simulate(ctx context.Context, c *cluster.Config, specs []replicaSpec, reader *stream.Reader, out io.Writer,
	o Options) error {
	if err := o.check(c); err != nil {
		return err
	}
	arrivals, workload, err := openArrivals(reader)
	if err != nil {
		return err
	}
	defer arrivals.close()
	if arrivals != nil {
		arrivals.ids.limit = o.memoryRows
	}
	header := runHeader(c, workload, o)
	if err := o.parent.check(header, &o); err != nil {
		return err
	}
	_, err = write(ctx, c, specs, arrivals, header, out, o)
	return err
}

// check warns of options without effect and returns an error about those that c does not support.
func (o *Options) check(c *cluster.Config) error {
	if o.ITL && o.Trace == stream.TraceLevels[0] {
		o.warn("--itl has no effect: --trace minimal writes no outcomes")
	}
	return cmp.Or(o.Contradiction(), scalingContradiction(c, o), failureContradiction(c, o))
}

// write is play with a stream on out.
func write(ctx context.Context, c *cluster.Config, specs []replicaSpec, a source, header *stream.Header,
	out io.Writer, o Options) (*metrics.Record, error) {
	w := stream.NewWriter(out, o.Plain)
	record, err := play(ctx, c, specs, a, header, w, o)
	if err != nil {
		w.Close() // keeps what was written readable; it is marked as truncated
		return nil, err
	}
	return record, w.Close()
}

// play runs the simulation, writes header, records and end, and returns the record of metrics. If w is nil,
// nothing is written; then no decision may be evaluated.
func play(ctx context.Context, c *cluster.Config, specs []replicaSpec, a source, header *stream.Header,
	w *stream.Writer, o Options) (*metrics.Record, error) {
	s, err := newSimulation(c, header.SLOClasses, specs, &o)
	if err != nil {
		return nil, err
	}
	s.feed = a
	if o.Horizon != nil {
		s.horizon = o.Horizon.Time
	}
	var bound *metrics.Bound
	if o.Clairvoyant != "" {
		if bound, err = s.lookAhead(ctx, c, header.SLOClasses, specs, &o); err != nil {
			return nil, err
		}
	}
	p := plugIn(s, header, w, &o)
	defer p.metrics.Close()
	defer p.records.close()
	// Read the first request before writing: an error record from upstream then replaces the run.
	if err := s.readNext(); err != nil {
		return nil, err
	}
	if w != nil {
		if err := w.Header(header); err != nil {
			return nil, err
		}
	}
	err = s.run(func() error { progress(s, o.Progress); return ctx.Err() })
	if err == nil {
		err = s.close()
	}
	// An error of a record came first.
	if err := cmp.Or(p.records.close(), err); err != nil {
		return nil, err
	}
	for _, kind := range p.records.anomalies.types {
		p.metrics.AddAnomaly(kind)
	}
	if p.regrets.exact() {
		base, err := newSimulation(c, header.SLOClasses, specs, &o)
		if err != nil {
			return nil, err
		}
		base.horizon = s.horizon
		if x, ok := s.router.chooser.(*clairvoyant); ok {
			base.route(newClairvoyant(len(s.replicas), x.plan))
		}
		p.regrets.warnUnknown(&o)
		if err := p.regrets.resimulate(ctx, base, o.CounterfactualHorizon); err != nil {
			return nil, err
		}
	}
	if p.scaling != nil {
		if err := p.scaling.resimulate(ctx, s, func() (*simulation, error) {
			fresh, err := newSimulation(c, header.SLOClasses, specs, &o)
			if err == nil {
				fresh.horizon = s.horizon
			}
			return fresh, err
		}); err != nil {
			return nil, err
		}
	}
	if err := p.warn(s, a, &o); err != nil {
		return nil, err
	}
	record, err := summary(s, p)
	if err != nil {
		return nil, err
	}
	record.Bound = bound
	if record.Load, err = p.metrics.demand.load(c); err != nil {
		return nil, err
	}
	if w == nil {
		return record, nil
	}
	if err := w.Any(record); err != nil {
		return nil, err
	}
	return record, w.End(&stream.End{Requests: &s.counts, WorkloadDigest: a.digest()})
}

// plugins are the observers of a run that play needs after it.
type plugins struct {
	metrics *metricsSink
	records *recorder
	used    coverages
	regrets *regretRecorder
	scaling *scalingRegret // nil if no change of the number of replicas is re-simulated
	// waits is nil if no deployment scales, recovery if no replica fails.
	waits    *capacityWait
	recovery *recovery
}

// plugIn adds the observers that the options ask for, in the order of their records at one hook.
func plugIn(s *simulation, header *stream.Header, w *stream.Writer, o *Options) *plugins {
	p := &plugins{metrics: &metricsSink{Accumulator: metrics.New(header.SLOClasses)}, records: newRecorder(s, w),
		used: make(coverages, len(s.deployments))}
	p.metrics.Spill(cmp.Or(o.memoryRows, spill.Run))
	if s.dividesCost {
		p.metrics.DivideCost()
	}
	s.observers.add(p.metrics)
	if slices.ContainsFunc(s.deployments, func(d deployment) bool { return d.measuredRange != nil }) {
		s.observers.add(p.used)
	}
	if p.waits = newCapacityWait(s); p.waits != nil {
		s.observers.add(p.waits)
	}
	if s.failures != nil {
		p.recovery = &recovery{}
		s.observers.add(p.recovery)
	}
	if s.series = newSeries(s, p.records, o); s.series != nil {
		s.observers.add(s.series)
	}
	p.regrets = o.Counterfactual.plugIn(s, p.records, p.metrics.Accumulator)
	p.scaling = newScalingRegret(&o.Counterfactual, s, w)
	if o.Check {
		s.observers.add(checker{})
	}
	if o.StopWhen != nil {
		s.observers.add(stopper(o.StopWhen))
	}
	level := slices.Index(stream.TraceLevels, o.Trace) // minimal, decisions, full
	if level > 0 {
		p.metrics.TrackAnomalies(anomaly.Names(s.scales(), s.failures != nil, s.backpressure != nil, s.hasTiers()))
		s.observers.add(&waitMonitor{replicas: make([]limitTimes, len(s.replicas))})
		s.observers.add(newAnomalyMonitor(s, p.records))
		if w != nil {
			s.observers.add(&traceWriter{records: p.records, full: level > 1})
		}
	}
	if s.router.needs.all&policy.NeedsPrefix != 0 {
		p.metrics.HasPrefixPrediction()
	}
	for _, class := range s.router.policies.Classes {
		if _, found := s.router.names.classes[class]; !found && class != "" {
			o.warn(fmt.Sprintf("the policies refer to SLO class %q, which the workload does not define", class))
		}
	}
	return p
}

// warn reports the warnings of a finished run. With --strict those about the workload are errors.
func (p *plugins) warn(s *simulation, workload source, o *Options) error {
	for _, warning := range slices.Concat(workload.warnings(), s.unserved.warnings(s)) {
		if o.Strict {
			return errors.New(warning)
		}
		o.warn(warning)
	}
	if failed := control(s).Warning(); failed != "" {
		o.warn(failed)
	}
	for _, tenant := range s.router.policies.Tenants {
		if _, found := s.router.names.tenantIDs[tenant]; !found {
			o.warn(fmt.Sprintf("admission limits tenant %q, which sent no request", tenant))
		}
	}
	for i := range s.deployments {
		if s.deployments[i].fromFile {
			if beyond := p.used.extrapolation(s, i); beyond != "" {
				o.warn(beyond)
			}
		}
	}
	return nil
}

// runHeader describes everything that determines the run's bytes except the workload itself.
func runHeader(c *cluster.Config, workload *stream.Header, o Options) *stream.Header {
	if workload == nil {
		workload = &stream.Header{}
	}
	return &stream.Header{Stream: stream.StreamRun, Tool: "blis-sim", Version: o.Version,
		Seed: o.Seed, SLOClasses: workload.SLOClasses,
		Run: &stream.RunHeader{
			Key: stream.SimulationKey{Policy: stream.Digest(c.Policies.WithoutLineage()), WorkloadSeed: workload.Seed,
				SimSeed: o.Seed, JitterSeed: o.jitterSeed()},
			Trace: o.Trace, HorizonUS: o.Horizon.us(), ITL: o.ITL, SeriesUS: o.Series.us(),
			Clairvoyant: o.Clairvoyant, Counterfactual: o.Counterfactual.text,
			CounterfactualUS: o.CounterfactualHorizon.us(),
			Workload: stream.Source{Tool: workload.Tool, Seed: workload.Seed, SpecDigest: workload.SpecDigest,
				Shard: workload.Shard},
			ConfigDigest: stream.Digest(c), Config: c,
		}}
}

// progress reports how far the run has come.
func progress(s *simulation, report func(string)) {
	if report != nil {
		report(fmt.Sprintf("%d requests, %.0f s simulated", s.counts.Offered, float64(s.now)/1e6))
	}
}
