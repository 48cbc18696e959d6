package recording

import (
	"fmt"

	"blis/pkg/stream"
)

// Workload returns the requests that replay the run, with its arrivals, lengths, labels and ids,
// and with the prompts and deadlines in the file. Failed requests without a known output length and
// requests without a known prompt length are left out. OutputTokens is 0 if tokens were not
// counted; a simulation rejects that, see SetOutputTokens.
//
// With a period above 0 (see Period) prompts repeat: requests a period apart have the same prompt,
// so that they hit the prefix cache. A request whose length does not match its place in the period
// gets the prompt of a nearby place with that length, because concurrent clients overtake each
// other. Without such a place its prompt is unique.
//
// It is an error if the file has no arrival times. If it has only scheduling times, requests arrive
// then.
func (r *Run) Workload(period int) ([]stream.Request, error) {
	if !r.HasArrivalTimes() {
		return nil, fmt.Errorf("%s", noArrivalsWarning)
	}
	return r.Requests(period), nil
}

// Requests is Workload for any run: without arrival times requests are in the order of the file and
// arrive at 0.
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
		if period > 0 && len(q.Prompt) == 0 {
			if at := nearestPrompt(prompts, i%period, o.InputTokens); at >= 0 {
				q.Prompt = []stream.Segment{{ID: fmt.Sprintf("prompt-%d", at), Tokens: o.InputTokens}}
			}
		}
		list = append(list, q)
	}
	return list
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
	for d := 0; d <= min(maxShift, len(prompts)/2); d++ {
		for _, at := range []int{place - d, place + d} {
			if at = (at + len(prompts)) % len(prompts); prompts[at] == length {
				return at
			}
		}
	}
	return -1
}
