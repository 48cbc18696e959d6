// Package diff compares two streams: two runs of the same workload, or a run and
// a recording of a real server; and the ranks of several.
//
// # Pairs
//
// Two runs of one workload (its digest closes each) are paired by request id, so
// that what the workload does to both does not count as a difference. A recording is
// paired with a run by ids if half of them are common, of requests as long, or by
// order of arrival, and only what both have is compared. What cannot be paired is
// compared only where that is asked for, as independent.
//
// # Intervals
//
// The interval of a difference b − a holds 95 % of what it comes out as when
// blocks of requests, in order of arrival, are drawn with replacement: the
// percentiles of 1000 draws (stat.Resampling). Pairs go through the same draws.
// Blocks are as long as the paired differences of TTFT and E2E are correlated
// (stat.BlockLength), which the result states in requests and in seconds. Throughputs are
// of what completes while the requests of a block come.
// Maxima, percentiles of ITL and what only replicas know have no interval.
//
// # Decisions
//
// Decisions are paired by request, stage and how many that stage made about the
// request before. They differ where their verdicts or replicas do. The first
// difference in simulated time is shown with what both sides saw; those that
// follow may only be its consequences. An admission that only one side decided
// about differs unless it admits.
package diff

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// Open opens a file, or stdin for "-", from its start, and may do so again. Errors
// call it by what a method Name of the result returns.
type Open func(name string) (io.ReadCloser, error)

// Verdict is what a comparison came to: the two differ, or a gate is true. With
// gates, differences alone are no fault.
type Verdict struct{ Differs, Failed bool }

// Run compares what the streams of the options hold and writes the result to out.
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

// comparison is of two streams as they are read.
type comparison struct {
	options *Options
	open    Open
	sides   [2]*side
	// ids gives every request that a side knows a number, by which both keep it.
	ids      map[string]int32
	names    []string
	groups   intern[group]
	places   intern[place]
	choices  intern[choice]
	warnings []string
	// pairsOnly leaves out requests that only one side has.
	pairsOnly bool
}

func newComparison(open Open, o *Options) *comparison {
	own := strings.Clone
	return &comparison{options: o, open: open, ids: map[string]int32{},
		groups:  newIntern(func(g group) group { return group{own(g.class), own(g.tenant), own(g.model)} }),
		places:  newIntern(func(p place) place { return place{own(p.deployment), p.replica} }),
		choices: newIntern(func(c choice) choice { c.verdict, c.deployment = own(c.verdict), own(c.deployment); return c })}
}

// group is what requests are grouped by, place where they were sent.
type group struct{ class, tenant, model string }
type place struct {
	deployment string
	replica    stream.Index
}

// intern numbers values in the order in which they are met.
type intern[T comparable] struct {
	// clone makes of a value one that is no part of larger memory, as the strings of
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
