// Package resample computes bootstrap samples of the metrics of runs, for confidence
// intervals of differences.
//
// Requests are divided into blocks in order of arrival, and blocks are drawn with
// replacement (stat.Resampling). Runs of the same requests share the bootstrap samples,
// so that the noise of the workload cancels in differences. The block length follows from
// the correlation of TTFT, of E2E and of their paired differences (stat.BlockLength).
//
// A bootstrap sample is a run that consists of the drawn blocks: it has their requests and
// their duration. Throughputs are per second of that duration, as package metrics defines
// them per second of the run. What is not counted by request has no statistics here:
// maxima, percentiles of ITL, sessions, and what only replicas report.
package resample

import (
	"slices"

	"blis/pkg/dist"
	"blis/pkg/metrics"
	"blis/pkg/stat"
)

// Samples is the number of bootstrap samples.
const Samples = 1000

// Source returns the source of random numbers of a seed.
func Source(seed uint64) func(int) int { return dist.NewStream(seed, "bootstrap").IntN }

// Bootstrap holds the bootstrap samples of one or more runs of the same requests.
type Bootstrap struct {
	*stat.Resampling
	// LongEnough is false if the requests are correlated over more than the longest
	// possible block, so that intervals are too narrow.
	LongEnough bool

	runs [][]*Request
	// starts are the first arrivals of the blocks, last is the last arrival; in µs of the run.
	starts []int64
	last   int64
	// samples and scratch are the memory of addLatency.
	samples, scratch []stat.Keyed
}

// New draws the bootstrap samples of runs. All runs have the same requests at the same
// positions, in order of arrival; a request that a run does not have is nil. There must
// be at least one request. The differences of interest are between the last run and the
// others.
func New(source func(int) int, runs ...[]*Request) *Bootstrap {
	length, longEnough := blockLength(runs)
	n := len(runs[0])
	b := &Bootstrap{Resampling: stat.NewResampling(n, length, Samples, source), LongEnough: longEnough, runs: runs}
	b.starts = make([]int64, b.Blocks())
	for i := n - 1; i >= 0; i-- {
		first := slices.IndexFunc(runs, func(run []*Request) bool { return run[i] != nil })
		b.starts[b.Block(i)] = runs[first][i].Arrival
		b.last = max(b.last, runs[first][i].Arrival)
	}
	return b
}

// SpanUS returns the time from the first to the last arrival.
func (b *Bootstrap) SpanUS() int64 { return b.last - b.starts[0] }

// Difference returns the confidence interval of y − x, given the values of both in each
// bootstrap sample. ok is false if it is unknown.
func (b *Bootstrap) Difference(x, y []float64) (ci stat.Interval, ok bool) {
	d := make([]float64, len(x))
	for i := range d {
		d[i] = y[i] - x[i]
	}
	return b.Interval(d)
}

// blockLength returns the block length for the correlation of TTFT and E2E in each run,
// which quantiles depend on, and of their differences. longEnough is false if the runs
// are too short for it.
func blockLength(runs [][]*Request) (length int, longEnough bool) {
	length, longEnough = 1, true
	use := func(series []float64) {
		l, ok := stat.BlockLength(series)
		length, longEnough = max(length, l), longEnough && ok
	}
	last := len(runs) - 1
	values, differences := make([]float64, 0, len(runs[0])), make([]float64, 0, len(runs[0]))
	for _, time := range []func(*Request) int64{func(r *Request) int64 { return r.TTFT },
		func(r *Request) int64 { return r.E2E }} {
		for k, run := range runs {
			values, differences = values[:0], differences[:0]
			for i, q := range run {
				if q == nil || time(q) == Missing {
					continue
				}
				values = append(values, float64(time(q)))
				if other := runs[last][i]; k < last && other != nil && time(other) != Missing {
					differences = append(differences, float64(time(other)-time(q)))
				}
			}
			use(values)
			use(differences)
		}
	}
	return length, longEnough
}

// Run computes the statistics of one run in each bootstrap sample.
type Run struct {
	*Bootstrap
	requests []*Request
	// durations are those of the bootstrap samples, in s.
	durations []float64
	// allITL: all inter-token gaps belong to completed requests, so that the mean ITL
	// follows from their times.
	allITL bool
}

// Run returns the i-th run; raw are its metrics.
func (b *Bootstrap) Run(i int, raw *metrics.Raw) *Run {
	r := &Run{Bootstrap: b, requests: b.runs[i]}
	r.durations = b.Sums(b.blockDurations(int64(raw.FromUS), int64(raw.UntilUS)))
	var gaps int64
	for _, q := range r.requests {
		if q != nil && q.State == Completed && q.Output > 1 {
			gaps += int64(q.Output - 1)
		}
	}
	r.allITL = raw.ITL != nil && raw.ITL.Count == gaps
	return r
}

// blockDurations returns the durations of the blocks, in s, of a run from one time to
// another in µs. The first block starts with the run, the last one ends with it.
func (b *Bootstrap) blockDurations(from, until int64) []float64 {
	durations := make([]float64, len(b.starts))
	end := until
	for k := len(durations) - 1; k >= 0; k-- {
		start := min(b.starts[k], end)
		if k == 0 {
			start = from
		}
		durations[k] = float64(end-start) / 1e6
		end = start
	}
	return durations
}

// blockAt returns the block whose time contains us.
func (b *Bootstrap) blockAt(us int64) int {
	k, exact := slices.BinarySearch(b.starts, us)
	if !exact {
		k--
	}
	return max(k, 0)
}

// Rows returns the positions of the requests that selects returns true for, ascending.
func (r *Run) Rows(selects func(i int) bool) []int32 {
	rows := make([]int32, 0, len(r.requests))
	for i, q := range r.requests {
		if q != nil && selects(i) {
			rows = append(rows, int32(i))
		}
	}
	return rows
}

// All returns the positions of all requests.
func (r *Run) All() []int32 { return r.Rows(func(int) bool { return true }) }
