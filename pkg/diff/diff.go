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
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

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
	d, err := compare(ctx, newComparison(open, &o), o.Streams)
	if err != nil {
		return Verdict{}, err
	}
	text, err := render(d, o.Format)
	if err == nil {
		_, err = out.Write(text)
	}
	failed := slices.ContainsFunc(d.Gates, func(g Gate) bool { return g.Failed })
	return Verdict{Differs: d.Status == statusDiffers, Failed: failed}, err
}

// comparison holds two streams as they are read.
type comparison struct {
	options *Options
	open    Open
	sides   [2]*side
	// ids maps the id of every request of either side to its index.
	ids             map[string]int32
	names           []string
	groups          intern[group]
	replicaIDs      intern[replicaID]
	decisionResults intern[decisionResult]
	warnings        []string
	// pairsOnly excludes requests that only one side has.
	pairsOnly bool
}

func newComparison(open Open, o *Options) *comparison {
	own := strings.Clone
	return &comparison{options: o, open: open, ids: map[string]int32{},
		groups:     newIntern(func(g group) group { return group{own(g.class), own(g.tenant), own(g.model)} }),
		replicaIDs: newIntern(func(p replicaID) replicaID { return replicaID{own(p.deployment), p.index} }),
		decisionResults: newIntern(func(c decisionResult) decisionResult {
			c.verdict, c.deployment = own(c.verdict), own(c.deployment)
			return c
		})}
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
	// clone copies a value whose strings may be part of larger memory, as those of
	// records are.
	clone func(T) T
	of    map[T]int32
	all   []T
}

func newIntern[T comparable](clone func(T) T) intern[T] {
	return intern[T]{clone: clone, of: map[T]int32{}}
}

func (t *intern[T]) number(v T) int32 {
	n, ok := t.of[v]
	if !ok {
		v = t.clone(v)
		n = int32(len(t.all))
		t.of[v] = n
		t.all = append(t.all, v)
	}
	return n
}

func (c *comparison) warn(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}
