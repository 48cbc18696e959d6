package diff

import (
	"cmp"
	"slices"
)

// times are the latencies that have distributions, in ms, as defined by package metrics.
var times = []struct {
	path string
	of   func(*request) (ms float64, ok bool)
}{
	{"ttft", func(q *request) (float64, bool) { return toMillis(q.ttft) }},
	{"tpot", func(q *request) (float64, bool) { return q.tpot() }},
	{"e2e", func(q *request) (float64, bool) { return toMillis(q.e2e) }},
	{"queue", func(q *request) (float64, bool) { return toMillis(q.queue) }},
}

func toMillis(us int64) (ms float64, ok bool) { return float64(us) / 1000, us != missing }

// totals are sums over requests. Names that start with _ are not metrics.
var totals = []struct {
	path string
	of   func(*request) (x float64, counts bool)
}{
	{"requests.offered", func(q *request) (float64, bool) { return 1, q.state != 0 }},
	{"requests.admitted", func(q *request) (float64, bool) { return 1, q.has(admitted) }},
	{"requests.completed", func(q *request) (float64, bool) { return 1, q.state == completed }},
	{"requests.rejected", func(q *request) (float64, bool) { return 1, q.state == rejected }},
	{"requests.timed_out", func(q *request) (float64, bool) { return 1, q.state == timedOut }},
	{"requests.failed", func(q *request) (float64, bool) { return 1, q.state == failed }},
	{"requests.unfinished", func(q *request) (float64, bool) { return 1, q.state == unfinished }},
	{"goodput.offered", func(q *request) (float64, bool) { return 1, q.has(hasTargets) }},
	{"requests.not_issued", func(q *request) (float64, bool) { return float64(q.notIssued), true }},
	{"goodput.not_issued", func(q *request) (float64, bool) { return float64(q.notIssued), q.has(hasTargets) }},
	{"_slo_requests", func(q *request) (float64, bool) { return float64(1 + q.notIssued), q.has(hasTargets) }},
	{"goodput.met", func(q *request) (float64, bool) { return 1, q.has(metTargets) }},
	{"kv.preemptions", func(q *request) (float64, bool) { return float64(q.preemptions), true }},
	{"_scheduled", func(q *request) (float64, bool) { return 1, q.has(scheduled) }},
	{"_prompt", func(q *request) (float64, bool) { return float64(q.input), q.has(scheduled) }},
	{"_cached", func(q *request) (float64, bool) { return float64(q.cached), q.has(scheduled) }},
	{"_gaps", func(q *request) (float64, bool) { return float64(q.output - 1), q.state == completed && q.output > 1 }},
	{"_decode", func(q *request) (float64, bool) {
		return float64(q.e2e-q.ttft) / 1000, q.state == completed && q.output > 1
	}},
}

// ratios divide two totals; rates are per second and count completed requests.
var (
	ratios = []struct{ path, over, under string }{
		{"admission_rate", "requests.admitted", "requests.offered"},
		{"preemption_rate", "kv.preemptions", "_scheduled"},
		{"kv.prefix_hit_ratio", "_cached", "_prompt"},
		{"goodput.ratio", "goodput.met", "_slo_requests"},
	}
	rates = []struct {
		path string
		of   func(*request) float64
	}{
		{"goodput.rps", func(q *request) float64 {
			if q.has(metTargets) {
				return 1
			}
			return 0
		}},
		{"throughput.rps", func(*request) float64 { return 1 }},
		{"throughput.output_tok_s", func(q *request) float64 { return float64(q.output) }},
		{"throughput.total_tok_s", func(q *request) float64 { return float64(q.input + q.output) }},
	}
)

// groupRows groups the positions in order by a name of the requests' groups. largest are
// the names of the groups with the most requests, left is the number of groups that are
// omitted.
func (s *resampledSide) groupRows(groups []group, name func(group) string) (at map[string][]int32, largest []string,
	omitted int) {
	at = map[string][]int32{}
	for k, n := range s.order {
		q := s.at(n)
		if q.state == 0 {
			continue
		}
		if of := name(groups[q.group]); of != "" {
			if at[of] == nil {
				largest = append(largest, of)
			}
			at[of] = append(at[of], int32(k))
		}
	}
	slices.SortFunc(largest, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(at[y]), len(at[x])),
			cmp.Compare(x, y))
	})
	largestNames := largest[:min(len(largest), maxGroups)]
	return at, largestNames, len(largest) - len(largestNames)
}
