package resample

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/stat"
)

// Targeted returns the statistics of a latency in metrics.Targeted, by path. rows and notIssued are those of
// Statistics; promised says whether the class of the request at a position has a target for the latency. A
// percentile that is infinite is NaN.
func (r *Run) Targeted(latency string, rows []int32, notIssued bool, promised func(i int32) bool) map[string][]float64 {
	l := &Latencies[slices.IndexFunc(Latencies, func(l Latency) bool { return l.Name == latency })]
	// asked is the number of values that a request and the calls not issued because of it should have.
	asked := func(i int32) int64 {
		q := r.requests[i]
		return int64(count(l.Eligible(q)) + count(notIssued)*float64(q.NotIssued))
	}
	included := slices.DeleteFunc(slices.Clone(rows), func(i int32) bool { return !promised(i) || asked(i) == 0 })
	if len(included) == 0 {
		included = rows
	}
	var samples []stat.Keyed
	sums, known, all := make([]float64, r.Blocks()), make([]float64, r.Blocks()), make([]float64, r.Blocks())
	for _, i := range included {
		block, n := r.Block(int(i)), asked(i)
		all[block] += float64(n)
		if ms, ok := l.MS(r.requests[i]); ok {
			samples = append(samples, stat.Keyed{Key: math.Float64bits(ms), Tag: block})
			sums[block] += ms
			known[block]++
			n--
		}
		for range n {
			samples = append(samples, stat.Keyed{Key: math.Float64bits(math.Inf(1)), Tag: block})
		}
	}
	samples = stat.SortKeyed(samples, make([]stat.Keyed, len(samples)))
	n, served, total := r.Sums(all), r.Sums(known), r.Sums(sums)
	for s := range total {
		total[s] += float64((n[s] - served[s]) * 1000 * r.durations[s])
	}
	at := "targeted." + l.Name + "."
	values := map[string][]float64{at + "count": n, at + "coverage": stat.Ratios(served, n),
		at + "mean": stat.Ratios(total, n)}
	for i, q := range r.Quantiles(samples, percentiles) {
		for s, x := range q {
			if math.IsInf(x, 0) {
				q[s] = math.NaN()
			}
		}
		values[fmt.Sprintf("%sp%d", at, percentiles[i])] = q
	}
	return values
}
