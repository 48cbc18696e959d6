package perfetto

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// requestArgs are what the timeline shows of a request.
type requestArgs struct {
	Request      string `json:"request"`
	State        string `json:"state"`
	Class        string `json:"slo_class,omitempty"`
	Tenant       string `json:"tenant,omitempty"`
	InputTokens  int64  `json:"input_tokens"`
	OutputTokens int64  `json:"output_tokens"`
	CachedTokens int64  `json:"cached_tokens"`
	Preemptions  int64  `json:"preemptions,omitempty"`
	SLOMet       *bool  `json:"slo_met,omitempty"`
}

// Outcome adds the slices of a request. A request that did not reach a stage has no slice for it.
func (t *Trace) Outcome(o *stream.Outcome) {
	t.flows++
	id := strings.Clone(o.ID)
	args := requestArgs{Request: id, State: o.State, Class: strings.Clone(o.SLOClass), Tenant: strings.Clone(o.Tenant),
		InputTokens: o.InputTokens, OutputTokens: o.OutputTokens, CachedTokens: o.CachedTokens,
		Preemptions: o.Preemptions, SLOMet: o.SLOMet}
	end := cmp.Or(max(o.CompletedUS, 0), max(o.EndedUS, 0))
	if o.CompletedUS.IsZero() && o.EndedUS.IsZero() { // unfinished in a recording
		end = max(o.ArrivalUS, o.RoutedUS, o.EnqueuedUS, o.ScheduledUS, o.FirstTokenUS)
	}
	until := func(at stream.Micros) stream.Micros {
		if at.IsZero() {
			return end
		}
		return at
	}
	first := len(t.spans)
	t.add("request", o.ArrivalUS, until(o.RoutedUS), event{Name: id, PID: 1, Args: args})
	if !o.PrefillEnqueuedUS.IsZero() {
		t.stay(t.replica(stream.PrefillPool(o.Deployment), o.PrefillReplica), id, args,
			o.PrefillEnqueuedUS, o.PrefillScheduledUS,
			until(o.PrefilledUS), func(from, to stream.Micros) []event { return []event{within("prefill", from, to)} })
	}
	if !o.EnqueuedUS.IsZero() && !o.Replica.IsZero() {
		t.stay(t.replica(o.Deployment, o.Replica), id, args, o.EnqueuedUS, o.ScheduledUS, end,
			func(from, to stream.Micros) []event {
				if !o.PrefillReplica.IsZero() || !o.FirstTokenUS.IsZero() && o.FirstTokenUS <= from {
					return []event{within("decode", from, to)}
				}
				between := min(until(o.FirstTokenUS), to)
				inside := []event{within("prefill", from, between)}
				if !o.FirstTokenUS.IsZero() {
					inside = append(inside, within("decode", between, to))
				}
				return inside
			})
	} else if !o.ScheduledUS.IsZero() || !o.FirstTokenUS.IsZero() { // a recording without replicas
		from := max(o.ScheduledUS, o.ArrivalUS)
		between := min(until(o.FirstTokenUS), end)
		t.add("slot", from, end, event{Name: id, PID: t.pid("server"), Args: args},
			within("prefill", from, between), within("decode", between, end))
	}
	t.connect(t.spans[first:])
}

// stay adds the time of a request on a replica: in its queue and then in its batch. end is when it left.
func (t *Trace) stay(pid int, id string, args requestArgs, enqueued, scheduled, end stream.Micros,
	parts func(from, to stream.Micros) []event) {
	left := scheduled
	if scheduled.IsZero() {
		left = end
	}
	t.add("queue", enqueued, left, event{Name: id, PID: pid, Args: args})
	t.changes = append(t.changes, change{enqueued, pid, 0, 1}, change{left, pid, 0, -1})
	if scheduled.IsZero() {
		return
	}
	t.changes = append(t.changes, change{scheduled, pid, 1, 0}, change{end, pid, -1, 0})
	t.add("slot", scheduled, end, event{Name: id, PID: pid, Args: args}, parts(scheduled, end)...)
}

// connect draws arrows between the slices of a request, to the decode of its last one.
func (t *Trace) connect(spans []span) {
	if len(spans) < 2 {
		return
	}
	for i := range spans {
		spans[i].BindID, spans[i].FlowIn, spans[i].FlowOut = t.flows, i > 0, i < len(spans)-1
	}
	last := &spans[len(spans)-1]
	if n := len(last.inside); n > 0 && last.inside[n-1].Name == "decode" {
		last.FlowOut = true
		last.inside[n-1].BindID, last.inside[n-1].FlowIn = t.flows, true
	}
}

// track is the time at which a track becomes free, and its number in the group.
type track struct {
	free   stream.Micros
	number int
}

// tracks are the tracks of a group that are in use, the first to become free first.
type tracks []track

func (h tracks) Len() int           { return len(h) }
func (h tracks) Less(i, j int) bool { return h[i].free < h[j].free }
func (h tracks) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *tracks) Push(x any)        { *h = append(*h, x.(track)) }
func (h *tracks) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// numbers are free numbers, the lowest first.
type numbers []int

func (h numbers) Len() int           { return len(h) }
func (h numbers) Less(i, j int) bool { return h[i] < h[j] }
func (h numbers) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *numbers) Push(x any)        { *h = append(*h, x.(int)) }
func (h *numbers) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// placeSpans puts each slice on the lowest track of its group that is free and writes it.
func (t *Trace) placeSpans() {
	slices.SortStableFunc(t.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.TS, b.TS), cmp.Compare(a.end, b.end))
	})
	type key struct {
		pid   int
		group string
	}
	used, free, count := map[key]*tracks{}, map[key]*numbers{}, map[key]int{}
	for i := range t.spans {
		s := &t.spans[i]
		k := key{s.PID, s.group}
		if used[k] == nil {
			used[k], free[k] = &tracks{}, &numbers{}
		}
		for used[k].Len() > 0 && (*used[k])[0].free <= s.TS {
			heap.Push(free[k], heap.Pop(used[k]).(track).number)
		}
		number := count[k]
		if free[k].Len() > 0 {
			number = heap.Pop(free[k]).(int)
		} else {
			count[k]++
		}
		// A slice of no duration still takes its track for an instant, so that another one is not inside it.
		heap.Push(used[k], track{max(s.end, s.TS+1), number})
		s.TID = firstGroup + groupSize*slices.Index(groups, s.group) + number
		t.name(s.PID, s.TID, fmt.Sprintf("%s %d", s.group, number))
		t.write(s.event)
		for _, e := range s.inside {
			e.PID, e.TID = s.PID, s.TID
			t.write(e)
		}
	}
	t.spans = nil
}

// countRequests writes the counters of requests that follow from outcomes: their values after each instant.
func (t *Trace) countRequests() {
	slices.SortStableFunc(t.changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.pid, b.pid))
	})
	now := map[int]change{}
	for i, c := range t.changes {
		n := now[c.pid]
		n.running += c.running
		n.waiting += c.waiting
		now[c.pid] = n
		if i+1 < len(t.changes) && t.changes[i+1].at == c.at && t.changes[i+1].pid == c.pid {
			continue
		}
		t.count(c.pid, c.at, "running", int64(n.running))
		t.count(c.pid, c.at, "waiting", int64(n.waiting))
	}
}
