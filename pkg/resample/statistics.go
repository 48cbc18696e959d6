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
		notIssued, count(r.HasTargets), count(r.MetTargets), count(r.HasTargets) * notIssued,
		count(r.HasTargets) * (1 + notIssued), float64(r.Preemptions), count(r.Scheduled),
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
	for i, x := range [len(rates)]float64{count(r.MetTargets), 1, float64(r.Output),
		float64(int64(r.Input) + int64(r.Output))} {
		sums[i] += x
	}
}

// percentiles are those of a metrics.Distribution.
var percentiles = []int64{50, 90, 95, 99}

// Statistics returns the value of each statistic in each bootstrap sample, for the
// requests at the given positions, by path in the tree of metrics. A value that is not
// defined is NaN. notIssued is false for groups by model, which do not count calls that
// were not issued.
func (r *Run) Statistics(rows []int32, notIssued bool) map[string][]float64 {
	values := map[string][]float64{}
	notIssuedBy := func(q *Request) float64 { return count(notIssued) * float64(q.NotIssued) }
	sums := make([][len(totals)]float64, r.Blocks())
	completed := make([][len(rates)]float64, r.Blocks())
	for _, i := range rows {
		q := r.requests[i]
		addTotals(&sums[r.Block(int(i))], q, notIssuedBy(q))
		if q.E2E != Missing {
			addRates(&completed[r.blockAt(q.Arrival+q.E2E)], q)
		}
	}
	for k, path := range totals {
		values[path] = r.sums(func(block int) float64 { return sums[block][k] })
	}
	for _, q := range ratios {
		values[q.path] = stat.Ratios(values[q.over], values[q.under])
	}
	for k, path := range rates {
		values[path] = stat.Ratios(r.sums(func(block int) float64 { return completed[block][k] }), r.durations)
	}
	if r.allITL {
		values["itl.mean"] = stat.Ratios(values["_decode_ms"], values["_gaps"])
	}
	for i := range Latencies {
		r.addLatency(values, &Latencies[i], rows, notIssuedBy)
	}
	values["tail_blowup"] = stat.Ratios(values["e2e.p99"], values["e2e.p50"])
	maps.DeleteFunc(values, func(path string, _ []float64) bool { return strings.HasPrefix(path, "_") })
	return values
}

// sums returns the total in each bootstrap sample of what each block has.
func (r *Run) sums(of func(block int) float64) []float64 {
	blocks := make([]float64, r.Blocks())
	for i := range blocks {
		blocks[i] = of(i)
	}
	return r.Sums(blocks)
}

// addLatency adds the statistics of a latency.
func (r *Run) addLatency(values map[string][]float64, l *Latency, rows []int32, notIssued func(*Request) float64) {
	r.samples = slices.Grow(r.samples[:0], len(rows))
	samples := r.samples[:0]
	sums, counts, eligible := make([]float64, r.Blocks()), make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for _, i := range rows {
		q, block := r.requests[i], r.Block(int(i))
		eligible[block] += count(l.Eligible(q)) + notIssued(q)
		if ms, ok := l.MS(q); ok {
			key := math.Float64bits(ms)
			if l.us != nil {
				key = uint64(l.us(q))
			}
			samples = append(samples, stat.Keyed{Key: key, Tag: block})
			sums[block] += ms
			counts[block]++
		}
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
	values[l.Name+".coverage"] = stat.Ratios(n, r.Sums(eligible))
	for i, q := range r.Quantiles(samples, percentiles) {
		values[fmt.Sprintf("%s.p%d", l.Name, percentiles[i])] = q
	}
}
