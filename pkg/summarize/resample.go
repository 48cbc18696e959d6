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

// drawing computes numbers of draws of a run's requests, as package metrics does of
// all of them.
type drawing struct {
	*stat.Resampling
	// requests are in order of arrival, nil where only another run has one.
	requests []*row
	// seconds is how long the run lasted.
	seconds float64
}

// timed are the times that have distributions, in the order of row.times.
var timed = [...]string{"ttft", "tpot", "e2e", "queue"}

// counted are sums over requests.
var counted = []struct {
	path string
	of   func(*row) float64
}{
	{"requests.offered", func(*row) float64 { return 1 }},
	{"requests.admitted", func(r *row) float64 { return one(r.admitted) }},
	{"requests.completed", func(r *row) float64 { return one(r.state == stream.StateCompleted) }},
	{"requests.rejected", func(r *row) float64 { return one(r.state == stream.StateRejected) }},
	{"requests.timed_out", func(r *row) float64 { return one(r.state == stream.StateTimedOut) }},
	{"requests.failed", func(r *row) float64 { return one(r.state == stream.StateFailed) }},
	{"requests.lost", func(r *row) float64 { return float64(r.lost) }},
	{"requests.unfinished", func(r *row) float64 { return one(r.state == stream.StateUnfinished) }},
	{"goodput.offered", func(r *row) float64 { return one(r.judged) }},
	{"goodput.lost", func(r *row) float64 { return one(r.judged) * float64(r.lost) }},
	{promised, func(r *row) float64 { return one(r.judged) * float64(1+r.lost) }},
	{"goodput.met", func(r *row) float64 { return one(r.met) }},
	{outputTokens, func(r *row) float64 { return one(r.state == stream.StateCompleted) * float64(r.output) }},
	{allTokens, func(r *row) float64 { return one(r.state == stream.StateCompleted) * float64(r.input+r.output) }},
}

// Sums that are no metrics by themselves.
const (
	promised     = "promised calls"
	outputTokens = "output tokens"
	allTokens    = "tokens"
)

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// quotients are of two sums, or, without the second, of one and the seconds.
var quotients = []struct{ path, over, under string }{
	{"admission_rate", "requests.admitted", "requests.offered"},
	{"goodput.ratio", "goodput.met", promised},
	{"goodput.rps", "goodput.met", ""},
	{"throughput.rps", "requests.completed", ""},
	{"throughput.output_tok_s", outputTokens, ""},
	{"throughput.total_tok_s", allTokens, ""},
}

// all computes of each draw what is counted by request in the groups that the paths
// are about.
func (d *drawing) all(paths []string) []map[string]float64 {
	values := make([]map[string]float64, d.Draws())
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
			d.sums(requests, func(path string, of []float64) { set(prefix+path, of) })
			for k, name := range timed {
				d.times(requests, k, func(statistic string, of []float64) { set(prefix+name+"."+statistic, of) })
			}
		}
	}
	return values
}

// group returns the requests of the group that the path is about, in their places,
// and what paths of the group begin with; nil of what is not counted by request.
func (d *drawing) group(path string) (prefix string, requests []*row) {
	keys := metrics.Keys(path)
	if len(keys) == 0 {
		return "", d.requests
	}
	branch, _, _ := strings.Cut(path, "[")
	of := map[string]func(*row) string{"cls": func(r *row) string { return r.class }, "tenant": func(r *row) string { return r.tenant }}[branch]
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
	return metrics.Below(branch, name) + ".", requests
}

// sums computes what is added up over the requests.
func (d *drawing) sums(requests []*row, set func(path string, of []float64)) {
	sums := map[string][]float64{}
	for _, c := range counted {
		blocks := make([]float64, d.Blocks())
		for i, r := range requests {
			if r != nil {
				blocks[d.Block(i)] += c.of(r)
			}
		}
		sums[c.path] = d.Sums(blocks)
		set(c.path, sums[c.path])
	}
	for _, q := range quotients {
		under := sums[q.under]
		if q.under == "" {
			under = slices.Repeat([]float64{d.seconds}, d.Draws())
		}
		set(q.path, stat.Ratios(sums[q.over], under))
	}
}

// times computes the mean and the percentiles of the k-th time.
func (d *drawing) times(requests []*row, k int, set func(statistic string, of []float64)) {
	sum, count, could := make([]float64, d.Blocks()), make([]float64, d.Blocks()), make([]float64, d.Blocks())
	var samples []stat.Tagged
	for i, r := range requests {
		if r == nil {
			continue
		}
		b := d.Block(i)
		could[b] += one(timed[k] != "tpot" || r.output > 1) + float64(r.lost)
		if math.IsNaN(r.times[k]) {
			continue
		}
		sum[b] += r.times[k]
		count[b]++
		samples = append(samples, stat.Tagged{Key: math.Float64bits(r.times[k]), Tag: b})
	}
	if len(samples) == 0 {
		return
	}
	set("mean", stat.Ratios(d.Sums(sum), d.Sums(count)))
	set("count", d.Sums(count))
	set("coverage", stat.Ratios(d.Sums(count), d.Sums(could)))
	samples = stat.SortTagged(samples, make([]stat.Tagged, len(samples)))
	names := []string{"p50", "p90", "p95", "p99"}
	for i, q := range d.Quantiles(samples, []int64{50, 90, 95, 99}) {
		set(names[i], q)
	}
}
