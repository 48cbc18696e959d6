package resample

import (
	"fmt"
	"maps"
	"math"
	"strings"

	"blis/pkg/stat"
)

// Latency is a latency that has a distribution, as package metrics defines it. MS returns
// the time in ms, Eligible whether the request could have one.
type Latency struct {
	Name     string
	MS       func(*Request) (ms float64, ok bool)
	Eligible func(*Request) bool
}

// Latencies are all of them.
var Latencies = []Latency{
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
	of   func(r *Request, notIssued float64) float64
}{
	{"requests.offered", func(*Request, float64) float64 { return 1 }},
	{"requests.admitted", func(r *Request, _ float64) float64 { return count(r.Admitted) }},
	{"requests.completed", func(r *Request, _ float64) float64 { return count(r.State == Completed) }},
	{"requests.rejected", func(r *Request, _ float64) float64 { return count(r.State == Rejected) }},
	{"requests.timed_out", func(r *Request, _ float64) float64 { return count(r.State == TimedOut) }},
	{"requests.failed", func(r *Request, _ float64) float64 { return count(r.State == Failed) }},
	{"requests.unfinished", func(r *Request, _ float64) float64 { return count(r.State == Unfinished) }},
	{"requests.not_issued", func(_ *Request, notIssued float64) float64 { return notIssued }},
	{"goodput.offered", func(r *Request, _ float64) float64 { return count(r.HasTargets) }},
	{"goodput.met", func(r *Request, _ float64) float64 { return count(r.MetTargets) }},
	{"goodput.not_issued", func(r *Request, notIssued float64) float64 { return count(r.HasTargets) * notIssued }},
	{"_slo_requests", func(r *Request, notIssued float64) float64 { return count(r.HasTargets) * (1 + notIssued) }},
	{"kv.preemptions", func(r *Request, _ float64) float64 { return float64(r.Preemptions) }},
	{"_scheduled", func(r *Request, _ float64) float64 { return count(r.Scheduled) }},
	{"_prompt", func(r *Request, _ float64) float64 { return count(r.Scheduled) * float64(r.Input) }},
	{"_cached", func(r *Request, _ float64) float64 { return count(r.Scheduled) * float64(r.Cached) }},
	{"_gaps", func(r *Request, _ float64) float64 { return count(hasGaps(r)) * float64(r.Output-1) }},
	{"_decode_ms", func(r *Request, _ float64) float64 { return count(hasGaps(r)) * float64(r.E2E-r.TTFT) / 1000 }},
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
	{"goodput.rps", func(r *Request) float64 { return count(r.MetTargets) }},
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
	notIssuedBy := func(q *Request) float64 { return count(notIssued) * float64(q.NotIssued) }
	for _, t := range totals {
		values[t.path] = r.total(rows, func(i int32) (int, float64) {
			q := r.requests[i]
			return int(r.Block(int(i))), t.of(q, notIssuedBy(q))
		})
	}
	for _, q := range ratios {
		values[q.path] = stat.Ratios(values[q.over], values[q.under])
	}
	for _, rate := range rates {
		completed := r.total(rows, func(i int32) (int, float64) {
			q := r.requests[i]
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
		r.addLatency(values, &Latencies[i], rows, notIssuedBy)
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

// addLatency adds the statistics of a latency.
func (r *Run) addLatency(values map[string][]float64, l *Latency, rows []int32, notIssued func(*Request) float64) {
	samples := make([]stat.Keyed, 0, len(rows))
	sums, counts, eligible := make([]float64, r.Blocks()), make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for _, i := range rows {
		q, block := r.requests[i], r.Block(int(i))
		eligible[block] += count(l.Eligible(q)) + notIssued(q)
		if ms, ok := l.MS(q); ok {
			samples = append(samples, stat.Keyed{Key: math.Float64bits(ms), Tag: block})
			sums[block] += ms
			counts[block]++
		}
	}
	samples = stat.SortKeyed(samples, make([]stat.Keyed, len(samples)))
	n := r.Sums(counts)
	values[l.Name+".count"] = n
	values[l.Name+".mean"] = stat.Ratios(r.Sums(sums), n)
	values[l.Name+".coverage"] = stat.Ratios(n, r.Sums(eligible))
	for i, q := range r.Quantiles(samples, percentiles) {
		values[fmt.Sprintf("%s.p%d", l.Name, percentiles[i])] = q
	}
}
