package summarize

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// resampledRun computes statistics of bootstrap samples of a run's requests, with the
// definitions of package metrics.
type resampledRun struct {
	*stat.Resampling
	// requests are in order of arrival, nil for those that only another run has.
	requests []*row
	// durationS is the duration of the run.
	durationS float64
}

// latencyNames are the latencies that have distributions, in the order of row.times.
var latencyNames = [...]string{"ttft", "tpot", "e2e", "queue"}

// totals are sums over requests.
var totals = []struct {
	path string
	of   func(*row) float64
}{
	{"requests.offered", func(*row) float64 { return 1 }},
	{"requests.admitted", func(r *row) float64 { return boolToFloat(r.admitted) }},
	{"requests.completed", func(r *row) float64 { return boolToFloat(r.state == stream.StateCompleted) }},
	{"requests.rejected", func(r *row) float64 { return boolToFloat(r.state == stream.StateRejected) }},
	{"requests.timed_out", func(r *row) float64 { return boolToFloat(r.state == stream.StateTimedOut) }},
	{"requests.failed", func(r *row) float64 { return boolToFloat(r.state == stream.StateFailed) }},
	{"requests.not_issued", func(r *row) float64 { return float64(r.notIssued) }},
	{"requests.unfinished", func(r *row) float64 { return boolToFloat(r.state == stream.StateUnfinished) }},
	{"goodput.offered", func(r *row) float64 { return boolToFloat(r.hasTargets) }},
	{"goodput.not_issued", func(r *row) float64 { return boolToFloat(r.hasTargets) * float64(r.notIssued) }},
	{sloRequests, func(r *row) float64 { return boolToFloat(r.hasTargets) * float64(1+r.notIssued) }},
	{"goodput.met", func(r *row) float64 { return boolToFloat(r.metTargets) }},
	{outputTokens, func(r *row) float64 { return boolToFloat(r.state == stream.StateCompleted) * float64(r.output) }},
	{allTokens, func(r *row) float64 {
		return boolToFloat(r.state == stream.StateCompleted) * float64(
			r.input+r.output)
	}},
}

// Totals that are not metrics.
const (
	sloRequests  = "calls with targets"
	outputTokens = "output tokens"
	allTokens    = "tokens"
)

func boolToFloat(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// ratios divide one total by another, or by the duration if under is "".
var ratios = []struct{ path, over, under string }{
	{"admission_rate", "requests.admitted", "requests.offered"},
	{"goodput.ratio", "goodput.met", sloRequests},
	{"goodput.rps", "goodput.met", ""},
	{"throughput.rps", "requests.completed", ""},
	{"throughput.output_tok_s", outputTokens, ""},
	{"throughput.total_tok_s", allTokens, ""},
}

// statistics returns the statistics of each bootstrap sample, for the groups that the
// paths refer to.
func (d *resampledRun) statistics(paths []string) []map[string]float64 {
	values := make([]map[string]float64, d.Samples())
	for i := range values {
		values[i] = map[string]float64{}
	}
	set := func(path string, of []float64) {
		for i, x := range of {
			values[i][path] = x
		}
	}
	done := map[string]bool{}
	for _, path := range paths {
		if prefix, requests := d.group(path); requests != nil && !done[prefix] {
			done[prefix] = true
			d.addTotals(requests, func(path string, of []float64) { set(prefix+path, of) })
			for k, name := range latencyNames {
				d.addLatencies(requests, k, func(statistic string, of []float64) { set(prefix+name+"."+statistic, of) })
			}
		}
	}
	return values
}

// group returns the requests of the group that the path refers to, at their positions,
// and the prefix of its paths; nil if the path is not counted by request.
func (d *resampledRun) group(path string) (prefix string, requests []*row) {
	keys := metrics.PathKeys(path)
	if len(keys) == 0 {
		return "", d.requests
	}
	branch, _, _ := strings.Cut(path, "[")
	of := map[string]func(*row) string{"cls": func(r *row) string { return r.class },
		"tenants": func(r *row) string { return r.tenant }}[branch]
	name, err := strconv.Unquote(strings.Trim(keys[0], "[]"))
	if of == nil || err != nil {
		return "", nil
	}
	requests = slices.Clone(d.requests)
	for i, r := range requests {
		if r != nil && of(r) != name {
			requests[i] = nil
		}
	}
	return metrics.SubPath(branch, name) + ".", requests
}

// addTotals computes totals and ratios.
func (d *resampledRun) addTotals(requests []*row, set func(path string, of []float64)) {
	sums := map[string][]float64{}
	for _, c := range totals {
		blocks := make([]float64, d.Blocks())
		for i, r := range requests {
			if r != nil {
				blocks[d.Block(i)] += c.of(r)
			}
		}
		sums[c.path] = d.Sums(blocks)
		set(c.path, sums[c.path])
	}
	for _, q := range ratios {
		under := sums[q.under]
		if q.under == "" {
			under = slices.Repeat([]float64{d.durationS}, d.Samples())
		}
		set(q.path, stat.Ratios(sums[q.over], under))
	}
}

// addLatencies computes the mean and the percentiles of the k-th latency.
func (d *resampledRun) addLatencies(requests []*row, k int, set func(statistic string, of []float64)) {
	sum, count, eligible := make([]float64, d.Blocks()), make([]float64, d.Blocks()), make([]float64, d.Blocks())
	var samples []stat.Keyed
	for i, r := range requests {
		if r == nil {
			continue
		}
		b := d.Block(i)
		eligible[b] += boolToFloat(latencyNames[k] != "tpot" || r.output > 1) + float64(r.notIssued)
		if math.IsNaN(r.times[k]) {
			continue
		}
		sum[b] += r.times[k]
		count[b]++
		samples = append(samples, stat.Keyed{Key: math.Float64bits(r.times[k]), Tag: b})
	}
	if len(samples) == 0 {
		return
	}
	set("mean", stat.Ratios(d.Sums(sum), d.Sums(count)))
	set("count", d.Sums(count))
	set("coverage", stat.Ratios(d.Sums(count), d.Sums(eligible)))
	samples = stat.SortKeyed(samples, make([]stat.Keyed, len(samples)))
	names := []string{"p50", "p90", "p95", "p99"}
	for i, q := range d.Quantiles(samples, []int64{50, 90, 95, 99}) {
		set(names[i], q)
	}
}
