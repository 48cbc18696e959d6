package gen

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/stream"
	"blis/pkg/workloadstats"
)

// The published sources of scenarios.
const (
	// github.com/kubernetes-sigs/inference-perf at 7de5ef2e, workload-catalog/*: mean and standard
	// deviation of input (without the system prompt) and output.
	catalog = "inference-perf "
	// github.com/alibaba/ServeGen at f891d118, data/language: CV of the gaps, mean and quantiles of
	// the lengths of single clients.
	servegen = "ServeGen m-large "
)

// publishedFigure is a number that a source publishes about what a scenario models.
type publishedFigure struct {
	scenario, source string
	// tenant is "" for all; quantity is input, output, gaps, rate, prefix, turns or think (s).
	tenant, quantity string
	// figure is mean, deviation, p50, p95, cv or share; value is in the scenario's own scale.
	figure string
	value  float64
	// infeasible says why the figure contradicts the others, if it does.
	infeasible string
}

// moments returns the figures that the catalog has for a distribution.
func moments(scenario, source, what string, mean, deviation float64) []publishedFigure {
	return []publishedFigure{{scenario, source, "", what, "mean", mean, ""}, {scenario, source, "", what, "deviation",
		deviation, ""}}
}

// serveGenFigures returns the figures of one of ServeGen's clients, by its number there.
func serveGenFigures(tenant string, number int, share, cv float64, input, output [3]float64) []publishedFigure {
	const scenario = "production-clients"
	source := fmt.Sprint(servegen, number)
	rows := []publishedFigure{{scenario, source, tenant, "rate", "share", share, ""}, {scenario, source, tenant, "gaps",
		"cv", cv, ""}}
	for i, figure := range []string{"mean", "p50", "p95"} {
		rows = append(rows, publishedFigure{scenario, source, tenant, "input", figure, input[i], ""},
			publishedFigure{scenario, source, tenant, "output", figure, output[i], ""})
	}
	return rows
}

// allPublished returns all figures. Inputs are those of the catalog plus its system prompt: the
// whole prompt.
func allPublished() []publishedFigure {
	var all []publishedFigure
	add := func(rows ...publishedFigure) { all = append(all, rows...) }

	add(moments("rag", catalog+"batch-summarization-rag", "input", 15000+500, 22000)...)
	add(moments("rag", catalog+"batch-summarization-rag", "output", 500, 300)...)
	add(publishedFigure{"rag", catalog + "batch-summarization-rag", "", "prefix", "share", 500. / 15500, ""})

	// The whole prompt is divided by 8.
	add(moments("code", catalog+"code-generation", "input", (160000+3000)/8., 233600/8.)...)
	add(moments("code", catalog+"code-generation", "output", 425, 825)...)
	add(publishedFigure{"code", catalog + "code-generation", "", "prefix", "share", 3000. / 163000, ""})

	add(moments("reasoning", catalog+"reasoning", "input", 1000+250, 800)...)
	add(moments("reasoning", catalog+"reasoning", "output", 8000, 6500)...)
	add(publishedFigure{"reasoning", catalog + "reasoning", "", "prefix", "share", 250. / 1250, ""})

	const synthetic = catalog + "batch-synthetic-data-generation"
	add(moments("synthetic-data", synthetic, "input", 500+2000, 1200)...)
	add(publishedFigure{"synthetic-data", synthetic, "", "output", "mean", 4000, ""},
		publishedFigure{"synthetic-data", synthetic, "", "output", "deviation", 2500,
			"uniform from 500 to 8000 has 2165"},
		publishedFigure{"synthetic-data", synthetic, "", "prefix", "share", 2000. / 2500, ""})

	// Per call, including the system prompt and earlier turns. In chat only the assistant is
	// published.
	const chat = catalog + "interactive-chat"
	for _, p := range append(moments("chat", chat, "input", 4000, 2500), moments("chat", chat, "output", 300, 150)...) {
		p.tenant = "assistant"
		add(p)
	}
	const research = catalog + "deep-research"
	add(moments("deep-research", research, "input", 45000, 35000)...)
	add(moments("deep-research", research, "output", 300, 850)...)
	add(moments("deep-research", research, "turns", 15, 8.5)...)
	add(moments("deep-research", research, "think", 25, 12)...)

	// Shares of the total rate of the six.
	const six = 0.160 + 0.063 + 0.054 + 0.020 + 0.022 + 0.044
	add(serveGenFigures("assistant", 61, 0.160/six, 2.33, [3]float64{832.34, 489, 2383},
		[3]float64{373.545, 416, 767})...)
	add(serveGenFigures("classifier", 143, 0.063/six, 2.83, [3]float64{647.302, 627, 811}, [3]float64{4.152, 3, 8})...)
	add(serveGenFigures("extractor", 104, 0.054/six, 4.234, [3]float64{702.542, 599, 853},
		[3]float64{39.351, 29, 92})...)
	add(serveGenFigures("translator", 91, 0.020/six, 1.279, [3]float64{882.632, 979, 1669},
		[3]float64{63.493, 49, 173})...)
	add(serveGenFigures("rewriter", 116, 0.022/six, 4.364, [3]float64{2401.666, 2400, 2416},
		[3]float64{112.595, 107, 138})...)
	add(serveGenFigures("completion", 34, 0.044/six, 0.943, [3]float64{70.743, 63, 75}, [3]float64{16.854, 12, 47})...)

	// github.com/callanjfox/kv-cache-tester at 94f6046d, traces: outputs of 48,658 requests in 710
	// sessions, and the share of prompts that repeats the previous prompt of the session.
	const recorded = "kv-cache-tester"
	add(publishedFigure{"coding-agent", recorded, "", "output", "mean", 439.1, ""}, publishedFigure{"coding-agent",
		recorded, "", "output", "p50", 216, ""},
		publishedFigure{"coding-agent", recorded, "", "output", "p95", 1544, ""}, publishedFigure{"coding-agent",
			recorded, "", "prefix", "share", 0.955, ""})
	return all
}

// measure returns the same figure of a description.
func (p *publishedFigure) measure(t *testing.T, d *workloadstats.Description) float64 {
	t.Helper()
	part := &workloadstats.Part{Arrivals: d.Arrivals, CV: d.CV, Lengths: d.Lengths}
	if p.tenant != "" {
		part = d.Tenant[p.tenant]
	}
	lengths := map[string]*workloadstats.Distribution{"input": part.Input, "output": part.Output}[p.quantity]
	switch {
	case p.quantity == "prefix":
		return d.Prefix.Hit
	case p.quantity == "turns":
		lengths = d.Session.Calls
	case p.quantity == "think":
		lengths = d.Session.ThinkS
	}
	switch {
	case p.quantity == "gaps":
		return *part.CV
	case p.quantity == "rate":
		return float64(part.Arrivals) / float64(d.Arrivals)
	case p.figure == "mean":
		return lengths.Mean
	case p.figure == "deviation":
		return lengths.CV * lengths.Mean
	case p.figure == "p50":
		return lengths.P50
	case p.figure == "p95":
		return lengths.P95
	}
	t.Fatalf("no such figure: %+v", p)
	return 0
}

// describeScenario describes a built-in spec with n requests.
func describeScenario(t *testing.T, name string, n Count) *workloadstats.Description {
	t.Helper()
	text, err := generate("", Options{Scenario: Scenario(name), Requests: n})
	if err != nil {
		t.Fatal(err)
	}
	d := workloadstats.New()
	r := stream.NewReader(strings.NewReader(text))
	var a stream.Arrival
	for r.Next() {
		if r.Kind() != stream.KindRequest && r.Kind() != stream.KindSession {
			continue
		}
		if err := r.Arrival(&a); err != nil {
			t.Fatal(err)
		}
		d.Add(&a)
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return d.Description()
}

// Scenarios with a published source are within 10 % of it. go test -v prints the differences.
func TestPublishedScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("draws 100,000 requests of each scenario; run without -short")
	}
	descriptions := map[string]*workloadstats.Description{}
	for _, p := range allPublished() {
		d := descriptions[p.scenario]
		if d == nil {
			n := Count(100_000)
			if p.scenario == "chat" || p.scenario == "deep-research" || p.scenario == "coding-agent" {
				n = 5000 // sessions
			}
			d = describeScenario(t, p.scenario, n)
			descriptions[p.scenario] = d
		}
		got := p.measure(t, d)
		off := got/p.value - 1
		t.Logf("%-15s %-11s %-7s %-9s %10.4g, published %10.4g: %+5.1f %%  %s %s", p.scenario, p.tenant, p.quantity,
			p.figure, got, p.value, 100*off, p.source, p.infeasible)
		if math.Abs(off) > 0.1 && p.infeasible == "" {
			t.Errorf("%s %s: %s of %s is %.4g, %s has %.4g", p.scenario, p.tenant, p.figure, p.quantity, got, p.source,
				p.value)
		}
	}
}

// The scenarios whose load changes have the documented rates at the documented times.
func TestScenarioRatesOverTime(t *testing.T) {
	const hour = 3600
	for _, c := range []struct {
		scenario, tenant string
		from, to         stream.Micros // s
		rate             float64       // per second
	}{
		{"load-step", "", 0, 40, 47}, {"load-step", "", 40, 80, 141}, {"load-step", "", 80, 120, 70.5},
		{"load-spike", "", 0, 40, 59}, {"load-spike", "", 40, 50, 177}, {"load-spike", "", 50, 70, 118},
		{"load-spike", "", 70, 120, 59},
		// A quarter of a sine's period around its peak has the mean 1 + 2√2/π of its amplitude.
		{"day-and-night", "people", 30, 50, 52 * (1 + 0.8*0.9003)}, {"day-and-night", "people", 70, 90,
			52 * (1 - 0.8*0.9003)},
		{"day-and-night", "nightly", 70, 90, 13 * (1 + 0.9*0.9003)}, {"day-and-night", "nightly", 0, 160, 13},
		{"bursty-traffic", "", 0, 60, 25}, {"bursty-traffic", "", 60, 65, 250}, {"bursty-traffic", "", 65, 120, 25},
		{"bursty-traffic", "", 120, 125, 250}, {"bursty-traffic", "", 180, 185, 250},
		{"bursty-traffic", "", 240, 245, 250}, {"bursty-traffic", "", 245, 300, 25},
		// The two hours around the peak have the mean 1 + 0.9886·9/11, those around the trough a tenth of that.
		{"diurnal-cycle", "", 13 * hour, 15 * hour, 0.12 * (1 + 0.9886*9/11)},
		{"diurnal-cycle", "", 1 * hour, 3 * hour, 0.12 * (1 - 0.9886*9/11)}, {"diurnal-cycle", "", 0, 24 * hour, 0.12},
		{"abusive-tenant", "abuser", 0, 40, 5 * 0.94}, {"abusive-tenant", "assistant", 0, 40, 0.55 * 47},
	} {
		_, list := requests(t, "", Options{Scenario: Scenario(c.scenario)})
		n := 0.0
		for _, r := range list {
			if (c.tenant == "" || r.Tenant == c.tenant) && r.ArrivalUS >= c.from*1_000_000 &&
				r.ArrivalUS < c.to*1_000_000 {
				n++
			}
		}
		want := c.rate * float64(c.to-c.from)
		// Six standard deviations of a Poisson count: gaps with a CV of 1.5 vary more.
		if math.Abs(n-want) > 6*math.Sqrt(want) {
			t.Errorf("%s %s: %g requests from %d to %d s, want about %.0f", c.scenario, c.tenant, n, c.from, c.to, want)
		}
	}
}

// The tenants of scenarios have the documented shares.
func TestScenarioTenantShares(t *testing.T) {
	tokens := func(p *workloadstats.Part) float64 { return float64(p.Calls) * (p.Input.Mean + p.Output.Mean) }
	unfair := describeScenario(t, "unfair-tenants", 50_000)
	for tenant, share := range map[string]float64{"low-priority-bulk": 0.9, "high-priority-realtime": 0.1} {
		if got := float64(unfair.Tenant[tenant].Arrivals) / 50_000; len(unfair.Tenant) != 2 ||
			math.Abs(got-share) > 0.01 {
			t.Errorf("%s has %.3f of the requests of %d tenants, want %g", tenant, got, len(unfair.Tenant), share)
		}
	}
	unequal := describeScenario(t, "unequal-tenants", 50_000)
	sum := 0.0
	for _, p := range unequal.Tenant {
		sum += tokens(p)
	}
	if share := tokens(unequal.Tenant["giant"]) / sum; len(unequal.Tenant) != 6 || share < 0.75 || share > 0.85 {
		t.Errorf("the largest tenant has %.2f of the tokens of %d tenants", share, len(unequal.Tenant))
	}
	abusive := describeScenario(t, "abusive-tenant", 50_000).Tenant
	abuser, office := abusive["abuser"], abusive["office"]
	if longer := abuser.Input.Mean / office.Input.Mean; math.Abs(longer-8) > 0.4 {
		t.Errorf("the abuser's prompts are %.2f times as long", longer)
	}
	if longer := abuser.Output.Mean / office.Output.Mean; math.Abs(longer-8) > 0.4 {
		t.Errorf("the abuser's outputs are %.2f times as long", longer)
	}
}
