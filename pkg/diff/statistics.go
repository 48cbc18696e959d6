package diff

import (
	"cmp"
	"slices"
)

// measures are the times that have distributions, in ms, as package metrics counts
// them.
var measures = []struct {
	path string
	of   func(*request) (ms float64, ok bool)
}{
	{"ttft", func(q *request) (float64, bool) { return millis(q.ttft) }},
	{"tpot", func(q *request) (float64, bool) { return q.tpot() }},
	{"e2e", func(q *request) (float64, bool) { return millis(q.e2e) }},
	{"queue", func(q *request) (float64, bool) { return millis(q.queue) }},
}

func millis(us int64) (ms float64, ok bool) { return float64(us) / 1000, us != absent }

// totals are sums over requests; what is below _ is of no metric by itself.
var totals = []struct {
	path string
	of   func(*request) (x float64, counts bool)
}{
	{"requests.offered", func(q *request) (float64, bool) { return 1, q.state != 0 }},
	{"requests.admitted", func(q *request) (float64, bool) { return 1, q.is(admitted) }},
	{"requests.completed", func(q *request) (float64, bool) { return 1, q.state == completed }},
	{"requests.rejected", func(q *request) (float64, bool) { return 1, q.state == rejected }},
	{"requests.timed_out", func(q *request) (float64, bool) { return 1, q.state == timedOut }},
	{"requests.failed", func(q *request) (float64, bool) { return 1, q.state == failed }},
	{"requests.unfinished", func(q *request) (float64, bool) { return 1, q.state == unfinished }},
	{"goodput.offered", func(q *request) (float64, bool) { return 1, q.is(judged) }},
	{"requests.lost", func(q *request) (float64, bool) { return float64(q.lost), true }},
	{"goodput.lost", func(q *request) (float64, bool) { return float64(q.lost), q.is(judged) }},
	{"_promised", func(q *request) (float64, bool) { return float64(1 + q.lost), q.is(judged) }},
	{"goodput.met", func(q *request) (float64, bool) { return 1, q.is(met) }},
	{"kv.preemptions", func(q *request) (float64, bool) { return float64(q.again), true }},
	{"_scheduled", func(q *request) (float64, bool) { return 1, q.is(scheduled) }},
	{"_prompt", func(q *request) (float64, bool) { return float64(q.input), q.is(scheduled) }},
	{"_cached", func(q *request) (float64, bool) { return float64(q.cached), q.is(scheduled) }},
	{"_gaps", func(q *request) (float64, bool) { return float64(q.output - 1), q.state == completed && q.output > 1 }},
	{"_decode", func(q *request) (float64, bool) {
		return float64(q.e2e-q.ttft) / 1000, q.state == completed && q.output > 1
	}},
}

// ratios are of two totals, rates per second of what completed.
var (
	ratios = []struct{ path, over, under string }{
		{"admission_rate", "requests.admitted", "requests.offered"},
		{"preemption_rate", "kv.preemptions", "_scheduled"},
		{"kv.prefix_hit_ratio", "_cached", "_prompt"},
		{"goodput.ratio", "goodput.met", "_promised"},
	}
	rates = []struct {
		path string
		of   func(*request) float64
	}{
		{"goodput.rps", func(q *request) float64 {
			if q.is(met) {
				return 1
			}
			return 0
		}},
		{"throughput.rps", func(*request) float64 { return 1 }},
		{"throughput.output_tok_s", func(q *request) float64 { return float64(q.output) }},
		{"throughput.total_tok_s", func(q *request) float64 { return float64(q.input + q.output) }},
	}
)

// parts divides the order by a name of the requests' groups: the places of each,
// the names of the largest, and how many are left out of these.
func (s *sample) parts(groups []group, name func(group) string) (at map[string][]int32, largest []string, left int) {
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
	slices.SortFunc(largest, func(x, y string) int { return cmp.Or(cmp.Compare(len(at[y]), len(at[x])), cmp.Compare(x, y)) })
	kept := largest[:min(len(largest), mostParts)]
	return at, kept, len(largest) - len(kept)
}
