package cli

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/figures"
	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// plotNumbers returns the numbers below a plot by the name of the line and the column.
func plotNumbers(t *testing.T, text string) map[string]map[string]float64 {
	t.Helper()
	_, list, found := strings.Cut(text, "\n\n")
	if !found {
		t.Fatalf("no numbers in\n%s", text)
	}
	lines := strings.Split(strings.TrimSpace(list), "\n")
	columns := strings.Fields(lines[0])
	numbers := map[string]map[string]float64{}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		name := strings.Join(cells[1:len(cells)-len(columns)], " ")
		numbers[name] = map[string]float64{}
		for i, column := range columns {
			text, unit := cells[len(cells)-len(columns)+i], 1.0
			if number, thousands := strings.CutSuffix(text, "k"); thousands {
				text, unit = number, 1000
			}
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s of %s: %v", column, name, err)
			}
			numbers[name][column] = x * unit
		}
	}
	return numbers
}

// plotRecords are what figures over time must show of a run: means over its duration.
type plotRecords struct {
	metrics           metrics.Record
	durationS         float64
	running, waiting  map[string]float64 // by replica, and "" for all
	usedBlocks, stepS map[string]float64
}

func readPlotRecords(t *testing.T, name string) *plotRecords {
	t.Helper()
	want := &plotRecords{running: map[string]float64{}, waiting: map[string]float64{},
		usedBlocks: map[string]float64{}, stepS: map[string]float64{}}
	for r := range records(t, name) {
		switch r.Kind() {
		case stream.KindMetrics:
			if err := r.Decode(&want.metrics); err != nil {
				t.Fatal(err)
			}
		case stream.KindStep:
			var s stream.Step
			if err := r.Decode(&s); err != nil {
				t.Fatal(err)
			}
			replica, seconds := fmt.Sprint(s.Deployment, "/", s.Replica), float64(s.EndUS-s.StartUS)/1e6
			want.usedBlocks[replica] += float64(s.UsedBlocks) * seconds
			want.stepS[replica] += seconds
			want.durationS = max(want.durationS, float64(s.EndUS)/1e6)
		case stream.KindOutcome:
			var o stream.Outcome
			if err := r.Outcome(&o); err != nil {
				t.Fatal(err)
			}
			end := max(o.CompletedUS, o.EndedUS)
			want.durationS = max(want.durationS, float64(end)/1e6)
			if o.ScheduledUS.IsZero() {
				t.Fatalf("request %s never entered a batch", o.ID)
			}
			for _, replica := range []string{"", fmt.Sprint(o.Deployment, "/", o.Replica)} {
				want.waiting[replica] += float64(o.ScheduledUS-o.EnqueuedUS) / 1e6
				want.running[replica] += float64(end-o.ScheduledUS) / 1e6
			}
		}
	}
	return want
}

// The numbers of all figures are those of the records, and the SVG has a line for each line of the text.
func TestPlotsEqualRecords(t *testing.T) {
	in, call, must := callsIn(t)
	must(Gen, "--scenario", "mixed-slo", "--requests", "600", "-o", in("w.jsonl"))
	for _, policy := range []string{"weighted", "random"} {
		must(Sim, "--trace", "full", "--set", "routing={type: "+policy+"}", "--set", "deployments.main.replicas=2",
			in("w.jsonl"), "-o", in(policy+".jsonl"))
	}
	must(Sim, "--trace", "minimal", in("w.jsonl"), "-o", in("minimal.jsonl"))
	must(Sim, "--set", "routing={type: random}", in("w.jsonl"), "-o", in("decisions.jsonl"))
	want := map[string]*plotRecords{}
	for _, policy := range []string{"weighted", "random"} {
		want[policy] = readPlotRecords(t, in(policy+".jsonl"))
	}
	one := want["weighted"]
	values := metrics.ByPath(&one.metrics.Raw)
	critical := classValues(t, &one.metrics.Raw, "critical")
	near := func(what string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= 0.0051*math.Abs(want)) {
			t.Errorf("%s is %v, not %v", what, got, want)
		}
	}
	plots := map[string]map[string]map[string]float64{}
	for _, figure := range figures.Charts.Names() {
		must(Summarize, "--plot", figure, "--svg", in(figure+".svg"), "-o", in(figure), in("weighted.jsonl"))
		text, err := os.ReadFile(in(figure))
		if err != nil {
			t.Fatal(err)
		}
		plots[figure] = plotNumbers(t, string(text))
		svg, err := os.ReadFile(in(figure + ".svg"))
		if err != nil {
			t.Fatal(err)
		}
		texts := svgTexts(t, svg)
		for name := range plots[figure] {
			if !texts[name] {
				t.Errorf("%s.svg has no line %s: %v", figure, name, texts)
			}
		}
	}
	for _, latency := range []string{"ttft", "tpot", "e2e", "queue"} {
		for _, p := range []string{"p50", "p90", "p99", "max"} {
			near(p+" of "+latency, plots[latency]["all"][p], values[latency+"."+p])
			near(p+" of critical "+latency, plots[latency]["critical"][p], critical[latency+"."+p])
		}
		if len(plots[latency]) < 3 {
			t.Errorf("%s has lines %v", latency, plots[latency])
		}
	}
	// The largest percentile of an interval is at least that of the run.
	for _, latency := range []string{"ttft", "tpot", "e2e"} {
		p50, p99 := plots[latency+"-time"]["p50"]["max"], plots[latency+"-time"]["p99"]["max"]
		if !(p50 >= 0.99*values[latency+".p50"] && p50 < p99 && p99 >= 0.99*values[latency+".p99"] &&
			p99 <= 1.01*values[latency+".max"]) {
			t.Errorf("%s over time: %v and %v", latency, p50, p99)
		}
	}
	near("arrivals", plots["rate"]["arrivals"]["mean"]*one.durationS, values["requests.offered"])
	near("completions", plots["rate"]["completions"]["mean"]*one.durationS, values["requests.completed"])
	near("misses", plots["rate"]["missed targets"]["mean"]*one.durationS,
		values["goodput.offered"]-values["goodput.met"])
	near("running requests", plots["load"]["running"]["mean"]*one.durationS, one.running[""])
	near("waiting requests", plots["load"]["waiting"]["mean"]*one.durationS, one.waiting[""])
	for _, replica := range []string{"main/0", "main/1"} {
		near("running at "+replica, plots["running"][replica]["mean"]*one.durationS, one.running[replica])
		near("waiting at "+replica, plots["waiting"][replica]["mean"]*one.durationS, one.waiting[replica])
		// The figure has the mean of the steps in each interval; a replica has no steps for a part of the time.
		kv, mean := plots["kv"][replica], one.usedBlocks[replica]/one.stepS[replica]
		if !(kv["mean"] > 0.8*mean && kv["mean"] < 1.2*mean && kv["mean"] < kv["max_mean"]) {
			t.Errorf("KV blocks of %s: %v, and a mean of %v", replica, kv, mean)
		}
	}
	if values["goodput.met"] == values["goodput.offered"] || one.waiting[""] < 1 {
		t.Errorf("the run is too easy: %v", one)
	}

	must(Summarize, "--plot", "ttft", "-o", in("both"), in("weighted.jsonl"), in("random.jsonl"))
	text, err := os.ReadFile(in("both"))
	if err != nil {
		t.Fatal(err)
	}
	for name, numbers := range plotNumbers(t, string(text)) {
		near("p99 of "+name, numbers["p99"], metrics.ByPath(&want[name].metrics.Raw)["ttft.p99"])
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--plot needs --trace decisions, or full", []string{"--plot", "ttft", in("minimal.jsonl")}},
		{"this is a workload", []string{"--plot", "ttft", in("w.jsonl")}},
		{`unknown figure "tftt"; did you mean "ttft"?`, []string{"--plot", "tftt", in("random.jsonl")}},
		{"the name must end in .svg", []string{"--plot", "ttft", "--svg", in("x.png"), in("random.jsonl")}},
		{"--svg writes the figure of --plot", []string{"--svg", in("x.svg"), in("random.jsonl")}},
		{"--plot has no format json", []string{"--plot", "ttft", "--format", "json", in("random.jsonl")}},
		{"--hints has no effect with --plot", []string{"--plot", "ttft", "--hints", in("random.jsonl")}},
		{"a figure of replicas shows one run; there are 2",
			[]string{"--plot", "kv", in("weighted.jsonl"), in("random.jsonl")}},
		{"need blis-sim --trace full", []string{"--plot", "kv", in("decisions.jsonl")}},
		{"no requests to plot", []string{"--plot", "ttft", "--svg", in("x.svg"), "--from", "10h", in("random.jsonl")}},
	} {
		complaints, code := call(Summarize, c.args...)
		if code == exitOK || !strings.Contains(complaints.String(), c.want) {
			t.Errorf("%q: exit code %d: %s", c.args, code, &complaints)
		}
	}
	if _, err := os.Stat(in("x.svg")); err == nil {
		t.Error("a file of a failed call exists")
	}
}

// classValues returns percentiles and maxima of the latencies of a class by path.
func classValues(t *testing.T, m *metrics.Raw, class string) map[string]float64 {
	t.Helper()
	g, ok := m.Cls[class]
	if !ok {
		t.Fatalf("no class %s", class)
	}
	values := map[string]float64{}
	for name, d := range map[string]*metrics.Distribution{"ttft": g.TTFT, "tpot": g.TPOT, "e2e": g.E2E,
		"queue": g.Queue} {
		values[name+".p50"], values[name+".p90"], values[name+".p99"], values[name+".max"] = d.P50, d.P90, d.P99, d.Max
	}
	return values
}

// svgTexts returns the texts of an SVG, which must be well-formed.
func svgTexts(t *testing.T, svg []byte) map[string]bool {
	t.Helper()
	texts := map[string]bool{}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			texts[string(text)] = true
		}
	}
}
