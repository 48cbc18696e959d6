package recording

import (
	"fmt"
	"math"
	"slices"

	"blis/pkg/stream"
)

// Requests returns the requests that replay the run, with its arrivals, lengths, labels and ids, and
// with the prompts and deadlines in the file. If the file has only scheduling times, requests arrive
// then; with neither (see HasArrivalTimes), they are in the order of the file and arrive at 0.
// Failed requests without a known output length and requests without a known prompt length are left
// out. OutputTokens is 0 if tokens were not counted; a simulation rejects that, see SetOutputTokens.
//
// With a period above 0 (see Period) prompts repeat: requests a period apart have the same prompt,
// so that they hit the prefix cache. A request whose length does not match its place in the period
// gets the prompt of a nearby place with that length, because concurrent clients overtake each
// other. Without such a place its prompt is unique.
func (r *Run) Requests(period int) []stream.Request {
	var prompts []int64
	if period > 0 {
		prompts = r.prompts(period)
	}
	var list []stream.Request
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.InputTokens == 0 || o.OutputTokens == 0 && o.State != completed {
			continue
		}
		q := stream.Request{Kind: stream.KindRequest, ID: o.ID, ArrivalUS: o.ArrivalUS, InputTokens: o.InputTokens,
			OutputTokens: o.OutputTokens,
			Tenant:       o.Tenant, SLOClass: o.SLOClass, Model: o.Model, Session: o.Session, DeadlineUS: stream.Never}
		if f, there := r.info[o.ID]; there {
			q.Turn = f.turn
			q.Prompt = append(q.Prompt, f.prompt...)
			if f.deadline > 0 {
				q.DeadlineUS = o.ArrivalUS + stream.Micros(f.deadline+0.5)
			}
		}
		if len(q.Prompt) == 0 {
			own := q.InputTokens
			if r.sharedPrefix > 0 {
				q.Prompt = SharedPrefix(own, r.sharedPrefix)
				for _, s := range q.Prompt {
					own -= s.Tokens
				}
			}
			if at := nearestPrompt(prompts, i%max(1, period), o.InputTokens); at >= 0 {
				q.Prompt = append(q.Prompt, stream.Segment{ID: fmt.Sprintf("prompt-%d", at), Tokens: own})
			}
		}
		list = append(list, q)
	}
	return list
}

// SetSharedPrefix says that all prompts of the run begin with the same n tokens, such as a system
// prompt, unless the file has prompts.
func (r *Run) SetSharedPrefix(n int64) { r.sharedPrefix = n }

// SharedPrefix is a prompt of the given number of tokens, of which all requests share the first n; at
// least one is its own.
func SharedPrefix(tokens, n int64) []stream.Segment {
	if n = min(n, tokens-1); n <= 0 {
		return nil
	}
	return []stream.Segment{{ID: "shared-prefix", Tokens: n}}
}

// HasArrivalTimes reports whether the arrivals, or at least the scheduling times, are known.
func (r *Run) HasArrivalTimes() bool {
	return r.Arrivals || len(r.Outcomes) > 0 && r.Outcomes[0].ScheduledUS != stream.Never
}

// prompts returns the prompt lengths of a period: at each place the most frequent one, or the first
// of several.
func (r *Run) prompts(period int) []int64 {
	lengths := make([]int64, period)
	for place := range lengths {
		counts := map[int64]int{}
		for i := place; i < len(r.Outcomes); i += period {
			l := r.Outcomes[i].InputTokens
			if counts[l]++; counts[l] > counts[lengths[place]] {
				lengths[place] = l
			}
		}
	}
	return lengths
}

// maxShift is how many places around its own a request's prompt is searched for.
const maxShift = 5

// nearestPrompt returns the place of the nearest prompt of the given length; -1 if there is none.
func nearestPrompt(prompts []int64, place int, length int64) int {
	if len(prompts) == 0 {
		return -1
	}
	for d := 0; d <= min(maxShift, len(prompts)/2); d++ {
		for _, at := range []int{place - d, place + d} {
			if at = (at + len(prompts)) % len(prompts); prompts[at] == length {
				return at
			}
		}
	}
	return -1
}

const (
	// maxPeriod is the longest period considered.
	maxPeriod = 10_000
	// minPairs and maxPairs bound the pairs of requests by which a period is tested.
	minPairs, maxPairs = 20, 20_000
)

// Period returns the period with which prompts repeat, judged by the lengths of the requests in
// order of arrival, and the share of requests as long as the one a period before; 0 if there is no
// period.
//
// Lengths show a period if at least half of them recur, and eight standard deviations more than
// independent lengths of the same distribution. If two random lengths are equal more often than one
// time in five (a constant length, a few in turn), there is no evidence that the prompts are the
// same. The same is true of lengths that change slowly, so that adjacent requests are equal.
func (r *Run) Period() (period int, share float64) {
	var lengths []int64
	for i := range r.Outcomes {
		lengths = append(lengths, r.Outcomes[i].InputTokens)
	}
	chance := chanceOfEqual(lengths)
	if chance > 0.2 {
		return 0, 0
	}
	shares := []float64{0}
	best, noise := 0, 0.0
	for p := 1; p <= min(len(lengths)/2, maxPeriod) && len(lengths)-p >= minPairs; p++ {
		share, pairs := recurrence(lengths, p)
		if share < 0.5 || share < chance+8*math.Sqrt(chance*(1-chance)/float64(pairs)) {
			shares = append(shares, 0)
			continue
		}
		if shares = append(shares, share); share > shares[best] {
			best, noise = p, math.Sqrt(share*(1-share)/float64(pairs))
		}
	}
	if best == 0 {
		return 0, 0
	}
	// Multiples of the period are about as good: take the shortest.
	top := shares[best]
	best = slices.IndexFunc(shares, func(s float64) bool { return s > 0 && s >= top-max(0.02, 4*noise) })
	between := 0.0
	for p := 1; p < best; p++ {
		s, _ := recurrence(lengths, p)
		between += s
	}
	if best == 1 || between > 0.3*float64(best-1) {
		return 0, 0
	}
	return best, shares[best]
}

// recurrence returns the share of lengths that equal the one p before, and the number of pairs.
func recurrence(lengths []int64, p int) (share float64, pairs int) {
	pairs = min(len(lengths)-p, maxPairs)
	same := 0
	for i := range pairs {
		if lengths[i] == lengths[i+p] {
			same++
		}
	}
	return float64(same) / float64(pairs), pairs
}

// chanceOfEqual is the probability that two random lengths are equal.
func chanceOfEqual(lengths []int64) float64 {
	counts := map[int64]int{}
	for _, l := range lengths {
		counts[l]++
	}
	pairs := 0 // integers, so that map order has no effect
	for _, n := range counts {
		pairs += n * n
	}
	return float64(pairs) / float64(max(len(lengths)*len(lengths), 1))
}
