package resample

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stat"
	"blis/pkg/stream"
)

// referenceTotals are what totals are sums of, one by one.
var referenceTotals = []struct {
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
	{"goodput.offered", func(r *Request, _ float64) float64 { return count(r.HasTargets()) }},
	{"goodput.met", func(r *Request, _ float64) float64 { return count(r.MetTargets()) }},
	{"goodput.not_issued", func(r *Request, notIssued float64) float64 { return count(r.HasTargets()) * notIssued }},
	{"_slo_requests", func(r *Request, notIssued float64) float64 { return count(r.HasTargets()) * (1 + notIssued) }},
	{"kv.preemptions", func(r *Request, _ float64) float64 { return float64(r.Preemptions) }},
	{"_scheduled", func(r *Request, _ float64) float64 { return count(r.Scheduled) }},
	{"_prompt", func(r *Request, _ float64) float64 { return count(r.Scheduled) * float64(r.Input) }},
	{"_cached", func(r *Request, _ float64) float64 { return count(r.Scheduled) * float64(r.Cached) }},
	{"_gaps", func(r *Request, _ float64) float64 { return count(hasGaps(r)) * float64(r.Output-1) }},
	{"_decode_ms", func(r *Request, _ float64) float64 { return count(hasGaps(r)) * float64(r.E2E-r.TTFT) / 1000 }},
}

// referenceRates are what rates are sums of, of completed requests.
var referenceRates = []struct {
	path string
	of   func(*Request) float64
}{
	{"goodput.rps", func(r *Request) float64 { return count(r.MetTargets()) }},
	{"throughput.rps", func(*Request) float64 { return 1 }},
	{"throughput.output_tok_s", func(r *Request) float64 { return float64(r.Output) }},
	{"throughput.total_tok_s", func(r *Request) float64 { return float64(int64(r.Input) + int64(r.Output)) }},
}

// referenceStatistics computes Statistics with one pass for each of them, and sorts
// latencies in ms.
func referenceStatistics(r *Run, rows []int32, notIssued bool) map[string][]float64 {
	values := map[string][]float64{}
	notIssuedBy := func(q *Request) float64 { return count(notIssued) * float64(q.NotIssued) }
	total := func(of func(q *Request, block int) (int, float64)) []float64 {
		blocks := make([]float64, r.Blocks())
		for _, i := range rows {
			block, x := of(r.requests[i], int(r.Block(int(i))))
			blocks[block] += x
		}
		return r.Sums(blocks)
	}
	for _, t := range referenceTotals {
		values[t.path] = total(func(q *Request, block int) (int, float64) { return block, t.of(q, notIssuedBy(q)) })
	}
	for _, q := range ratios {
		values[q.path] = stat.Ratios(values[q.over], values[q.under])
	}
	for _, rate := range referenceRates {
		values[rate.path] = stat.Ratios(total(func(q *Request, _ int) (int, float64) {
			if q.E2E == Missing {
				return 0, 0
			}
			return r.blockAt(q.Arrival + q.E2E), rate.of(q)
		}), r.durations)
	}
	if r.allITL {
		values["itl.mean"] = stat.Ratios(values["_decode_ms"], values["_gaps"])
	}
	for _, l := range Latencies {
		var samples []stat.Keyed
		of := func(add func(ms float64) float64) []float64 {
			return total(func(q *Request, block int) (int, float64) {
				if ms, ok := l.MS(q); ok {
					return block, add(ms)
				}
				return block, 0
			})
		}
		for _, i := range rows {
			if ms, ok := l.MS(r.requests[i]); ok {
				samples = append(samples, stat.Keyed{Key: math.Float64bits(ms), Tag: r.Block(int(i))})
			}
		}
		n := of(func(float64) float64 { return 1 })
		values[l.Name+".count"], values[l.Name+".mean"] = n, stat.Ratios(of(func(ms float64) float64 { return ms }), n)
		values[l.Name+".coverage"] = stat.Ratios(n, total(func(q *Request, block int) (int, float64) {
			return block, count(l.Eligible(q)) + notIssuedBy(q)
		}))
		samples = stat.SortKeyed(samples, make([]stat.Keyed, len(samples)))
		for i, q := range r.Quantiles(samples, percentiles) {
			values[fmt.Sprintf("%s.p%d", l.Name, percentiles[i])] = q
		}
	}
	values["tail_blowup"] = stat.Ratios(values["e2e.p99"], values["e2e.p50"])
	maps.DeleteFunc(values, func(path string, _ []float64) bool { return strings.HasPrefix(path, "_") })
	return values
}

// Statistics has the same bits as the reference, for runs with all final states, missing
// times, equal times and times above an hour.
func TestStatisticsEqualTheReference(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 0))
		scale := []int64{3, 40_000, 9e9}[seed%3]
		time := func() int64 {
			if random.IntN(8) == 0 {
				return Missing
			}
			return random.Int64N(scale)
		}
		var run []*Request
		for i := range 50 + random.Int64N(1500) {
			q := &Request{Arrival: i * 1000, TTFT: time(), E2E: time(), Queue: time(), Input: random.Int32N(5000),
				Output: random.Int32N(4), Cached: random.Int32N(5000), Preemptions: random.Int32N(3),
				NotIssued: int32(random.IntN(3)), State: State(1 + random.IntN(int(NumStates)-1)),
				Admitted: random.IntN(2) == 0, Scheduled: random.IntN(2) == 0, targets: targets(random.IntN(3))}
			if q.TTFT > q.E2E {
				q.TTFT = q.E2E
			}
			if random.IntN(20) == 0 && i > 0 {
				q = run[random.Int64N(i)]
			}
			run = append(run, q)
		}
		raw := &metrics.Raw{UntilUS: stream.Micros(len(run) * 1000)}
		r := New(Source(seed), run).Run(0, raw)
		r.allITL = seed%2 == 0
		sets := []Set{{r.All(), seed%4 < 2}, {r.Rows(func(i int) bool { return i%3 == 1 }), seed%4 < 2}, {},
			{r.Rows(func(i int) bool { return i > len(run)/2 }), seed%4 >= 2}}
		all := r.Statistics(sets...)
		for k, set := range sets {
			got, want := all[k], referenceStatistics(r, set.Rows, set.NotIssued)
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d statistics, want %d", seed, len(got), len(want))
			}
			for path, values := range want {
				for i, x := range values {
					if math.Float64bits(got[path][i]) != math.Float64bits(x) {
						t.Fatalf("seed %d, %s of sample %d: %v, want %v", seed, path, i, got[path][i], x)
					}
				}
			}
		}
	}
}
