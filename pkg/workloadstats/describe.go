package workloadstats

import (
	"cmp"
	"strings"

	"blis/pkg/stream"
)

// Describer accumulates a Description. It keeps 16 bytes for each call and about 20 for each
// distinct prompt prefix.
type Describer struct {
	requests, sessions int64
	total              arrivals
	minutes            minutes
	timeline           timeline
	groups             map[key]uint32
	keys               []key
	parts              [dimensions]map[string]*arrivals
	calls              []call

	history       history
	conversations conversations
	graphs        sessionGraphs

	prompt []stream.Segment // scratch
}

// key groups arrivals and calls.
type key [dimensions]string

// The dimensions of a key.
const (
	byClass = iota
	byTenant
	byModel
	dimensions
)

// call holds the lengths of one model call. cached is the prefix hit in whole blocks, see Prefix.
type call struct {
	input, output, cached int32
	group                 uint32
}

// New returns an empty Describer.
func New() *Describer {
	d := &Describer{groups: map[key]uint32{}, history: newHistory(),
		conversations: conversations{turns: map[string]int64{}, history: newHistory()},
		graphs:        sessionGraphs{workflows: map[string]int64{}, session: newHistory()}}
	for i := range d.parts {
		d.parts[i] = map[string]*arrivals{}
	}
	return d
}

// Add adds one arrival and keeps no reference to it. Arrivals must be in order.
func (d *Describer) Add(a *stream.Arrival) {
	at := *a.At()
	d.total.add(at)
	d.minutes.add(d.total.span())
	d.timeline.add(d.total.span())
	if a.IsSession {
		d.sessions++
		d.addSession(&a.Session)
		return
	}
	d.requests++
	r := &a.Request
	group := d.group(key{r.SLOClass, r.Tenant, r.Model})
	d.addArrival(group, at)
	hit := d.history.add(root, r.Prompt, r.ID, r.InputTokens, r.OutputTokens)
	if r.Session != "" {
		d.conversations.add(r)
	}
	d.addCall(hit, r.InputTokens, r.OutputTokens, group)
}

// addCall adds a model call.
func (d *Describer) addCall(h hit, input, output int64, group uint32) {
	d.calls = append(d.calls, call{int32(input), int32(output), int32(h.blocks(input)), group})
}

// addSession adds the steps of s, in order.
func (d *Describer) addSession(s *stream.Session) {
	d.addArrival(d.group(key{s.SLOClass, s.Tenant, s.Model}), s.ArrivalUS)
	d.graphs.add(s)
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Tool != "" {
			continue
		}
		d.prompt = s.AppendPrompt(d.prompt[:0], i)
		id := step.RequestID(s.ID)
		hit := d.history.add(root, d.prompt, id, step.InputTokens, step.OutputTokens)
		d.graphs.session.add(root, d.prompt, id, step.InputTokens, step.OutputTokens)
		group := d.group(key{s.SLOClass, s.Tenant, cmp.Or(step.Model, s.Model)})
		d.addCall(hit, step.InputTokens, step.OutputTokens, group)
	}
	d.graphs.end()
}

// group returns the number of group k.
func (d *Describer) group(k key) uint32 {
	g, ok := d.groups[k]
	if !ok {
		g = uint32(len(d.keys))
		for i := range k {
			k[i] = strings.Clone(k[i]) // the caller's string may be part of a larger buffer
		}
		d.groups[k] = g
		d.keys = append(d.keys, k)
	}
	return g
}

// addArrival adds an arrival to its groups.
func (d *Describer) addArrival(group uint32, at stream.Micros) {
	for i, name := range d.keys[group] {
		if name == "" {
			continue
		}
		part := d.parts[i][name]
		if part == nil {
			part = &arrivals{}
			d.parts[i][name] = part
		}
		part.add(at)
	}
}

// Call is one model call.
type Call struct {
	Model         string
	Input, Output int64
	// Cached is the number of leading prompt tokens that were there before, in whole blocks (see
	// Prefix).
	Cached int64
}

// Calls yields all calls.
func (d *Describer) Calls(yield func(Call) bool) {
	for _, c := range d.calls {
		if !yield(Call{d.keys[c.group][byModel], int64(c.input), int64(c.output), int64(c.cached)}) {
			return
		}
	}
}

// OfferedUS is the time over which the calls are spread: from the first arrival to the last, or the
// mean duration of sessions over their calls if that is longer, with instantaneous model calls. It
// gives the peak load of sessions that arrive steadily.
func (d *Describer) OfferedUS() int64 {
	span := d.total.span()
	if d.graphs.callTime > 0 {
		span = max(span, int64(d.graphs.callTime/d.graphs.callCount))
	}
	return span
}

// Description returns the statistics so far.
func (d *Describer) Description() *Description {
	t := &Description{Arrivals: d.total.n, Requests: d.requests, Sessions: d.sessions, Calls: int64(len(d.calls)),
		FromUS: stream.Never, UntilUS: stream.Never, Rate: d.total.rate(d.total.span()), CV: d.total.cv(),
		Timeline: d.timeline.get(), Lengths: lengthsOf(d.calls), Prefix: d.history.prefix()}
	if d.total.n > 0 {
		t.FromUS, t.UntilUS = d.total.first, d.total.last
		t.DurationS = float64(d.total.span()) / 1e6
	}
	t.Fano, t.Minutes = d.minutes.fano(d.total.span())
	t.Cls, t.Tenant, t.Model = d.statsBy(byClass), d.statsBy(byTenant), d.statsBy(byModel)
	t.Session = d.sessionStats()
	return t
}

// statsBy returns the groups in one dimension; nil if there are none.
func (d *Describer) statsBy(dimension int) map[string]*Part {
	calls := map[string][]call{}
	for _, c := range d.calls {
		if name := d.keys[c.group][dimension]; name != "" {
			calls[name] = append(calls[name], c)
		}
	}
	parts := map[string]*Part{}
	for name, of := range calls {
		parts[name] = &Part{Calls: int64(len(of)), Lengths: lengthsOf(of)}
	}
	for name, a := range d.parts[dimension] {
		if parts[name] == nil { // sessions whose steps use other models
			parts[name] = &Part{}
		}
		p := parts[name]
		p.Arrivals, p.Rate, p.CV = a.n, a.rate(d.total.span()), a.cv()
	}
	if len(parts) == 0 {
		return nil
	}
	return parts
}
