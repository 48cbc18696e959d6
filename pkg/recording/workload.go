package recording

import (
	"fmt"

	"blis/pkg/stream"
)

// Workload returns the requests that replay the run: with its arrivals, lengths,
// labels and ids, and with what the file says of prompts and deadlines. Requests
// without an answer whose length is known are left out, and so are those of
// which the prompt's length is not known. OutputTokens is 0 where tokens were not
// counted, which no simulation takes: see SetOutputTokens.
//
// With a period above 0 (see Period) prompts repeat: requests a period apart have
// one prompt, so that a prefix cache finds it again. A request as long as one near
// its place in the period, and not as the one at it, has that one's prompt:
// clients that send at the same time overtake each other. One that is as long as
// none of them has a prompt of its own.
//
// It is an error if the file does not say when requests came; where it says only
// when they were scheduled, they arrive then.
func (r *Run) Workload(period int) ([]stream.Request, error) {
	if !r.Timed() {
		return nil, fmt.Errorf("%s", noArrivals)
	}
	return r.Requests(period), nil
}

// Requests are those of Workload, of any run: where it is not Timed they are in the
// order of the file, and all arrive at 0.
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
		q := stream.Request{Kind: stream.KindRequest, ID: o.ID, ArrivalUS: o.ArrivalUS, InputTokens: o.InputTokens, OutputTokens: o.OutputTokens,
			Tenant: o.Tenant, SLOClass: o.SLOClass, Model: o.Model, Session: o.Session, DeadlineUS: stream.Never}
		if f, there := r.offers[o.ID]; there {
			q.Turn = f.turn
			q.Prompt = append(q.Prompt, f.prompt...)
			if f.deadline > 0 {
				q.DeadlineUS = o.ArrivalUS + stream.Micros(f.deadline+0.5)
			}
		}
		if period > 0 && len(q.Prompt) == 0 {
			if at := placeOf(prompts, i%period, o.InputTokens); at >= 0 {
				q.Prompt = []stream.Segment{{ID: fmt.Sprintf("prompt-%d", at), Tokens: o.InputTokens}}
			}
		}
		list = append(list, q)
	}
	return list
}

// Timed reports whether it is known when requests came, or at least when they were
// scheduled.
func (r *Run) Timed() bool {
	return r.Arrivals || len(r.Outcomes) > 0 && r.Outcomes[0].ScheduledUS != stream.Never
}

// prompts are the lengths of the prompts of a period: of each place the one that
// most requests there have, of several the one that came first.
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

// overtaken is how many places away a request's prompt is looked for.
const overtaken = 5

// placeOf is the place of the nearest prompt of that length, -1 if there is none.
func placeOf(prompts []int64, place int, length int64) int {
	for d := 0; d <= min(overtaken, len(prompts)/2); d++ {
		for _, at := range []int{place - d, place + d} {
			if at = (at + len(prompts)) % len(prompts); prompts[at] == length {
				return at
			}
		}
	}
	return -1
}
