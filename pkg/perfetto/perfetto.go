// Package perfetto writes a run as a timeline for ui.perfetto.dev, in the Trace Event Format (JSON) of Chrome.
//
// The process router has a track for each stage that decides, with an instant for each decision, and tracks with
// the time of each request from its arrival until it was routed. Each replica is a process:
//
//	steps       a slice for each engine step: prefill, decode or mixed; only at trace level full
//	queue N     requests in the wait queue, before their first batch
//	slot N      requests from their first batch to their end, with the slices prefill and decode inside
//	transfer N  transfers of KV blocks; only at trace level full
//	counters    running, waiting and used KV blocks; without steps, the first two follow from the outcomes
//
// Tracks with numbers hold slices that do not overlap: a slice is on the first track that is free.
// Arrows (flows) connect the slices of a request. Times are µs since the workload's origin.
package perfetto

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"blis/pkg/stream"
)

// event is one entry of the format. Times are in µs.
type event struct {
	Name  string        `json:"name"`
	Phase string        `json:"ph"`
	TS    stream.Micros `json:"ts"`
	Dur   *int64        `json:"dur,omitempty"`
	PID   int           `json:"pid"`
	TID   int           `json:"tid"`
	Cat   string        `json:"cat,omitempty"`
	Scope string        `json:"s,omitempty"`
	// BindID connects the slices of a request, in the order of time.
	BindID  int64 `json:"bind_id,omitempty"`
	FlowIn  bool  `json:"flow_in,omitempty"`
	FlowOut bool  `json:"flow_out,omitempty"`
	Args    any   `json:"args,omitempty"`
}

// Phases of events.
const (
	slice   = "X"
	instant = "i"
	counter = "C"
	meta    = "M"
)

// span is a slice that gets a free track of its group when all are known.
type span struct {
	event
	end   stream.Micros
	group string
	// inside are slices within this one.
	inside []event
}

// Trace is a timeline that is being written.
type Trace struct {
	out *bufio.Writer
	err error
	// begun is true after the first event.
	begun bool
	// pids are the processes by name, in the order in which they were met.
	pids  map[string]int
	names []string
	// threads are the tracks that have a name, by process.
	threads map[[2]int]string
	spans   []span
	// flows is the number of requests so far.
	flows int64
	steps bool
	// changes are those of the counters, from outcomes.
	changes []change
	// from and to limit what is shown; see Window.
	from, to stream.Micros
	decision stream.Decision // a buffer
	step     stream.Step     // a buffer
}

// change is that of a counter of a replica.
type change struct {
	at               stream.Micros
	pid              int
	running, waiting int
}

// New begins a timeline.
func New(w io.Writer) *Trace {
	t := &Trace{out: bufio.NewWriterSize(w, 1<<16), pids: map[string]int{}, threads: map[[2]int]string{},
		to: stream.Never}
	_, t.err = t.out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	t.pid("router")
	return t
}

// write adds an event.
func (t *Trace) write(e event) {
	if t.err != nil {
		return
	}
	text, err := json.Marshal(e)
	if err != nil {
		t.err = err
		return
	}
	if t.begun {
		t.out.WriteByte(',')
	}
	t.begun = true
	t.out.WriteByte('\n')
	_, t.err = t.out.Write(text)
}

// pid is the number of a process, from 1.
func (t *Trace) pid(name string) int {
	id, known := t.pids[name]
	if !known {
		id = len(t.pids) + 1
		name = strings.Clone(name)
		t.pids[name] = id
		t.names = append(t.names, name)
	}
	return id
}

func (t *Trace) replica(deployment string, replica stream.Index) int {
	return t.pid(fmt.Sprintf("%s/%d", deployment, replica))
}

// Numbers of tracks of a process. Groups of tracks follow.
const (
	stepTrack  = 1
	stageTrack = 1 // and those after it, in the router
	firstGroup = 1000
	groupSize  = 1000000
)

// groups are the groups of tracks, from the top.
var groups = []string{"request", "queue", "slot", "transfer", "anomaly"}

func (t *Trace) name(pid, tid int, name string) {
	if _, known := t.threads[[2]int{pid, tid}]; !known {
		t.threads[[2]int{pid, tid}] = name
	}
}

// add adds a slice to a group of tracks of a process.
func (t *Trace) add(group string, from, to stream.Micros, e event, inside ...event) {
	dur := int64(to - from)
	e.Phase, e.TS, e.Dur, e.Cat = slice, from, &dur, cmp.Or(e.Cat, group)
	t.spans = append(t.spans, span{event: e, end: to, group: group, inside: inside})
}

// within returns a slice inside another one.
func within(name string, from, to stream.Micros) event {
	dur := int64(to - from)
	return event{Name: name, Phase: slice, TS: from, Dur: &dur, Cat: name}
}

// Step adds an engine step.
func (t *Trace) Step(s *stream.Step) {
	t.steps = true
	name := "decode"
	switch {
	case s.PrefillTokens > 0 && s.DecodeTokens > 0:
		name = "mixed"
	case s.PrefillTokens > 0:
		name = "prefill"
	}
	pid := t.replica(s.Deployment, s.Replica)
	t.name(pid, stepTrack, "steps")
	dur := int64(s.EndUS - s.StartUS)
	t.write(event{Name: name, Phase: slice, TS: s.StartUS, Dur: &dur, PID: pid, TID: stepTrack, Cat: "step",
		Args: map[string]int64{"prefill_tokens": s.PrefillTokens, "decode_tokens": s.DecodeTokens,
			"requests": int64(len(s.Batch)), "preempted": s.Preempted}})
	for _, c := range []struct {
		name  string
		value int64
	}{{"running", s.Running}, {"waiting", s.Waiting}, {"used KV blocks", s.UsedBlocks}} {
		t.count(pid, s.StartUS, c.name, c.value)
	}
}

func (t *Trace) count(pid int, at stream.Micros, name string, value int64) {
	t.write(event{Name: name, Phase: counter, TS: at, PID: pid, Args: map[string]int64{"value": value}})
}

// decisionArgs are what the timeline shows of a decision.
type decisionArgs struct {
	ID         string          `json:"id"`
	Request    string          `json:"request"`
	Verdict    string          `json:"verdict,omitempty"`
	DelayUS    int64           `json:"delay_us,omitempty"`
	Replica    string          `json:"replica,omitempty"`
	Score      float64         `json:"score"`
	Candidates int64           `json:"candidates"`
	Reason     string          `json:"reason,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Considered []consideredArg `json:"considered,omitempty"`
}

type consideredArg struct {
	Replica string        `json:"replica"`
	Score   stream.Number `json:"score,omitzero"`
	Queue   stream.Index  `json:"queue_depth,omitzero"`
	Running stream.Index  `json:"running,omitzero"`
	KVUtil  stream.Number `json:"kv_util,omitzero"`
}

// Decision adds an instant on the track of its stage.
func (t *Trace) Decision(d *stream.Decision) {
	tid := stageTrack + slices.Index(stream.Stages, d.Stage)
	t.name(1, tid, strings.ReplaceAll(d.Stage, "_", " "))
	args := decisionArgs{ID: d.ID, Request: d.Request, Verdict: d.Verdict, DelayUS: d.DelayUS, Score: d.Score,
		Candidates: d.Candidates, Reason: d.Reason, Rule: d.Rule}
	if !d.Replica.IsZero() {
		args.Replica = fmt.Sprintf("%s/%d", d.Deployment, d.Replica)
	}
	for i := range d.Considered {
		c := &d.Considered[i]
		args.Considered = append(args.Considered, consideredArg{Replica: fmt.Sprintf("%s/%d", c.Deployment, c.Replica),
			Score: c.Score, Queue: c.QueueDepth, Running: c.Running, KVUtil: c.KVUtil})
	}
	t.write(event{Name: cmp.Or(d.Verdict, args.Replica, d.Stage), Phase: instant, TS: d.AtUS, PID: 1, TID: tid,
		Cat: "decision", Scope: "t", Args: args})
}

// Preemption adds an instant on the track of steps.
func (t *Trace) Preemption(p *stream.Preemption) {
	t.write(event{Name: "preemption", Phase: instant, TS: p.AtUS, PID: t.replica(p.Deployment, p.Replica),
		TID: stepTrack, Cat: "preemption", Scope: "t", Args: map[string]string{"request": p.Request}})
}

// Transfer adds a transfer of KV blocks.
func (t *Trace) Transfer(x *stream.Transfer) {
	t.add("transfer", x.StartedUS, x.EndedUS, event{Name: x.Type, PID: t.replica(x.Deployment, x.Replica),
		Args: map[string]any{"id": x.ID, "request": x.Request, "blocks": x.Blocks, "bytes": x.Bytes,
			"asked_us": x.AskedUS}})
}

// Anomaly adds an episode of a problem, on the replica or, if it has none, on the router.
func (t *Trace) Anomaly(a *stream.Anomaly) {
	pid := 1
	if !a.Replica.IsZero() {
		pid = t.replica(a.Deployment, a.Replica)
	}
	t.add("anomaly", a.StartUS, a.EndUS, event{Name: a.Type, PID: pid,
		Args: map[string]any{"text": a.Text, "severity": a.Severity, "count": a.Count}})
}

// ReplicaState adds an instant on the track of steps.
func (t *Trace) ReplicaState(s *stream.ReplicaState) {
	t.write(event{Name: s.State, Phase: instant, TS: s.AtUS, PID: t.replica(s.Deployment, s.Replica),
		TID: stepTrack, Cat: "state", Scope: "p"})
}

// Close writes what is left and ends the timeline. It does not close the underlying writer.
func (t *Trace) Close() error {
	t.placeSpans()
	if !t.steps {
		t.countRequests()
	}
	for i, name := range t.names {
		t.write(event{Name: "process_name", Phase: meta, PID: i + 1, Args: map[string]string{"name": name}})
		t.write(event{Name: "process_sort_index", Phase: meta, PID: i + 1,
			Args: map[string]int{"sort_index": t.rank(i)}})
	}
	keys := slices.SortedFunc(maps.Keys(t.threads), func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for _, k := range keys {
		t.write(event{Name: "thread_name", Phase: meta, PID: k[0], TID: k[1],
			Args: map[string]string{"name": t.threads[k]}})
		t.write(event{Name: "thread_sort_index", Phase: meta, PID: k[0], TID: k[1],
			Args: map[string]int{"sort_index": k[1]}})
	}
	if t.err == nil {
		_, t.err = t.out.WriteString("\n]}\n")
	}
	return cmp.Or(t.err, t.out.Flush())
}

// rank is the position of a process: the router, then replicas by name and index.
func (t *Trace) rank(i int) (rank int) {
	for j := range t.names {
		if j != i && (j == 0 || i > 0 && (len(t.names[j]) < len(t.names[i]) ||
			len(t.names[j]) == len(t.names[i]) && t.names[j] < t.names[i])) {
			rank++
		}
	}
	return rank
}
