package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// timelineEvent is an entry of Chrome's Trace Event Format, as the format is published: times in µs, X a slice with a
// duration, i an instant, C a counter, M a name; bind_id with flow_out and flow_in connects slices.
type timelineEvent struct {
	Name    string         `json:"name"`
	Phase   string         `json:"ph"`
	TS      int64          `json:"ts"`
	Dur     int64          `json:"dur"`
	PID     int            `json:"pid"`
	TID     int            `json:"tid"`
	Cat     string         `json:"cat"`
	Scope   string         `json:"s"`
	BindID  int64          `json:"bind_id"`
	FlowIn  bool           `json:"flow_in"`
	FlowOut bool           `json:"flow_out"`
	Args    map[string]any `json:"args"`
}

// readTimeline reads a file as a viewer would and checks what the format demands.
func readTimeline(t *testing.T, name string) []timelineEvent {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		zip, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(zip)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var file struct {
		DisplayTimeUnit string          `json:"displayTimeUnit"`
		TraceEvents     []timelineEvent `json:"traceEvents"`
	}
	read := json.NewDecoder(bytes.NewReader(data))
	read.DisallowUnknownFields()
	if err := read.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file.TraceEvents
}

// importTimeline does what Perfetto's importer of this format does: it takes the events in the order of time, and those
// of equal times in the order of the file. A slice ends before an event at its end; another one on the track that is
// still open must be around it. An end of a flow belongs to the innermost open slice of its track. All tracks must have
// names. It returns the pairs of slices that flows connect.
func importTimeline(t *testing.T, events []timelineEvent) (arrows [][2]timelineEvent) {
	t.Helper()
	named := map[[2]int]bool{}
	for _, e := range events {
		switch {
		case e.Phase == "M" && e.Name == "thread_name":
			named[[2]int{e.PID, e.TID}] = true
		case e.Phase == "M" && e.Name == "process_name":
			named[[2]int{e.PID, 0}] = true
		}
	}
	ordered := slices.Clone(events)
	slices.SortStableFunc(ordered, func(a, b timelineEvent) int { return cmp.Compare(a.TS, b.TS) })
	open, flows := map[[2]int][]timelineEvent{}, map[int64]timelineEvent{}
	for _, e := range ordered {
		if e.Phase != "X" {
			continue
		}
		track := [2]int{e.PID, e.TID}
		if !named[track] || !named[[2]int{e.PID, 0}] {
			t.Fatalf("track %v has no name", track)
		}
		stack := open[track]
		for len(stack) > 0 && stack[len(stack)-1].TS+stack[len(stack)-1].Dur <= e.TS {
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 {
			around := stack[n-1]
			if e.TS+e.Dur > around.TS+around.Dur {
				t.Fatalf("track %v: %s at %d us overlaps %s", track, e.Name, e.TS, around.Name)
			}
			if e.Args == nil { // a part of a request
				e.Args = around.Args
			}
		}
		open[track] = append(stack, e)
		if e.BindID == 0 {
			continue
		}
		from, begun := flows[e.BindID]
		if begun != e.FlowIn || !e.FlowIn && !e.FlowOut {
			t.Fatalf("flow %d, begun: %v, at %+v", e.BindID, begun, e)
		}
		if e.FlowIn {
			arrows = append(arrows, [2]timelineEvent{from, e})
		}
		if flows[e.BindID] = e; !e.FlowOut {
			delete(flows, e.BindID)
		}
	}
	if len(flows) > 0 {
		t.Fatalf("%d flows do not end", len(flows))
	}
	return arrows
}

// tally counts and sums durations by category.
type tally struct{ Count, DurUS int64 }

// fromRecords is what a timeline of a run must contain.
func fromRecords(t *testing.T, name string) (want map[string]tally, running map[string]int64) {
	t.Helper()
	want, running = map[string]tally{}, map[string]int64{}
	add := func(cat string, us int64) {
		n := want[cat]
		want[cat] = tally{n.Count + 1, n.DurUS + us}
	}
	for r := range records(t, name) {
		switch r.Kind() {
		case stream.KindOutcome:
			var o stream.Outcome
			if err := r.Outcome(&o); err != nil {
				t.Fatal(err)
			}
			end := max(o.CompletedUS, o.EndedUS)
			if o.RoutedUS.IsZero() {
				add("request", int64(end-o.ArrivalUS))
				continue
			}
			add("request", int64(o.RoutedUS-o.ArrivalUS))
			if o.ScheduledUS.IsZero() {
				add("queue", int64(end-o.EnqueuedUS))
				add("arrow request-queue", 0)
				continue
			}
			add("queue", int64(o.ScheduledUS-o.EnqueuedUS))
			add("arrow request-queue", 0)
			add("arrow queue-slot", 0)
			add("slot", int64(end-o.ScheduledUS))
			if o.FirstTokenUS.IsZero() {
				add("prefill", int64(end-o.ScheduledUS))
				continue
			}
			add("prefill", int64(o.FirstTokenUS-o.ScheduledUS))
			add("decode", int64(end-o.FirstTokenUS))
			add("arrow slot-decode", 0)
		case stream.KindDecision:
			add("decision", 0)
		case stream.KindStep:
			var s stream.Step
			if err := r.Decode(&s); err != nil {
				t.Fatal(err)
			}
			add("step", int64(s.EndUS-s.StartUS))
			running[fmt.Sprint(s.Deployment, "/", s.Replica)] += s.Running
		case stream.KindAnomaly:
			var a stream.Anomaly
			if err := r.Decode(&a); err != nil {
				t.Fatal(err)
			}
			add("anomaly", int64(a.EndUS-a.StartUS))
		case stream.KindPreemption:
			add("preemption", 0)
		}
	}
	return want, running
}

// The timeline has the slices, instants and counters of the records, by number and by duration.
func TestTimelineEqualsRecords(t *testing.T) {
	in, call, must := callsIn(t)
	must(Gen, "--scenario", "mixed-slo", "--requests", "600", "-o", in("w.jsonl"))
	for i, level := range []string{"full", "decisions"} {
		run := in(level + ".jsonl")
		must(Sim, "--trace", level, "--set", "deployments.main.replicas=2",
			"--set", "deployments.main.engine.max_num_seqs=32",
			"--set", "admission={type: rate-limit, params: {limit: 60, action: reject}}", in("w.jsonl"), "-o", run)
		file := in(level + []string{".json.gz", ".json"}[i])
		must(Summarize, "--perfetto", file, run)
		want, running := fromRecords(t, run)
		got, counted, counters := map[string]tally{}, map[string]int64{}, map[string]int{}
		processes := map[int]string{}
		events := readTimeline(t, file)
		for _, e := range events {
			if e.Phase == "M" && e.Name == "process_name" {
				processes[e.PID] = e.Args["name"].(string)
			}
		}
		for _, e := range events {
			switch e.Phase {
			case "X", "i":
				n := got[e.Cat]
				got[e.Cat] = tally{n.Count + 1, n.DurUS + e.Dur}
			case "C":
				counters[e.Name]++
				if e.Name == "running" {
					counted[processes[e.PID]] += int64(e.Args["value"].(float64))
				}
			}
		}
		for _, a := range importTimeline(t, events) {
			kind := fmt.Sprintf("arrow %s-%s", a[0].Cat, a[1].Cat)
			got[kind] = tally{got[kind].Count + 1, 0}
			if a[0].Args["request"] != a[1].Args["request"] || a[0].Args["request"] == nil {
				t.Fatalf("an arrow connects requests %v and %v", a[0].Args, a[1].Args)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: timeline %v\nrecords  %v", level, got, want)
		}
		if want["request"].Count != 600 || want["queue"].DurUS == 0 || want["decision"].Count == 0 {
			t.Errorf("%s: the run is too easy: %v", level, want)
		}
		if level == "full" && (!maps.Equal(counted, running) || counters["used KV blocks"] != int(want["step"].Count)) {
			t.Errorf("counters %v, sums of running %v, want %v", counters, counted, running)
		}
		if level == "decisions" && (counters["running"] == 0 || counters["waiting"] == 0 ||
			counters["used KV blocks"] != 0) {
			t.Errorf("counters %v", counters)
		}
	}
	must(Summarize, "--perfetto", in("part.json"), "--from", "2s", "--to", "3s", in("full.jsonl"))
	for _, e := range readTimeline(t, in("part.json")) {
		if (e.Cat == "step" || e.Cat == "request") && (e.TS < 2e6 || e.TS >= 3e6) {
			t.Fatalf("outside of the window: %+v", e)
		}
	}
	must(Sim, "--trace", "minimal", in("w.jsonl"), "-o", in("minimal.jsonl"))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--perfetto needs --trace decisions, or full", []string{"--perfetto", in("x.json"), in("minimal.jsonl")}},
		{"the name must end in .json or .json.gz", []string{"--perfetto", in("x.txt"), in("full.jsonl")}},
		{"--perfetto shows one run", []string{"--perfetto", in("x.json"), in("full.jsonl"), in("decisions.jsonl")}},
		{"this is a workload", []string{"--perfetto", in("x.json"), in("w.jsonl")}},
		{"--where has no effect", []string{"--perfetto", in("x.json"), "--where", "ttft_ms > 1", in("full.jsonl")}},
	} {
		complaints, code := call(Summarize, c.args...)
		if code == exitOK || !strings.Contains(complaints.String(), c.want) {
			t.Errorf("%q: exit code %d: %s", c.args, code, &complaints)
		}
	}
	if _, err := os.Stat(in("x.json")); err == nil {
		t.Error("a file of a failed call exists")
	}
}

// TestTimelineOfPools: a request has a queue and a slot at its prefill replica, and at the one that decodes.
func TestTimelineOfPools(t *testing.T) {
	in, _, must := callsIn(t)
	must(Gen, "--scenario", "documents", "--requests", "60", "-o", in("w.jsonl"))
	must(Sim, "--set", "deployments.main.architecture=disaggregated", "--set", "deployments.main.prefill.replicas=3",
		"--set", "deployments.main.replicas=1", in("w.jsonl"), "-o", in("run.jsonl"))
	must(Summarize, "--perfetto", in("t.json"), in("run.jsonl"))
	processes, got, want := map[int]string{}, map[string]int{}, map[string]int{}
	events := readTimeline(t, in("t.json"))
	importTimeline(t, events)
	for _, e := range events {
		if e.Phase == "M" && e.Name == "process_name" {
			processes[e.PID] = e.Args["name"].(string)
		}
	}
	for _, e := range events {
		if e.Cat == "queue" || e.Cat == "slot" {
			got[processes[e.PID]+" "+e.Cat]++
		}
	}
	for r := range records(t, in("run.jsonl")) {
		if r.Kind() != stream.KindOutcome {
			continue
		}
		var o stream.Outcome
		if err := r.Outcome(&o); err != nil {
			t.Fatal(err)
		}
		for _, cat := range []string{" queue", " slot"} {
			want[fmt.Sprintf("main/%d%s", o.Replica, cat)]++
			if !o.PrefillReplica.IsZero() {
				want[fmt.Sprintf("main.prefill/%d%s", o.PrefillReplica, cat)]++
			}
		}
	}
	if !maps.Equal(got, want) || len(want) < 8 {
		t.Errorf("the timeline has %v, the run %v", got, want)
	}
}
