// Package diff compares two streams, which are two runs of the same workload or a run and
// a recording of a real server, and ranks several pairs of them.
//
// # Pairs
//
// Two runs of one workload (the end record has its digest) are paired by request id, so
// that the noise of the workload cancels. A recording is paired with a run by id if half
// of the ids are common and belong to requests of the same length, or else by order of
// arrival; only requests that both have are compared. Streams that cannot be paired are
// compared only with --unpaired, as independent samples.
//
// # Intervals
//
// The interval of a difference b − a is a 95 % confidence interval by a block bootstrap in
// pairs (package resample); the result reports the block length in requests and seconds.
// Maxima, percentiles of ITL and what only replicas report have no interval.
//
// # Decisions
//
// Decisions are paired by request, stage, and their number among the decisions of that
// stage about the request. They differ if their verdicts or replicas do. The first
// difference in simulated time is reported with the signals of both sides; later ones may
// only be consequences. An admission that only one side decided differs unless it admits.
package diff

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"blis/pkg/stat"
	"blis/pkg/stream"
)

// Open opens a file, or stdin for "-", from its start, and may do so again. Errors use
// the result of its Name method.
type Open func(name string) (io.ReadCloser, error)

// Verdict is the outcome of a comparison: whether the two differ, and whether a gate
// failed. With gates, differences alone are not a failure.
type Verdict struct{ Differs, Failed bool }

// Run compares the streams of the options and writes the result to out.
func Run(ctx context.Context, open Open, out io.Writer, o Options) (Verdict, error) {
	if err := o.Validate(); err != nil {
		return Verdict{}, err
	}
	if o.Rank {
		return Verdict{}, rank(ctx, open, out, &o)
	}
	d, err := compare(ctx, &comparison{options: &o, open: open}, o.Streams)
	if err != nil {
		return Verdict{}, err
	}
	failed := slices.ContainsFunc(d.Gates, func(g Gate) bool { return g.Failed })
	return Verdict{Differs: d.Status == statusDiffers, Failed: failed}, write(out, d, o.Format)
}

// comparison holds two streams as they are read.
type comparison struct {
	options *Options
	open    Open
	sides   [2]*side
	// ids are of the requests of either side; their numbers are the requests' indices.
	ids             ids
	groups          intern[group]
	replicaIDs      intern[replicaID]
	decisionResults intern[decisionResult]
	warnings        []string
	// pairsOnly excludes requests that only one side has.
	pairsOnly bool
}

// group identifies the class, tenant and model of a request, replicaID the replica that
// served it.
type group struct{ class, tenant, model string }
type replicaID struct {
	deployment string
	index      stream.Index
}

// intern numbers values in order of appearance.
type intern[T comparable] struct {
	of  map[T]int32
	all []T
}

func (t *intern[T]) number(v T) int32 {
	n, ok := t.of[v]
	if !ok {
		if t.of == nil {
			t.of = map[T]int32{}
		}
		n = int32(len(t.all))
		t.of[v], t.all = n, append(t.all, v)
	}
	return n
}

func (c *comparison) progress(format string, args ...any) {
	if c.options.Progress != nil {
		c.options.Progress(fmt.Sprintf(format, args...))
	}
}

func (c *comparison) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// read reads both streams.
func (c *comparison) read(ctx context.Context, streams ...string) error {
	for i, name := range streams {
		c.sides[i] = &side{name: name, comparison: c}
		if err := c.sides[i].load(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkWorkloads returns an error if the two runs had different requests.
func (c *comparison) checkWorkloads() error {
	a, b := c.sides[0], c.sides[1]
	if c.options.Unpaired || a.end == nil || b.end == nil {
		return nil
	}
	if x, y := a.end.WorkloadDigest, b.end.WorkloadDigest; x != y || x == "" {
		return fmt.Errorf("%s and %s have different workloads (%s and %s); "+
			"--unpaired compares them as independent samples", a.name, b.name,
			cmp.Or(stream.ShortDigest(x), "unknown"), cmp.Or(stream.ShortDigest(y), "unknown"))
	}
	return nil
}

// compare reads two streams and compares them.
func compare(ctx context.Context, c *comparison, streams []string) (*Document, error) {
	if err := c.read(ctx, streams...); err != nil {
		return nil, err
	}
	a, b := c.sides[0], c.sides[1]
	pairing, err := c.pair()
	if err != nil {
		return nil, err
	}
	selection, err := c.selection()
	if err != nil {
		return nil, err
	}
	d := &Document{A: a.identity(), B: b.identity(), Selection: selection, Config: []Setting{}}
	if a.outcomes > 0 && b.outcomes > 0 && !c.options.Unpaired {
		d.Requests = c.compareRequests(c.byArrival(a, b))
	}
	if err := c.computeMetrics(ctx); err != nil {
		return nil, err
	}
	if c.areRuns() {
		d.Config = c.compareSettings()
	}
	var intervals map[string]stat.Interval
	if a.outcomes > 0 && b.outcomes > 0 {
		c.progress("comparing")
		if !c.options.Unpaired && c.areRuns() {
			if d.Decisions, err = c.compareDecisions(ctx); err != nil {
				return nil, err
			}
		}
		for _, s := range c.sides { // frees their memory
			s.decisions, s.lastDecisions = pages[decision]{}, pages[int32]{}
		}
		c.ids.slots = nil // no id is looked up from here on
		d.Bootstrap, intervals = c.bootstrap()
	}
	d.Metrics = compareMetrics(a.raw, b.raw, intervals)
	d.Fidelity = c.fidelity(pairing, d.Metrics)
	d.setReplicaNames(a.raw, b.raw)
	for _, g := range c.options.gates {
		failed, err := g.isTrue(d.Metrics)
		if err != nil {
			return nil, err
		}
		d.Gates = append(d.Gates, Gate{g.src, failed})
	}
	d.Status = statusSame
	if d.differs() {
		d.Status = statusDiffers
	}
	d.Warnings = append([]string{}, c.warnings...)
	return d, nil
}

// areRuns reports whether neither side is a recording.
func (c *comparison) areRuns() bool { return c.sides[0].recorded == nil && c.sides[1].recorded == nil }

// selection describes the selected part of the requests, nil if all are selected. It is
// an error if none is.
func (c *comparison) selection() (*Selection, error) {
	if c.options.selects == nil {
		return nil, nil
	}
	s := &Selection{Where: c.options.Where, Of: int64(c.ids.len())}
	for n := range c.ids.len() {
		if c.isSelected(n) {
			s.Requests++
		}
	}
	if s.Requests == 0 && s.Of > 0 {
		return nil, fmt.Errorf("--where: %s is true for none of the %d requests", s.Where, s.Of)
	}
	return s, nil
}
