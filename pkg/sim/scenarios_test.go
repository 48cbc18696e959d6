package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/record"

	"github.com/cockroachdb/datadriven"
)

// TestScenarios plays the scenarios in testdata: what the control plane does with
// a few requests, in numbers that can be worked out by hand. The input of a run
// is the control plane's part of a cluster file, a line of ---, and the requests,
// one a line, by the names of the wire; prompt is a list id:tokens. The output is
// what became of each request and, as the run's arguments ask, decisions and
// parts of the metrics.
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
			if err := Run(context.Background(), bytes.NewReader(scenarioWorkload(t, d, arrivals)), &out, o); err != nil {
				return strings.ReplaceAll(err.Error(), file, "cluster.yaml") + "\n"
			}
			return tell(t, d, out.Bytes())
		})
	})
	if played < 10 {
		t.Errorf("only %d scenarios", played)
	}
}

// scenarioCluster is a small cluster: a step takes 10 ms, blocks have 16 tokens.
func scenarioCluster(t *testing.T, d *datadriven.TestData) string {
	replicas, blocks, seqs, step := 2, 100, 8, 10000
	d.MaybeScanArgs(t, "replicas", &replicas)
	d.MaybeScanArgs(t, "blocks", &blocks)
	d.MaybeScanArgs(t, "seqs", &seqs)
	d.MaybeScanArgs(t, "step", &step)
	return fmt.Sprintf("version: 1\ndeployments:\n  - {id: main, model: m, replicas: %d, engine: {num_gpu_blocks_override: %d, max_num_seqs: %d, block_size: 16}, latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [%d, 0, 0]}}\n",
		replicas, blocks, seqs, step)
}

func scenarioWorkload(t *testing.T, d *datadriven.TestData, arrivals string) []byte {
	var out bytes.Buffer
	w := record.NewWriter(&out, true)
	must(w.Header(&record.Header{Stream: record.StreamWorkload, Tool: "test", SLOClasses: []record.SLOClass{
		{Name: "realtime", Tier: "critical", Priority: 100}, {Name: "standard", Tier: "standard", Priority: 50}, {Name: "batch", Tier: "sheddable", Priority: 10},
		{Name: "prompt", Tier: "standard", Priority: 50, Targets: record.Targets{TTFTMS: 50}}}}))
	for line := range strings.Lines(arrivals) {
		q := record.Request{DeadlineUS: record.Never, InputTokens: 16, OutputTokens: 1}
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			n, err := strconv.ParseInt(value, 10, 64)
			switch key {
			case "id":
				q.ID, err = value, nil
			case "at":
				q.ArrivalUS = record.Micros(n)
			case "in":
				q.InputTokens = n
			case "out":
				q.OutputTokens = n
			case "predicted":
				q.PredictedOutputTokens = n
			case "deadline":
				q.DeadlineUS = record.Micros(n)
			case "class":
				q.SLOClass, err = value, nil
			case "tenant":
				q.Tenant, err = value, nil
			case "session":
				q.Session, err = value, nil
			case "prompt":
				q.Prompt, err = segmentsOf(value)
			default:
				err = fmt.Errorf("unknown key")
			}
			if err != nil {
				d.Fatalf(t, "%s: %v", word, err)
			}
		}
		must(w.Request(&q))
	}
	must(w.End(&record.End{}))
	must(w.Close())
	return out.Bytes()
}

func segmentsOf(list string) (all []record.Segment, err error) {
	for _, part := range strings.Split(list, ",") {
		id, tokens, _ := strings.Cut(part, ":")
		n, err := strconv.ParseInt(tokens, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, record.Segment{ID: id, Tokens: n})
	}
	return all, nil
}

// tell writes down a run as its directive asks.
func tell(t *testing.T, d *datadriven.TestData, run []byte) string {
	var outcomes, decisions, rest strings.Builder
	r := record.NewReader(bytes.NewReader(run))
	for r.Next() {
		switch r.Kind() {
		case record.KindOutcome:
			var o record.Outcome
			must(r.Outcome(&o))
			outcomes.WriteString(tellOutcome(&o))
		case record.KindDecision:
			var x record.Decision
			must(r.Decode(&x))
			if d.HasArg(x.Stage) {
				fmt.Fprintf(&decisions, "%d: %s %s", x.AtUS, x.Stage, x.Request)
				if x.Stage == record.StageRouting {
					fmt.Fprintf(&decisions, " to %d, score %g of %d\n", x.Replica, x.Score, x.Candidates)
				} else {
					fmt.Fprintf(&decisions, " %s\n", x.Verdict)
				}
			}
		case record.KindMetrics:
			var m metrics.Record
			must(r.Decode(&m))
			if d.HasArg("control") {
				fmt.Fprintf(&rest, "control %s\n", inJSON(m.Control))
			}
			if d.HasArg("shadow") {
				fmt.Fprintf(&rest, "shadow %s\n", inJSON(m.Shadow))
			}
		}
	}
	must(r.Err())
	return decisions.String() + outcomes.String() + rest.String()
}

func inJSON(v any) []byte {
	text, err := json.Marshal(v)
	must(err)
	return text
}

func tellOutcome(o *record.Outcome) string {
	line := o.ID + " " + o.State
	if o.Reason != "" {
		line += " (" + o.Reason + ")"
	}
	if !o.Replica.IsZero() {
		line += fmt.Sprintf(" on %d", o.Replica)
	}
	for _, at := range []struct {
		name string
		us   record.Micros
	}{{"admitted", o.AdmittedUS}, {"routed", o.RoutedUS}, {"scheduled", o.ScheduledUS}, {"first", o.FirstTokenUS}, {"completed", o.CompletedUS}} {
		if !at.us.IsZero() {
			line += fmt.Sprintf(" %s=%d", at.name, at.us)
		}
	}
	for _, n := range []struct {
		name string
		n    int64
	}{{"expected", o.ExpectedCachedTokens}, {"cached", o.CachedTokens}, {"preempted", o.Preemptions}, {"delays", o.Delays}} {
		if n.n > 0 {
			line += fmt.Sprintf(" %s=%d", n.name, n.n)
		}
	}
	if o.Priority != 0 {
		line += fmt.Sprintf(" priority=%g", o.Priority)
	}
	return line + "\n"
}
