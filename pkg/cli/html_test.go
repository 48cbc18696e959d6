package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// htmlFigures is what a test reads of the data of the figures.
type htmlFigures struct {
	Permilles []int64 `json:"permilles"`
	Runs      []struct {
		Name          string `json:"name"`
		Measured      bool   `json:"measured"`
		Distributions []struct {
			Latency, Class string
			Count          int64
			MS             []float64
		} `json:"distributions"`
		Heat []struct {
			Latency string
			WidthS  float64 `json:"width_s"`
			Edges   []float64
			Cells   [][3]int
		} `json:"heat"`
		Time struct {
			WidthS                     float64 `json:"width_s"`
			Arrived, Completed, Missed []int
			Waiting, Running           []float64
		} `json:"time"`
		Replicas struct {
			WidthS           float64 `json:"width_s"`
			Names            []string
			Waiting, Running [][]float64
			KV               [][]*float64
		} `json:"replicas"`
		Worst []struct {
			ID      string
			SpentMS float64 `json:"spent_ms"`
			Parts   []struct{ From, To float64 }
			Choice  *struct {
				Replica    string
				Candidates []struct {
					Replica string
					Chosen  bool
					E2EMS   *float64 `json:"e2e_ms"`
				}
			}
		} `json:"worst"`
		Regrets []struct {
			Choice struct {
				HindsightMS float64 `json:"hindsight_ms"`
			}
		} `json:"regrets"`
	} `json:"runs"`
	Intervals []map[string][2]float64 `json:"intervals"`
	Changes   []struct {
		Run, Path       string
		Percent, Lo, Hi float64
	} `json:"changes"`
}

var (
	htmlData   = regexp.MustCompile(`(?s)<script id="data" type="application/json">(.*?)</script>`)
	htmlNumber = regexp.MustCompile(`data-run="(\d+)" data-path="([^"]+)" data-value="([^"]*)"`)
	htmlNull   = regexp.MustCompile(`"(classes|distributions|heat|percentiles|names|worst|parts|candidates)":null`)
	// htmlRemote is anything that a browser would fetch.
	htmlRemote = regexp.MustCompile(`(?i)<(script|img|link|iframe|object)[^>]+(src|href)="(?:https?:|//|[a-z]+/)`)
)

// readHTML reads a report: its figures, and the numbers of its tables by run and path.
func readHTML(t *testing.T, name string) (f htmlFigures, numbers []map[string]float64, text []byte) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	found := htmlData.FindSubmatch(text)
	if found == nil {
		t.Fatal("the report has no data")
	}
	if err := json.Unmarshal(found[1], &f); err != nil {
		t.Fatal(err)
	}
	if remote := htmlRemote.Find(text); remote != nil {
		t.Errorf("the report is not self-contained: %s", remote)
	}
	for range f.Runs {
		numbers = append(numbers, map[string]float64{})
	}
	for _, m := range htmlNumber.FindAllSubmatch(text, -1) {
		run, _ := strconv.Atoi(string(m[1]))
		if x, err := strconv.ParseFloat(string(m[3]), 64); err == nil {
			numbers[run][string(m[2])] = x
		}
	}
	return f, numbers, text
}

// htmlRecords are the sums of a run that its figures must show.
type htmlRecords struct {
	metrics                   metrics.Record
	outcomes, missed          int
	waitingS, runningS, worst float64
	regret                    float64
}

func readHTMLRecords(t *testing.T, name string) (want htmlRecords) {
	t.Helper()
	for r := range records(t, name) {
		switch r.Kind() {
		case stream.KindMetrics:
			if err := r.Decode(&want.metrics); err != nil {
				t.Fatal(err)
			}
		case stream.KindRegret:
			var g stream.Regret
			if err := r.Regret(&g); err != nil {
				t.Fatal(err)
			}
			want.regret = max(want.regret, *g.HindsightMS)
		case stream.KindOutcome:
			var o stream.Outcome
			if err := r.Outcome(&o); err != nil {
				t.Fatal(err)
			}
			want.outcomes++
			if o.SLOMet != nil && !*o.SLOMet {
				want.missed++
			}
			end := max(o.CompletedUS, o.EndedUS)
			want.worst = max(want.worst, float64(end-o.ArrivalUS)/1000)
			if !o.EnqueuedUS.IsZero() {
				want.waitingS += float64(o.ScheduledUS-o.EnqueuedUS) / 1e6
				want.runningS += float64(end-o.ScheduledUS) / 1e6
			}
		}
	}
	return want
}

// checkHTMLRun compares the i-th run of a report with its records.
func checkHTMLRun(t *testing.T, f *htmlFigures, i int, want htmlRecords) {
	t.Helper()
	run := &f.Runs[i]
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s: %s is %v, not %v", run.Name, what, got, want)
		}
	}
	values := metrics.ByPath(&want.metrics.Raw)
	for _, d := range run.Distributions {
		if d.Class != "" {
			continue
		}
		near(d.Latency+".count", float64(d.Count), values[d.Latency+".count"], 0)
		for p, path := range map[int64]string{500: "p50", 900: "p90", 990: "p99", 1000: "max"} {
			near(d.Latency+"."+path, d.MS[slices.Index(f.Permilles, p)], values[d.Latency+"."+path], 0.00051)
		}
	}
	for _, h := range run.Heat {
		sum := 0
		for _, c := range h.Cells {
			sum += c[2]
		}
		near("sum of the heat map of "+h.Latency, float64(sum), values[h.Latency+".count"], 0)
	}
	sum := func(list []int) (s float64) {
		for _, n := range list {
			s += float64(n)
		}
		return s
	}
	near("arrivals", sum(run.Time.Arrived), float64(want.outcomes), 0)
	near("completions", sum(run.Time.Completed), values["requests.completed"], 0)
	near("misses", sum(run.Time.Missed), float64(want.missed), 0)
	area := func(list []float64, width float64) (s float64) {
		for _, x := range list {
			s += x * width
		}
		return s
	}
	// The last bin is cut at the end of the run.
	near("waiting time", area(run.Time.Waiting, run.Time.WidthS), want.waitingS, 0.01*want.waitingS+1)
	near("running time", area(run.Time.Running, run.Time.WidthS), want.runningS, 0.01*want.runningS+1)
	waiting := 0.0
	for _, row := range run.Replicas.Waiting {
		waiting += area(row, run.Replicas.WidthS)
	}
	near("waiting time of replicas", waiting, want.waitingS, 0.01*want.waitingS+1)
	near("the longest request", run.Worst[0].SpentMS, want.worst, 0)
	near("the largest regret", run.Regrets[0].Choice.HindsightMS, want.regret, 0)
	for _, q := range run.Worst {
		at := 0.0
		for _, p := range q.Parts {
			near("the begin of a part of "+q.ID, p.From, at, 0)
			at = p.To
		}
		near("the end of the last part of "+q.ID, at, q.SpentMS, 0)
		chosen := 0
		for _, k := range q.Choice.Candidates {
			if k.Chosen && k.Replica == q.Choice.Replica {
				chosen++
			}
		}
		near("chosen candidates of "+q.ID, float64(chosen), 1, 0)
	}
}

// The figures and tables of a report show the records of its runs, and equal runs give equal bytes.
func TestHTMLEqualsRecords(t *testing.T) {
	in, call, must := callsIn(t)
	must(Gen, "--scenario", "mixed-slo", "--requests", "600", "-o", in("w.jsonl"))
	for _, c := range [][2]string{{"weighted", "full"}, {"random", "decisions"}} {
		must(Sim, "--trace", c[1], "--counterfactual", "2", "--set", "routing={type: "+c[0]+"}",
			"--set", "deployments.main.replicas=2", in("w.jsonl"), "-o", in(c[0]+".jsonl"))
	}
	must(Summarize, "--html", in("r.html"), in("weighted.jsonl"), in("random.jsonl"))
	must(Summarize, "--html", in("again.html"), in("weighted.jsonl"), in("random.jsonl"))
	f, numbers, text := readHTML(t, in("r.html"))
	if _, _, again := readHTML(t, in("again.html")); !bytes.Equal(text, again) {
		t.Error("equal runs give different bytes")
	}
	if len(text) > 2<<20 {
		t.Errorf("the report has %d bytes", len(text))
	}
	for i, name := range []string{"weighted", "random"} {
		want := readHTMLRecords(t, in(name+".jsonl"))
		if want.missed == 0 || want.waitingS == 0 || want.regret == 0 || len(f.Runs) != 2 || f.Runs[i].Name != name {
			t.Fatalf("%s: the run is too easy: %+v", name, want)
		}
		checkHTMLRun(t, &f, i, want)
		values := metrics.ByPath(&want.metrics.Raw)
		for path, x := range numbers[i] {
			if x != values[path] {
				t.Errorf("%s: %s is %v in the table, not %v", name, path, x, values[path])
			}
		}
		for _, path := range []string{"ttft.p50", "e2e.p99", "goodput.ratio"} {
			ci, ok := f.Intervals[i][path]
			if !ok || !(ci[0] < ci[1] && ci[0] <= numbers[i][path] && numbers[i][path] <= ci[1]) {
				t.Errorf("%s: the confidence interval of %s is %v", name, path, ci)
			}
		}
		if len(numbers[i]) < 20 {
			t.Errorf("%s: the table has %d numbers", name, len(numbers[i]))
		}
	}
	if len(f.Runs[0].Replicas.KV) != 2 || len(f.Changes) < 10 {
		t.Errorf("%d rows of KV blocks, %d differences", len(f.Runs[0].Replicas.KV), len(f.Changes))
	}
	for _, c := range f.Changes {
		a, b := numbers[0][c.Path], numbers[1][c.Path]
		if math.Abs(c.Percent-100*(b-a)/a) > 0.00051 || !(c.Lo <= c.Hi) {
			t.Errorf("difference %+v of %v and %v", c, a, b)
		}
	}
	must(Summarize, "--html", in("part.html"), "--from", "2s", "--to", "6s", in("random.jsonl"))
	if part, _, _ := readHTML(t, in("part.html")); part.Runs[0].Distributions[0].Count >= 600 {
		t.Error("--from and --to do not select")
	}
	must(Sim, "--trace", "minimal", in("w.jsonl"), "-o", in("minimal.jsonl"))
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--html needs --trace decisions, or full", []string{"--html", in("x.html"), in("minimal.jsonl")}},
		{"the name must end in .html", []string{"--html", in("x.htm"), in("random.jsonl")}},
		{"this is a workload", []string{"--html", in("x.html"), in("w.jsonl")}},
		{"at most 8 runs; there are 9", append([]string{"--html", in("x.html")}, strings.Fields(
			"a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1")...)},
	} {
		complaints, code := call(Summarize, c.args...)
		if code == exitOK || !strings.Contains(complaints.String(), c.want) {
			t.Errorf("%q: exit code %d: %s", c.args, code, &complaints)
		}
	}
	if _, err := os.Stat(in("x.html")); err == nil {
		t.Error("a file of a failed call exists")
	}
}

// Lists that a run can be without are empty in the data of a report, because scripts fail on null: a recording without
// classes, and a run that rejects all requests.
func TestHTMLWithoutLists(t *testing.T) {
	in, _, must := callsIn(t)
	const recording = "arrival_ms,input_tokens,output_tokens,ttft_ms,e2e_ms\n0,10,5,20,90\n30,10,5,25,95\n"
	if err := os.WriteFile(in("server.csv"), []byte(recording), 0o666); err != nil {
		t.Fatal(err)
	}
	must(Gen, "--requests", "50", "-o", in("w.jsonl"))
	must(Sim, "--set", "admission={type: reject-all}", in("w.jsonl"), "-o", in("rejected.jsonl"))
	for name, want := range map[string][]string{
		"server.csv":     {`"classes":[]`, `"waiting":null`},
		"rejected.jsonl": {`"distributions":[]`, `"heat":[]`, `"percentiles":[]`, `"names":[]`},
	} {
		must(Summarize, "--html", in("r.html"), in(name))
		_, _, text := readHTML(t, in("r.html"))
		data := htmlData.FindSubmatch(text)[1]
		for _, w := range want {
			if !bytes.Contains(data, []byte(w)) {
				t.Errorf("%s: no %s in\n%s", name, w, data)
			}
		}
		if nulls := htmlNull.Find(data); nulls != nil {
			t.Errorf("%s: %s", name, nulls)
		}
	}
}

// TestHTMLSizeIsBounded: the size of a report does not depend on the number of requests, and a report of eight runs
// stays below 2 MB.
func TestHTMLSizeIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 16,000 requests with all steps")
	}
	in, _, must := callsIn(t)
	size := map[string]int64{}
	report := func(name string, runs ...string) {
		must(Summarize, append([]string{"--html", in(name + ".html")}, runs...)...)
		info, err := os.Stat(in(name + ".html"))
		if err != nil {
			t.Fatal(err)
		}
		size[name] = info.Size()
	}
	for _, n := range []string{"1000", "16000"} {
		must(Gen, "--scenario", "mixed-slo", "--requests", n, "-o", in("w"+n+".jsonl.zst"))
		must(Sim, "--trace", "full", in("w"+n+".jsonl.zst"), "-o", in(n+".jsonl.zst"))
		report(n, in(n+".jsonl.zst"))
	}
	if grown := size["16000"] - size["1000"]; grown > 150_000 {
		t.Errorf("15,000 more requests add %d bytes", grown)
	}
	var eight []string
	for i := range 8 {
		eight = append(eight, fmt.Sprintf("run %d=%s", i, in("1000.jsonl.zst")))
	}
	report("eight", eight...)
	if size["eight"] > 2<<20 {
		t.Errorf("eight runs take %d bytes", size["eight"])
	}
	t.Logf("%v bytes", size)
}
