package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/stream"
)

// perturbedWorkload has 40 requests, 8 ms apart, and one session of two calls; number longer has one output
// token more, where the second call of the session is number 41; none is -1.
func perturbedWorkload(longer int) string {
	var b strings.Builder
	output := func(i, n int) int {
		if i == longer {
			return n + 1
		}
		return n
	}
	fmt.Fprintf(&b, `{"kind":"session","id":"s","arrival_us":0,"steps":[`+
		`{"id":"a","input_tokens":20,"output_tokens":4},`+
		`{"id":"b","after":[0],"delay_us":200000,"input_tokens":30,"output_tokens":%d}]}`+"\n", output(41, 9))
	for i := range 40 {
		fmt.Fprintf(&b, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":%d,"output_tokens":%d}`+"\n", i,
			8000*i, 10+37*i%90, output(i, 5+11*i%17))
	}
	return b.String()
}

// e2eOf runs the workload and returns the E2E of each request in ms, and the first exact regret if there is one.
func e2eOf(t *testing.T, c *cluster.Config, workload, counterfactual string) (map[string]float64, *stream.Regret) {
	t.Helper()
	o := Options{Trace: "decisions", Plain: true}
	if counterfactual != "" {
		must(o.Counterfactual.UnmarshalText([]byte(counterfactual)))
	}
	var out bytes.Buffer
	must(runLoaded(context.Background(), c, strings.NewReader(workload), &out, o))
	all, run := map[string]float64{}, out.Bytes()
	r := stream.NewReader(bytes.NewReader(run))
	for r.Next() {
		var q stream.Outcome
		if r.Kind() == stream.KindOutcome {
			must(r.Outcome(&q))
			all[strings.Clone(q.ID)] = float64(q.CompletedUS-q.ArrivalUS) / 1000
		}
	}
	if r.Err() != nil && r.Err() != io.EOF {
		t.Fatal(r.Err())
	}
	if counterfactual == "" {
		return all, nil
	}
	return all, exactRegret(t, bytes.NewReader(run))
}

// A control is a whole run of the workload in which one later request has one output token more. The
// sensitivity is the largest change of several, so it is one of those of all such runs.
func TestControlsAreRunsWithOneTokenMore(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 2, engine: {num_gpu_blocks_override: 60, max_num_seqs: 4},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [3000, 50, 300]}}
policies: {routing: {type: least-loaded}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	actual, regret := e2eOf(t, c, perturbedWorkload(-1), "dec-000004")
	var possible []float64
	for i := range 42 {
		sum := 0.0
		changed, _ := e2eOf(t, c, perturbedWorkload(i), "")
		for id := range actual {
			sum += changed[id] - actual[id]
		}
		if i > 4 && i < 42 { // those that arrive after the decision about r3, and the second call
			possible = append(possible, math.Abs(sum))
		}
	}
	s := regret.Sensitivity
	near := func(x float64) bool { return math.Abs(x-s.E2EMS) < 1e-6 }
	if s.Controls != controlsOf || s.E2EMS == 0 || !slices.ContainsFunc(possible, near) {
		t.Errorf("sensitivity %+v, runs with one token more %v", s, possible)
	}
	for _, a := range regret.Alternatives {
		if a.Insensitive != (math.Abs(a.All.E2EMS) <= s.E2EMS && math.Abs(a.All.TTFTMS) <= s.TTFTMS) {
			t.Errorf("%+v of sensitivity %+v", a, s)
		}
	}
}

// A change is within the sensitivity if nothing in it is larger.
func TestWithinSensitivity(t *testing.T) {
	s := &stream.Sensitivity{SLO: 2, Completed: 1, TTFTMS: 10, E2EMS: 100}
	for _, c := range []struct {
		d      stream.Difference
		within bool
	}{
		{stream.Difference{SLOGained: 9, SLOLost: 7, Completed: -1, TTFTMS: -10, E2EMS: 100}, true},
		{stream.Difference{SLOGained: 9, SLOLost: 6}, false}, {stream.Difference{SLOLost: 3}, false},
		{stream.Difference{Completed: -2}, false}, {stream.Difference{TTFTMS: -10.5}, false},
		{stream.Difference{E2EMS: 101}, false},
	} {
		if within(&c.d, s) != c.within {
			t.Errorf("%+v: within is %v", c.d, !c.within)
		}
	}
}

// The reliability covers re-simulated alternatives of decisions drawn at random, not only the worst ones. Their forks
// end when the request itself is final: the reliability equals that of the same decisions given by name, whose forks
// run to the end.
func TestReliabilityIsMeasured(t *testing.T) {
	c, err := cluster.Parse("c", []byte(`version: 1
deployments:
  - {id: main, model: m, replicas: 3, engine: {num_gpu_blocks_override: 60, max_num_seqs: 4},
     latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [3000, 50, 300]}}
policies: {routing: {type: random}}
`), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var workload strings.Builder // of many times the events after which a fork sees that it may end
	for i := range 3000 {
		fmt.Fprintf(&workload, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":%d,`+
			`"output_tokens":%d}`+"\n", i, 9000*i, 20+i%50, 5+i%9)
	}
	run := func(counterfactual string) string {
		o := Options{Trace: "decisions", Plain: true}
		must(o.Counterfactual.UnmarshalText([]byte(counterfactual)))
		var out bytes.Buffer
		must(runLoaded(context.Background(), c, strings.NewReader(workload.String()), &out, o))
		return out.String()
	}
	reliability := regexp.MustCompile(`"reliability":\{[^}]*\}`)
	drawn := run("exact:1")
	got := reliability.FindString(drawn)
	if !strings.HasPrefix(got, fmt.Sprintf(`"reliability":{"alternatives":%d,"spearman_ttft":`,
		reliabilityDecisions*reliabilityAlternatives)) || strings.Count(drawn, `"method":"exact"`) != 1 {
		t.Errorf("no reliability in %s", drawn[strings.LastIndex(drawn[:len(drawn)-500], "\n"):])
	}
	var ids, names []string
	for _, d := range regexp.MustCompile(`"kind":"decision","id":"([^"]*)","stage":"routing"`).FindAllStringSubmatch(
		drawn, -1) {
		ids = append(ids, d[1])
	}
	for _, i := range dist.NewStream(0, "reliability").Perm(len(ids))[:reliabilityDecisions] {
		names = append(names, ids[i])
	}
	if want := reliability.FindString(run(strings.Join(names, ","))); got != want {
		t.Errorf("%s, with forks that run to the end %s", got, want)
	}
}
