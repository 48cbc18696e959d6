package recording

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/stream"
)

// SetOutputTokens sets the output tokens of every completed request to n. Clients that count by
// tokenizing the text again are often wrong, and a benchmark that requested n tokens and ignored
// the end of text knows the number.
func (r *Run) SetOutputTokens(n int64) {
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.State == completed {
			o.OutputTokens, o.GeneratedTokens = n, n
			o.ITLUS, o.ITLMaxUS = nil, stream.Never
		}
	}
}

const (
	// neighbors is the number of requests on either side that a request is compared with. Requests
	// that are decoded concurrently have the same step times.
	neighbors = 50
	// maxRatio is the factor by which a request's time per token must differ from that of its
	// neighbors.
	maxRatio = 3
	// minSteps is the minimum median decode steps of the neighbors. With fewer steps, a single step
	// with a prefill dominates.
	minSteps = 10
	// maxWrongShare is the share of wrong counts above which the counts of a run are reported.
	maxWrongShare = 0.002
)

// OutputCounts describes inconsistent output token counts of the run; "" if they are consistent.
//
// Requests that are decoded concurrently take the same steps. The number of tokens therefore
// follows from the decode time and the median time per token of the neighboring requests. A count
// is wrong if it is 0, or if it makes the request three times as slow or fast as its neighbors and
// its decode time is at least half of theirs: a stall affects the rate of a few tokens, but not
// that of many. If the neighbors have fewer than ten tokens, only a count of 0 is wrong. Wrong
// counts are reported if they exceed 0.2 % of the requests.
func (r *Run) OutputCounts() string {
	warning, _ := r.checkCounts()
	return warning
}

// RepairOutputTokens gives every completed request CommonOutput tokens if there is such a number. It returns what is
// wrong with the counts and what it did, nil if they are consistent.
func (r *Run) RepairOutputTokens() (warnings []string) {
	problem, common := r.checkCounts()
	if problem == "" {
		return nil
	}
	if warnings = []string{problem}; common > 0 {
		r.SetOutputTokens(common)
		warnings = append(warnings, fmt.Sprintf("every request is taken to have %d output tokens", common))
	}
	return warnings
}

// CommonOutput returns the median of the consistent output token counts if there are inconsistent ones and 60 % of
// the consistent ones are within a tenth of it: all requests probably had as many. Else it returns 0.
func (r *Run) CommonOutput() int64 {
	_, common := r.checkCounts()
	return common
}

// checkCounts returns what OutputCounts and CommonOutput do.
func (r *Run) checkCounts() (warning string, common int64) {
	var at []int // completed and streamed requests
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.State == completed && o.FirstTokenUS != stream.Never &&
			o.CompletedUS > o.FirstTokenUS {
			at = append(at, i)
		}
	}
	var wrong []int
	var consistent []float64 // counts that agree with the times
	for k, i := range at {
		o := &r.Outcomes[i]
		near := at[max(k-neighbors, 0):min(k+neighbors+1, len(at))]
		_, perToken, decoded := r.decodeTimes(near)
		took := float64(o.CompletedUS - o.FirstTokenUS)
		steps := float64(max(o.OutputTokens-1, 0))
		switch {
		case isMissing(perToken):
		case o.OutputTokens > 0 && decoded < minSteps*perToken:
			consistent = append(consistent, float64(o.OutputTokens))
		case took >= decoded/2 && (took > maxRatio*perToken*steps || took*maxRatio < perToken*steps):
			wrong = append(wrong, i)
		default:
			consistent = append(consistent, float64(o.OutputTokens))
		}
	}
	if len(wrong) < 3 || float64(len(wrong)) < maxWrongShare*float64(len(at)) {
		return "", 0
	}
	worst := &r.Outcomes[wrong[0]]
	mean, median, _ := r.decodeTimes(at)
	warning = fmt.Sprintf("output tokens contradict the times of %d of %d requests (%s: %d tokens in %.0f ms after "+
		"the first; mean TPOT %.1f ms, median %.1f), probably because the text was tokenized again",
		len(wrong), len(at), worst.ID, worst.OutputTokens, float64(worst.CompletedUS-worst.FirstTokenUS)/1e3,
		mean/1e3, median/1e3)
	slices.Sort(consistent)
	middle := consistent[len(consistent)/2]
	low, high := consistent[len(consistent)/5], consistent[len(consistent)-1-len(consistent)/5]
	if high-low <= 0.1*middle {
		return warning + fmt.Sprintf("; the others have about %.0f: if all requested N and ignored the end of text, "+
			"use --output-tokens N", middle), int64(math.Round(middle))
	}
	return warning + "; if all requested N tokens, use --output-tokens N", 0
}

// decodeTimes returns the mean and the median time per token after the first, and the median decode
// time, in µs; NaN without requests.
func (r *Run) decodeTimes(at []int) (mean, perToken, decoded float64) {
	var paces, times []float64
	for _, i := range at {
		o := &r.Outcomes[i]
		took := float64(o.CompletedUS - o.FirstTokenUS)
		times = append(times, took)
		if o.OutputTokens > 1 {
			paces = append(paces, took/float64(o.OutputTokens-1))
			mean += paces[len(paces)-1]
		}
	}
	return mean / float64(len(paces)), median(paces), median(times)
}

// median sorts a list and returns its median; NaN if it is empty.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
