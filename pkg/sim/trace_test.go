package sim

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"

	gocmp "github.com/google/go-cmp/cmp"
)

// traced runs a small contended workload on two replicas at trace level full, with the given
// policies and control plane.
func traced(t *testing.T, plane string) *bytes.Buffer {
	t.Helper()
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 40, max_num_seqs: 2},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
`+plane), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	workload := ""
	for i, class := range strings.Split(strings.Repeat("critical,batch,standard,", 10), ",")[:30] {
		workload += `{"kind":"request","id":"r` + string(rune('a'+i)) + `","arrival_us":` + strings.Repeat("1", 1+i/6) +
			`000,"input_tokens":170,"output_tokens":9,"slo_class":"` + class + "\"}\n"
	}
	var out bytes.Buffer
	if err := runLoaded(context.Background(), c, strings.NewReader(workload), &out,
		Options{Trace: "full", Plain: true}); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestSnapshotsInTheTrace: what a routing policy saw of a replica equals the last snapshot record
// before the decision, with the corresponding age; requests in flight are those sent before.
func TestSnapshotsInTheTrace(t *testing.T) {
	for _, how := range []string{"periodic 30ms", "on-demand 20ms"} {
		r := stream.NewReader(traced(t,
			"policies: {routing: {type: weighted, params: {queue-depth: 1}}}\n"+
				"control_plane: {snapshots: {queue_depth: "+how+"}}\n"))
		last := map[stream.Index]stream.Snapshot{}
		aged, deep, routed := 0, 0, 0
		for r.Next() {
			switch r.Kind() {
			case stream.KindSnapshot:
				s := stream.NewSnapshot(0, "", 0)
				must(r.Decode(&s))
				if s.Running != stream.NoIndex || s.QueueDepth == stream.NoIndex {
					t.Fatalf("%s: %s: only queue_depth is stale", how, r.Bytes())
				}
				last[s.Replica] = s
			case stream.KindDecision:
				var d stream.Decision
				must(r.Decision(&d))
				inflight := 0
				for _, c := range d.Considered {
					inflight += int(c.Inflight)
				}
				if routed++; inflight >= routed { // the request itself is not included
					t.Errorf("%s: decision %d finds %d requests in flight", how, routed, inflight)
				}
				for _, c := range d.Considered {
					if s := last[c.Replica]; c.QueueDepth != s.QueueDepth || strings.HasPrefix(how, "on") &&
						stream.Micros(c.AgeUS) != d.AtUS-s.AtUS {
						t.Errorf("%s: %s is shown a queue of %d, %d us old; read at %d: %d", how, d.ID, c.QueueDepth,
							c.AgeUS, s.AtUS, s.QueueDepth)
					}
					aged += min(1, int(c.AgeUS))
					deep += min(1, int(c.QueueDepth))
				}
			}
		}
		if must(r.Err()); aged == 0 || deep == 0 {
			t.Errorf("%s: %d candidates of some age, %d with a queue", how, aged, deep)
		}
	}
}

// TestPriorityInTheTrace: each admitted request has a decision with its priority and the tree leaf
// that gave it; a constant priority writes no decisions.
func TestPriorityInTheTrace(t *testing.T) {
	given := func(plane string) map[string]stream.Decision {
		found := map[string]stream.Decision{}
		r := stream.NewReader(traced(t, plane))
		for r.Next() {
			switch r.Kind() {
			case stream.KindDecision:
				var d stream.Decision
				if must(r.Decision(&d)); d.Stage == stream.StagePriority {
					found[d.Request] = d
				}
			case stream.KindOutcome:
				var o stream.Outcome
				must(r.Outcome(&o))
				if d, ok := found[o.ID]; ok && (d.Score != o.Priority || d.AtUS != o.AdmittedUS) {
					t.Errorf("%s: decided %v at %d, has %v, admitted at %d", o.ID, d.Score, d.AtUS, o.Priority,
						o.AdmittedUS)
				}
			}
		}
		must(r.Err())
		return found
	}
	found := given(`policies: {priority: {type: tree, root: {if: 'req.slo_class == "critical"', then: 9,
  else: {use: {type: expression, priority: "-req.input_tokens"}}}}}` + "\n")
	for id, d := range found {
		if want := map[float64]string{9: "priority.root.then",
			-170: "priority.root.else.use.priority"}[d.Score]; d.Rule != want {
			t.Errorf("%s: priority %v by %q, not %q", id, d.Score, d.Rule, want)
		}
	}
	if len(found) != 30 {
		t.Errorf("%d requests were given a priority, not 30", len(found))
	}
	if found := given("policies: {priority: {type: constant}}\n"); len(found) > 0 {
		t.Errorf("%d decisions of a policy that gives all the same", len(found))
	}
}

// TestFullTraceRanksAlike: the first candidates of a decision at trace level full are those at level decisions.
func TestFullTraceRanksAlike(t *testing.T) {
	workload, file := benchWorkload(300, 30*22), benchCluster(t, 30, "prefix")
	var best map[string][]stream.Index
	for _, level := range []string{"decisions", "full"} {
		var out bytes.Buffer
		must(Run(t.Context(), bytes.NewReader(workload), &out, Options{Cluster: file, Trace: level, Plain: true}))
		ranks, r := map[string][]stream.Index{}, stream.NewReader(&out)
		for r.Next() {
			if r.Kind() != stream.KindDecision {
				continue
			}
			var d stream.Decision
			must(r.Decision(&d))
			if level == "full" && len(d.Considered) != 30 {
				t.Fatalf("%s lists %d candidates", d.ID, len(d.Considered))
			}
			for _, c := range d.Considered[:maxConsidered] {
				ranks[d.ID] = append(ranks[d.ID], c.Replica)
			}
		}
		must(r.Err())
		if best == nil {
			best = ranks
		} else if diff := gocmp.Diff(best, ranks); diff != "" || len(best) == 0 {
			t.Errorf("decisions (-) and full (+) rank differently:\n%s", diff)
		}
	}
}

// At --trace full a candidate has a term of each scorer.
func TestCandidatesHaveTerms(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [10000, 10, 1000]}}
policies: {routing: {type: weighted, params: {queue-depth: 2, running-requests: 1}}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	must(runLoaded(context.Background(), c, strings.NewReader(
		`{"kind":"request","id":"r","arrival_us":0,"input_tokens":10,"output_tokens":3}`+"\n"), &out,
		Options{Trace: "full", Plain: true}))
	if n := strings.Count(out.String(), `"terms":[`); n != 2 {
		t.Errorf("%d candidates with terms, want 2:\n%s", n, out.String())
	}
}
