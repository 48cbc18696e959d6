package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios runs the scenarios in testdata: the control plane on a few requests, with numbers
// that can be checked by hand. The input is the control-plane part of a cluster file, a line of ---,
// and the requests, one per line, with field names as in streams; prompt is a list id:tokens. A line
// that starts with session begins a session, and the following lines that start with step are its
// steps. The output is the outcome of each request and session and, if the arguments of the run ask
// for them, decisions and parts of the metrics.
func TestScenarios(t *testing.T) {
	played := 0
	datadriven.Walk(t, "../../testdata/scenarios", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			played++
			control, arrivals, _ := strings.Cut(d.Input, "\n---\n")
			file := filepath.Join(t.TempDir(), "cluster.yaml")
			must(os.WriteFile(file, []byte(scenarioCluster(t, d)+control), 0o666))
			var out bytes.Buffer
			o := Options{Cluster: file, Trace: "full", Plain: true, Check: true}
			if d.HasArg("counterfactual") {
				var what string
				d.ScanArgs(t, "counterfactual", &what)
				must(o.Counterfactual.UnmarshalText([]byte(what)))
			}
			if err := Run(context.Background(), bytes.NewReader(scenarioWorkload(t, d, arrivals)), &out,
				o); err != nil {
				return strings.ReplaceAll(err.Error(), file, "cluster.yaml") + "\n"
			}
			return formatRun(t, d, out.Bytes())
		})
	})
	if played < 10 {
		t.Errorf("only %d scenarios", played)
	}
}

// scenarioCluster is a small cluster: a step takes 10 ms, plus prefill µs per prompt token; a request
// is in the replica's queue alpha µs after routing; blocks have 16 tokens. short replicas of the same
// model, which come first, hold 64 tokens at most.
func scenarioCluster(t *testing.T, d *datadriven.TestData) string {
	replicas, blocks, seqs, step, prefill, alpha := 2, 100, 8, 10000, 0, 0
	d.MaybeScanArgs(t, "prefill", &prefill)
	d.MaybeScanArgs(t, "replicas", &replicas)
	d.MaybeScanArgs(t, "blocks", &blocks)
	d.MaybeScanArgs(t, "seqs", &seqs)
	d.MaybeScanArgs(t, "step", &step)
	d.MaybeScanArgs(t, "alpha", &alpha)
	short := 0
	d.MaybeScanArgs(t, "short", &short)
	text := "version: 1\ndeployments:\n"
	for _, of := range []struct {
		id                  string
		replicas, maxTokens int
	}{{"short", short, 64}, {"main", replicas, 0}} {
		if of.replicas > 0 {
			text += fmt.Sprintf("  - {id: %s, model: m, replicas: %d, "+
				"engine: {num_gpu_blocks_override: %d, max_num_seqs: %d, block_size: 16, max_model_len: %d}, "+
				"latency: {model: linear, alpha_us: [%d, 0, 0], beta_us: [%d, %d, 0]}}\n",
				of.id, of.replicas, blocks+1, seqs, // one is the null block
				of.maxTokens, alpha, step, prefill)
		}
	}
	return text
}

func scenarioWorkload(t *testing.T, d *datadriven.TestData, arrivals string) []byte {
	var out bytes.Buffer
	w := stream.NewWriter(&out, true)
	must(w.Header(&stream.Header{Stream: stream.StreamWorkload, Tool: "test", SLOClasses: []stream.SLOClass{
		{Name: "realtime", Tier: "critical", Priority: 100}, {Name: "standard", Tier: "standard", Priority: 50},
		{Name: "batch", Tier: "sheddable", Priority: 10},
		{Name: "prompt", Tier: "standard", Priority: 50, Targets: stream.Targets{TTFTMS: 50}}}}))
	var session *stream.Session
	flush := func() {
		if session != nil {
			must(w.Session(session))
		}
		session = nil
	}
	for line := range strings.Lines(arrivals) {
		fields := strings.Fields(line)
		switch {
		case fields[0] == "session":
			flush()
			session = &stream.Session{UntilUS: stream.Never}
			words(t, d, fields[1:],
				func(key, value string, n int64) error { return setSession(session, key, value, n) })
		case fields[0] == "step":
			session.Steps = append(session.Steps, stream.SessionStep{Extends: stream.NoIndex})
			words(t, d, fields[1:], func(key, value string, n int64) error { return setStep(session, key, value, n) })
		default:
			flush()
			q := stream.Request{DeadlineUS: stream.Never, InputTokens: 16, OutputTokens: 1}
			words(t, d, fields, func(key, value string, n int64) error { return setRequest(&q, key, value, n) })
			must(w.Request(&q))
		}
	}
	flush()
	must(w.End(&stream.End{}))
	must(w.Close())
	return out.Bytes()
}

// words parses words key=value; n is the value if it is a number.
func words(t *testing.T, d *datadriven.TestData, all []string, set func(key, value string, n int64) error) {
	for _, word := range all {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		if err := set(key, value, n); err != nil {
			d.Fatalf(t, "%s: %v", word, err)
		}
	}
}

func setRequest(q *stream.Request, key, value string, n int64) (err error) {
	switch key {
	case "id":
		q.ID = value
	case "at":
		q.ArrivalUS = stream.Micros(n)
	case "in":
		q.InputTokens = n
	case "out":
		q.OutputTokens = n
	case "predicted":
		q.PredictedOutputTokens = n
	case "deadline":
		q.DeadlineUS = stream.Micros(n)
	case "class":
		q.SLOClass = value
	case "priority":
		q.Priority = n
	case "retry":
		q.Retry = &stream.Retry{On: []string{stream.StateTimedOut}, BackoffUS: []int64{n}}
	case "tenant":
		q.Tenant = value
	case "session":
		q.Session = value
	case "prompt":
		q.Prompt, err = segmentsOf(value)
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

func setSession(s *stream.Session, key, value string, n int64) error {
	switch key {
	case "id":
		s.ID = value
	case "at":
		s.ArrivalUS = stream.Micros(n)
	case "until":
		s.UntilUS = stream.Micros(n)
	case "class":
		s.SLOClass = value
	case "priority":
		s.Priority = n
	case "persistent":
		s.Persistent = true
	default:
		return fmt.Errorf("unknown key")
	}
	return nil
}

// setStep sets a key of the session's last step; earlier steps are referred to by id.
func setStep(s *stream.Session, key, value string, n int64) (err error) {
	step := &s.Steps[len(s.Steps)-1]
	place := func(id string) stream.Index {
		at := slices.IndexFunc(s.Steps, func(t stream.SessionStep) bool { return t.ID == id })
		if at < 0 {
			err = fmt.Errorf("no step %s", id)
		}
		return stream.Index(at)
	}
	switch key {
	case "id":
		step.ID = value
	case "name":
		step.Step = value
	case "iteration":
		step.Iteration = n
	case "after":
		for _, id := range strings.Split(value, ",") {
			step.After = append(step.After, place(id))
		}
	case "delay":
		step.DelayUS = n
	case "tool":
		step.Tool, step.LatencyUS = "t", n
	case "in":
		step.InputTokens = n
		step.OutputTokens = max(1, step.OutputTokens)
	case "out":
		step.OutputTokens = n
	case "extends":
		step.Extends = place(value)
	case "keep":
		step.KeepTokens = n
	case "timeout":
		step.TimeoutUS = n
	case "prompt":
		step.Prompt, err = segmentsOf(value)
	default:
		err = fmt.Errorf("unknown key")
	}
	return err
}

func segmentsOf(list string) (all []stream.Segment, err error) {
	for _, part := range strings.Split(list, ",") {
		id, tokens, _ := strings.Cut(part, ":")
		n, err := strconv.ParseInt(tokens, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, stream.Segment{ID: id, Tokens: n})
	}
	return all, nil
}

// formatRun formats a run as its directive asks.
func formatRun(t *testing.T, d *datadriven.TestData, run []byte) string {
	var outcomes, decisions, rest strings.Builder
	r := stream.NewReader(bytes.NewReader(run))
	for r.Next() {
		switch r.Kind() {
		case stream.KindOutcome:
			var o stream.Outcome
			must(r.Outcome(&o))
			outcomes.WriteString(formatOutcome(&o))
		case stream.KindRegret:
			var g stream.Regret
			must(r.Decode(&g))
			rest.WriteString(formatRegret(&g))
		case stream.KindSessionOutcome:
			var o stream.SessionOutcome
			must(r.SessionOutcome(&o))
			outcomes.WriteString(formatSession(&o))
		case stream.KindDecision:
			var x stream.Decision
			must(r.Decode(&x))
			if d.HasArg(x.Stage) {
				fmt.Fprintf(&decisions, "%d: %s %s", x.AtUS, x.Stage, x.Request)
				if x.Stage == stream.StageRouting {
					fmt.Fprintf(&decisions, " to %s%d, score %g of %d\n",
						otherDeployment(x.Deployment), x.Replica, x.Score, x.Candidates)
				} else if d.HasArg("candidates") {
					fmt.Fprintf(&decisions, " %s, of %d\n", x.Verdict, x.Candidates)
				} else {
					fmt.Fprintf(&decisions, " %s\n", x.Verdict)
				}
			}
		case stream.KindMetrics:
			var m metrics.Record
			must(r.Decode(&m))
			if d.HasArg("control") {
				fmt.Fprintf(&rest, "control %s\n", inJSON(m.Control))
			}
			if d.HasArg("sessions") {
				fmt.Fprintf(&rest, "sessions %s\n", inJSON(m.Sessions))
			}
			if d.HasArg("shadow") {
				fmt.Fprintf(&rest, "shadow %s\n", inJSON(m.Shadow))
			}
		}
	}
	must(r.Err())
	return decisions.String() + outcomes.String() + rest.String()
}

// otherDeployment names a deployment other than main.
func otherDeployment(deployment string) string {
	if deployment == "main" {
		return ""
	}
	return deployment + "/"
}

func inJSON(v any) []byte {
	text, err := json.Marshal(v)
	must(err)
	return text
}

// formatRegret formats an exact regret, or an estimated one of a choice that was not the best.
func formatRegret(g *stream.Regret) string {
	text := fmt.Sprintf("%s %s %s", g.Method, g.Decision, g.Request)
	if g.Method == stream.MethodEstimated {
		if *g.HindsightMS == 0 {
			return ""
		}
		return fmt.Sprintf("%s hindsight=%gms avoidable=%gms\n", text, *g.HindsightMS, *g.AvoidableMS)
	}
	text += "\n"
	for _, a := range g.Alternatives {
		what := fmt.Sprintf("to %d", a.Replica)
		if a.Verdict != "" {
			what = a.Verdict
		}
		text += fmt.Sprintf("  %s: own %s all %s\n", what, inJSON(a.Own), inJSON(a.All))
	}
	return text
}

func formatSession(o *stream.SessionOutcome) string {
	line := "session " + o.ID + " " + o.State
	if o.Reason != "" {
		line += fmt.Sprintf(" at %s (%s)", o.Step, o.Reason)
	}
	line += fmt.Sprintf(" arrived=%d", o.ArrivalUS)
	if !o.CompletedUS.IsZero() {
		line += fmt.Sprintf(" completed=%d", o.CompletedUS)
	}
	line += fmt.Sprintf(" calls=%d/%d/%d tools=%d in %d critical=%d", o.Completed, o.Offered, o.Calls, o.Tools,
		o.ToolUS, o.CriticalUS)
	if o.Parallel > 0 {
		line += fmt.Sprintf(" parallel=%d/%d", o.ParallelCompleted, o.Parallel)
	}
	if o.Iterations > 0 {
		line += fmt.Sprintf(" iterations=%d", o.Iterations)
	}
	if o.SLOMet != nil {
		line += fmt.Sprintf(" met=%v", *o.SLOMet)
	}
	return line + "\n"
}

func formatOutcome(o *stream.Outcome) string {
	line := o.ID + " " + o.State
	if o.Step != "" {
		line += fmt.Sprintf(" arrived=%d", o.ArrivalUS)
	}
	if o.Reason != "" {
		line += " (" + o.Reason + ")"
	}
	if !o.Replica.IsZero() {
		line += fmt.Sprintf(" on %s%d", otherDeployment(o.Deployment), o.Replica)
	}
	for _, at := range []struct {
		name string
		us   stream.Micros
	}{{"admitted", o.AdmittedUS}, {"routed", o.RoutedUS}, {"scheduled", o.ScheduledUS}, {"first", o.FirstTokenUS},
		{"completed", o.CompletedUS}} {
		if !at.us.IsZero() {
			line += fmt.Sprintf(" %s=%d", at.name, at.us)
		}
	}
	for _, n := range []struct {
		name string
		n    int64
	}{{"expected", o.ExpectedCachedTokens}, {"cached", o.CachedTokens}, {"preempted", o.Preemptions},
		{"delays", o.Delays}} {
		if n.n > 0 {
			line += fmt.Sprintf(" %s=%d", n.name, n.n)
		}
	}
	if o.Priority != 0 {
		line += fmt.Sprintf(" priority=%g", o.Priority)
	}
	return line + "\n"
}
