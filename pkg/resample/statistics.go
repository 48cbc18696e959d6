package resample

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"blis/pkg/stat"
)

// Latency is a latency that has a distribution, as package metrics defines it. MS returns
// the time in ms, Eligible whether the request could have one.
type Latency struct {
	Name     string
	MS       func(*Request) (ms float64, ok bool)
	Eligible func(*Request) bool
	// us returns the time in µs, nil if it is not an integer. Integers sort faster.
	us func(*Request) int64
}

// Latencies are all of them.
var Latencies = []Latency{
	inMicros("ttft", func(r *Request) int64 { return r.TTFT }),
	{Name: "tpot", MS: (*Request).TPOT, Eligible: func(r *Request) bool { return r.Output > 1 }},
	inMicros("e2e", func(r *Request) int64 { return r.E2E }),
	inMicros("queue", func(r *Request) int64 { return r.Queue }),
}

// inMicros is a latency that every request could have, given its time in µs.
func inMicros(name string, us func(*Request) int64) Latency {
	return Latency{name, func(r *Request) (float64, bool) { return millis(us(r)) },
		func(*Request) bool { return true }, us}
}

func millis(us int64) (ms float64, ok bool) { return float64(us) / 1000, us != Missing }

// totals are the paths of sums over requests, in the order of addTotals. Those that start
// with _ are not metrics.
var totals = [...]string{"requests.offered", "requests.admitted", "requests.completed", "requests.rejected",
	"requests.timed_out", "requests.failed", "requests.unfinished", "requests.not_issued", "goodput.offered",
	"goodput.met", "goodput.not_issued", "_slo_requests", "kv.preemptions", "_scheduled", "_prompt", "_cached", "_gaps",
	"_decode_ms"}

// addTotals adds one request to totals.
func addTotals(sums *[len(totals)]float64, r *Request, notIssued float64) {
	for i, x := range [len(totals)]float64{1, count(r.Admitted), count(r.State == Completed),
		count(r.State == Rejected), count(r.State == TimedOut), count(r.State == Failed), count(r.State == Unfinished),
		notIssued, count(r.HasTargets()), count(r.MetTargets()), count(r.HasTargets()) * notIssued,
		count(r.HasTargets()) * (1 + notIssued), float64(r.Preemptions), count(r.Scheduled),
		count(r.Scheduled) * float64(r.Input), count(r.Scheduled) * float64(r.Cached),
		count(hasGaps(r)) * float64(r.Output-1), count(hasGaps(r)) * float64(r.E2E-r.TTFT) / 1000} {
		sums[i] += x
	}
}

func count(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func hasGaps(r *Request) bool { return r.State == Completed && r.Output > 1 }

// ratios divide two totals.
var ratios = []struct{ path, over, under string }{
	{"admission_rate", "requests.admitted", "requests.offered"},
	{"preemption_rate", "kv.preemptions", "_scheduled"},
	{"kv.prefix_hit_ratio", "_cached", "_prompt"},
	{"goodput.ratio", "goodput.met", "_slo_requests"},
}

// rates are the paths of rates per second, of completed requests, in the order of addRates.
var rates = [...]string{"goodput.rps", "throughput.rps", "throughput.output_tok_s", "throughput.total_tok_s"}

// addRates adds one completed request to the totals of rates.
func addRates(sums *[len(rates)]float64, r *Request) {
	for i, x := range [len(rates)]float64{count(r.MetTargets()), 1, float64(r.Output),
		float64(int64(r.Input) + int64(r.Output))} {
		sums[i] += x
	}
}

// percentiles are those of a metrics.Distribution.
var percentiles = []int64{50, 90, 95, 99}

// Set is a set of requests, by their positions, which ascend. NotIssued is false for groups by model, which do
// not count calls that were not issued.
type Set struct {
	Rows      []int32
	NotIssued bool
}

func (s *Set) notIssued(q *Request) float64 { return count(s.NotIssued) * float64(q.NotIssued) }

// Statistics returns the value of each statistic in each bootstrap sample, for each of some sets of
// requests, by path in the tree of metrics. A value that is not defined is NaN.
func (r *Run) Statistics(sets ...Set) []map[string][]float64 {
	all, sums := make([]map[string][]float64, len(sets)), r.blockSums(sets)
	for i := range sets {
		values := map[string][]float64{}
		for k, path := range totals {
			values[path] = r.sums(func(block int) float64 { return sums[i][block].totals[k] })
		}
		for _, q := range ratios {
			values[q.path] = stat.Ratios(values[q.over], values[q.under])
		}
		for k, path := range rates {
			values[path] = stat.Ratios(r.sums(func(block int) float64 { return sums[i][block].rates[k] }), r.durations)
		}
		if r.allITL {
			values["itl.mean"] = stat.Ratios(values["_decode_ms"], values["_gaps"])
		}
		all[i] = values
	}
	blocks, keys := make([]uint16, len(r.requests)), make([]uint64, len(r.requests))
	for i := range blocks {
		blocks[i] = uint16(r.Block(i)) // there are at most maxBlocks
	}
	for l := range Latencies {
		r.latencyKeys(l, keys)
		for i := range sets {
			eligible := func(block int) float64 { return sums[i][block].eligible[l] }
			r.addLatency(all[i], l, sets[i].Rows, blocks, keys, eligible)
		}
	}
	for _, values := range all {
		values["tail_blowup"] = stat.Ratios(values["e2e.p99"], values["e2e.p50"])
		maps.DeleteFunc(values, func(path string, _ []float64) bool { return strings.HasPrefix(path, "_") })
	}
	return all
}

// blockSum has sums over the requests of a set that arrived in a block; rates those of the requests that completed in
// it, eligible the number of requests that could have each latency.
type blockSum struct {
	totals   [len(totals)]float64
	rates    [len(rates)]float64
	eligible [4]float64 // as many as Latencies
}

// fewRequests of a run remain in the cache of the processor while the sets take them one after the other.
const fewRequests = 4096

// blockSums are the sums of each set, by block.
func (r *Run) blockSums(sets []Set) [][]blockSum {
	sums, rest := make([][]blockSum, len(sets)), make([][]int32, len(sets))
	for i := range sets {
		sums[i], rest[i] = make([]blockSum, r.Blocks()), sets[i].Rows
	}
	for end := fewRequests; end < len(r.requests)+fewRequests; end += fewRequests {
		for i := range sets {
			n, _ := slices.BinarySearch(rest[i], int32(min(end, len(r.requests))))
			for _, row := range rest[i][:n] {
				q, block := r.requests[row], &sums[i][r.Block(int(row))]
				notIssued := sets[i].notIssued(q)
				addTotals(&block.totals, q, notIssued)
				for l := range Latencies {
					block.eligible[l] += count(Latencies[l].Eligible(q)) + notIssued
				}
				if q.E2E != Missing {
					addRates(&sums[i][r.blockAt(q.Arrival+q.E2E)].rates, q)
				}
			}
			rest[i] = rest[i][n:]
		}
	}
	return sums
}

// sums returns the total in each bootstrap sample of what each block has.
func (r *Run) sums(of func(block int) float64) []float64 {
	blocks := make([]float64, r.Blocks())
	for i := range blocks {
		blocks[i] = of(i)
	}
	return r.Sums(blocks)
}

// noKey is the key of a request without a latency: no time has it.
const noKey = math.MaxUint64

// latencyKeys sets the keys by which samples of a latency are sorted: µs where it has these, else the bits of ms.
func (r *Run) latencyKeys(latency int, keys []uint64) {
	l := &Latencies[latency]
	for i, q := range r.requests {
		keys[i] = noKey
		if q == nil {
			continue
		}
		if ms, ok := l.MS(q); ok {
			keys[i] = math.Float64bits(ms)
			if l.us != nil {
				keys[i] = uint64(l.us(q))
			}
		}
	}
}

// addLatency adds the statistics of a latency of a set of requests, of which some are eligible in each block. blocks
// and keys are those of all requests.
func (r *Run) addLatency(values map[string][]float64, latency int, rows []int32, blocks []uint16, keys []uint64,
	eligible func(block int) float64) {
	l := &Latencies[latency]
	r.samples = slices.Grow(r.samples[:0], len(rows))
	samples := r.samples[:0]
	sums, counts := make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for _, i := range rows {
		key, block := keys[i], blocks[i]
		if key == noKey {
			continue
		}
		samples = append(samples, stat.Keyed{Key: key, Tag: uint32(block)})
		ms := math.Float64frombits(key)
		if l.us != nil {
			ms = float64(int64(key)) / 1000
		}
		sums[block] += ms
		counts[block]++
	}
	r.scratch = slices.Grow(r.scratch[:0], len(samples))
	samples = stat.SortKeyed(samples, r.scratch[:len(samples)])
	if l.us != nil {
		for i := range samples {
			samples[i].Key = math.Float64bits(float64(samples[i].Key) / 1000)
		}
	}
	n := r.Sums(counts)
	values[l.Name+".count"] = n
	values[l.Name+".mean"] = stat.Ratios(r.Sums(sums), n)
	values[l.Name+".coverage"] = stat.Ratios(n, r.sums(eligible))
	for i, q := range r.Quantiles(samples, percentiles) {
		values[fmt.Sprintf("%s.p%d", l.Name, percentiles[i])] = q
	}
}
