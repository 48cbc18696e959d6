package recording

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/stream"
)

// SetOutputTokens gives every request that completed n output tokens, whatever
// the file says: where clients count by tokenizing the text again, the counts are
// wrong, and who asked for n and ignored the end of text knows better.
func (r *Run) SetOutputTokens(n int64) {
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.State == completed {
			o.OutputTokens, o.GeneratedTokens = n, n
			o.ITLUS, o.ITLMaxUS = nil, stream.Never
		}
	}
}

const (
	// neighbours is how many requests on either side a request is compared with: those
	// that were decoded beside it have steps of the same length.
	neighbours = 50
	// beyond is by what factor a request's time per token must differ from theirs.
	beyond = 3
	// fewestSteps is how many steps the requests near one are decoded for at least, in the
	// median: of fewer, one beside which a prompt is computed is most of the time.
	fewestSteps = 10
	// spoilt is the share of requests from which on counts are taken as wrong.
	spoilt = 0.002
)

// OutputCounts says how the output counts of the run contradict themselves, or "".
//
// Requests that are decoded at the same time take the same steps, so that each has
// as many tokens as it was decoded for, over the median time per token of those
// that came just before and after it. A count is taken as wrong if it is 0, or if
// the request would have to be three times as slow or as fast as they were, over a
// time at least half as long as theirs (a stall spoils the pace of few tokens, and
// hardly that of many). Where answers are of less than ten tokens times say nothing
// of a count above 0. Counts of the run are called wrong from 0.2 % on.
func (r *Run) OutputCounts() string {
	var at []int // completed requests that were streamed
	for i := range r.Outcomes {
		if o := &r.Outcomes[i]; o.State == completed && o.FirstTokenUS != stream.Never && o.CompletedUS > o.FirstTokenUS {
			at = append(at, i)
		}
	}
	var wrong []int
	var sound []float64 // counts that agree with the times
	for k, i := range at {
		o := &r.Outcomes[i]
		near := at[max(k-neighbours, 0):min(k+neighbours+1, len(at))]
		pace, long := r.pace(near)
		took := float64(o.CompletedUS - o.FirstTokenUS)
		steps := float64(max(o.OutputTokens-1, 0))
		switch {
		case isAbsent(pace):
		case o.OutputTokens > 0 && long < fewestSteps*pace:
			sound = append(sound, float64(o.OutputTokens))
		case took >= long/2 && (took > beyond*pace*steps || took*beyond < pace*steps):
			wrong = append(wrong, i)
		default:
			sound = append(sound, float64(o.OutputTokens))
		}
	}
	if len(wrong) < 3 || float64(len(wrong)) < spoilt*float64(len(at)) {
		return ""
	}
	worst := &r.Outcomes[wrong[0]]
	mean, median := r.tpots(at)
	odd := fmt.Sprintf("output tokens contradict the times of %d of %d requests (%s: %d tokens in %.0f ms after the first; TPOT is %.1f ms in the mean, %.1f in the median), as counts of text that was tokenized again do",
		len(wrong), len(at), worst.ID, worst.OutputTokens, float64(worst.CompletedUS-worst.FirstTokenUS)/1e3, mean, median)
	slices.Sort(sound)
	middle := sound[len(sound)/2]
	low, high := sound[len(sound)/5], sound[len(sound)-1-len(sound)/5]
	if high-low <= 0.1*middle {
		return odd + fmt.Sprintf("; the others have about %.0f: if all asked for N and ignored the end of text, use --output-tokens N", middle)
	}
	return odd + "; --output-tokens N gives all of them N, if that is what they asked for"
}

// pace is the median time per token after the first of some requests, and the
// median time that they were decoded for, in µs; NaN without any.
func (r *Run) pace(at []int) (perToken, decoded float64) {
	var paces, times []float64
	for _, i := range at {
		o := &r.Outcomes[i]
		took := float64(o.CompletedUS - o.FirstTokenUS)
		times = append(times, took)
		if o.OutputTokens > 1 {
			paces = append(paces, took/float64(o.OutputTokens-1))
		}
	}
	return median(paces), median(times)
}

// tpots are mean and median of TPOT, in ms.
func (r *Run) tpots(at []int) (mean, middle float64) {
	var list []float64
	for _, i := range at {
		if o := &r.Outcomes[i]; o.OutputTokens > 1 {
			list = append(list, stream.TPOT(int64(o.CompletedUS-o.FirstTokenUS), o.OutputTokens))
			mean += list[len(list)-1]
		}
	}
	return mean / float64(len(list)), median(list)
}

// median sorts a list and returns its middle, NaN if it is empty.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
