package resample

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"blis/pkg/stat"
)

// Latencies are the latencies that have distributions, as package metrics defines them.
// MS returns the time in ms, Eligible whether the request could have one.
var Latencies = []struct {
	Name     string
	MS       func(*Request) (ms float64, ok bool)
	Eligible func(*Request) bool
}{
	{"ttft", func(r *Request) (float64, bool) { return millis(r.TTFT) }, always},
	{"tpot", (*Request).TPOT, func(r *Request) bool { return r.Output > 1 }},
	{"e2e", func(r *Request) (float64, bool) { return millis(r.E2E) }, always},
	{"queue", func(r *Request) (float64, bool) { return millis(r.Queue) }, always},
}

func millis(us int64) (ms float64, ok bool) { return float64(us) / 1000, us != Missing }

func always(*Request) bool { return true }

// totals are sums over requests. Those whose names start with _ are not metrics.
var totals = []struct {
	path string
	of   func(*Request) float64
}{
	{"requests.offered", func(*Request) float64 { return 1 }},
	{"requests.admitted", func(r *Request) float64 { return count(r.Has(Admitted)) }},
	{"requests.completed", func(r *Request) float64 { return count(r.State == Completed) }},
	{"requests.rejected", func(r *Request) float64 { return count(r.State == Rejected) }},
	{"requests.timed_out", func(r *Request) float64 { return count(r.State == TimedOut) }},
	{"requests.failed", func(r *Request) float64 { return count(r.State == Failed) }},
	{"requests.unfinished", func(r *Request) float64 { return count(r.State == Unfinished) }},
	{"requests.not_issued", func(r *Request) float64 { return float64(r.NotIssued) }},
	{"goodput.offered", func(r *Request) float64 { return count(r.Has(HasTargets)) }},
	{"goodput.met", func(r *Request) float64 { return count(r.Has(MetTargets)) }},
	{"goodput.not_issued", func(r *Request) float64 { return count(r.Has(HasTargets)) * float64(r.NotIssued) }},
	{"_slo_requests", func(r *Request) float64 { return count(r.Has(HasTargets)) * float64(1+r.NotIssued) }},
	{"kv.preemptions", func(r *Request) float64 { return float64(r.Preemptions) }},
	{"_scheduled", func(r *Request) float64 { return count(r.Has(Scheduled)) }},
	{"_prompt", func(r *Request) float64 { return count(r.Has(Scheduled)) * float64(r.Input) }},
	{"_cached", func(r *Request) float64 { return count(r.Has(Scheduled)) * float64(r.Cached) }},
	{"_gaps", func(r *Request) float64 { return count(hasGaps(r)) * float64(r.Output-1) }},
	{"_decode_ms", func(r *Request) float64 { return count(hasGaps(r)) * float64(r.E2E-r.TTFT) / 1000 }},
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

// rates are per second, of completed requests.
var rates = []struct {
	path string
	of   func(*Request) float64
}{
	{"goodput.rps", func(r *Request) float64 { return count(r.Has(MetTargets)) }},
	{"throughput.rps", func(*Request) float64 { return 1 }},
	{"throughput.output_tok_s", func(r *Request) float64 { return float64(r.Output) }},
	{"throughput.total_tok_s", func(r *Request) float64 { return float64(r.Input + r.Output) }},
}

// percentiles are those of a metrics.Distribution.
var percentiles = []int64{50, 90, 95, 99}

// Statistics returns the value of each statistic in each bootstrap sample, for the
// requests at the given positions, by path in the tree of metrics. A value that is not
// defined is NaN. notIssued is false for groups by model, which do not count calls that
// were not issued.
func (r *Run) Statistics(rows []int32, notIssued bool) map[string][]float64 {
	values := map[string][]float64{}
	requests := r.requests
	if !notIssued {
		requests = withoutNotIssued(requests, rows)
	}
	for _, t := range totals {
		values[t.path] = r.total(rows, func(i int32) (int, float64) { return int(r.Block(int(i))), t.of(requests[i]) })
	}
	for _, q := range ratios {
		values[q.path] = stat.Ratios(values[q.over], values[q.under])
	}
	for _, rate := range rates {
		completed := r.total(rows, func(i int32) (int, float64) {
			q := requests[i]
			if q.E2E == Missing {
				return 0, 0
			}
			return r.blockAt(q.Arrival + q.E2E), rate.of(q)
		})
		values[rate.path] = stat.Ratios(completed, r.durations)
	}
	if r.allITL {
		values["itl.mean"] = stat.Ratios(values["_decode_ms"], values["_gaps"])
	}
	for i := range Latencies {
		r.addLatency(values, i, rows, requests)
	}
	values["tail_blowup"] = stat.Ratios(values["e2e.p99"], values["e2e.p50"])
	maps.DeleteFunc(values, func(path string, _ []float64) bool { return strings.HasPrefix(path, "_") })
	return values
}

// total returns the total in each bootstrap sample of what each request adds to a block.
func (r *Run) total(rows []int32, of func(i int32) (block int, x float64)) []float64 {
	blocks := make([]float64, r.Blocks())
	for _, i := range rows {
		block, x := of(i)
		blocks[block] += x
	}
	return r.Sums(blocks)
}

// addLatency adds the statistics of the k-th latency.
func (r *Run) addLatency(values map[string][]float64, k int, rows []int32, requests []*Request) {
	latency := &Latencies[k]
	samples := r.values[:0]
	sums, counts, eligible := make([]float64, r.Blocks()), make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for _, i := range rows {
		q, block := requests[i], r.Block(int(i))
		eligible[block] += count(latency.Eligible(q)) + float64(q.NotIssued)
		if ms, ok := latency.MS(q); ok {
			samples = append(samples, stat.Keyed{Key: math.Float64bits(ms), Tag: block})
			sums[block] += ms
			counts[block]++
		}
	}
	r.values = samples[:0]
	if cap(r.scratch) < len(samples) {
		r.scratch = make([]stat.Keyed, len(r.requests))
	}
	samples = stat.SortKeyed(samples, r.scratch[:len(samples)])
	n := r.Sums(counts)
	values[latency.Name+".count"] = n
	values[latency.Name+".mean"] = stat.Ratios(r.Sums(sums), n)
	values[latency.Name+".coverage"] = stat.Ratios(n, r.Sums(eligible))
	for i, q := range r.Quantiles(samples, percentiles) {
		values[fmt.Sprintf("%s.p%d", latency.Name, percentiles[i])] = q
	}
}

// withoutNotIssued returns the requests at the given positions without calls that were
// not issued.
func withoutNotIssued(requests []*Request, rows []int32) []*Request {
	all := make([]*Request, len(requests))
	for _, i := range rows {
		all[i] = requests[i]
		if requests[i].NotIssued > 0 {
			q := *requests[i]
			q.NotIssued = 0
			all[i] = &q
		}
	}
	return all
}
