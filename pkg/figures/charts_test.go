package figures

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/chart"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// drawn is a chart by name.
func drawn(t *testing.T, name string, runs ...*Run) *chart.Chart {
	t.Helper()
	draw, err := Charts.Get("figure", name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := draw(runs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lines are the names and the numbers of the lines of a chart.
func lines(c *chart.Chart) (text []string) {
	for _, l := range c.Lines {
		line := l.Name
		for _, x := range l.Numbers {
			line += fmt.Sprintf(" %.4g", x)
		}
		text = append(text, line)
	}
	return text
}

// TestChartsOfSmallRun: the numbers of lines are quantiles, or the mean and the largest mean of a bin.
func TestChartsOfSmallRun(t *testing.T) {
	f := small().Run("run", 1)
	for name, want := range map[string][]string{
		"ttft":  {"all 22.5 24.5 24.95 25", "chat 20 20 20 20", "batch 25 25 25 25"},
		"e2e":   {"all 48.75 55.75 57.33 57.5", "chat 40 40 40 40", "batch 57.5 57.5 57.5 57.5"},
		"queue": {"all 12.5 14.5 14.95 15", "chat 10 10 10 10", "batch 15 15 15 15"},
		// Both requests arrive in one bin.
		"ttft-time": {"p50 22.5", "p99 24.95"},
		"rate":      {"arrivals 48 128", "completions 32 64", "missed targets 16 64"},
		"load":      {"running 1.16 1.72", "waiting 0.4 1.32"},
		"waiting":   {"main/0 0.16 0.32", "main/1 0.24 0.48"},
		"running":   {"main/0 0.48 0.68", "main/1 0.68 1"},
	} {
		same(t, name, lines(drawn(t, name, f)), want)
	}
	same(t, "e2e-time of two", lines(drawn(t, "e2e-time", f, f)), []string{"run 57.33", "run 57.33"})
	for _, l := range drawn(t, "tpot-time", f).Lines {
		if !l.Peak || !l.Step {
			t.Errorf("%+v does not show peaks", l)
		}
	}
	same(t, "ttft of two", lines(drawn(t, "ttft", f, f)), []string{"run 22.5 24.5 24.95 25", "run 22.5 24.5 24.95 25"})
	same(t, "load of two", lines(drawn(t, "load", f, f)), []string{"run 1.56 2", "run 1.56 2"})
	same(t, "rate of two", lines(drawn(t, "rate", f, f)), []string{"run 32 64", "run 32 64"})
	c := drawn(t, "ttft", f)
	same(t, "rules", []any{c.Title, c.Rules}, []any{"TTFT of run", []chart.Rule{{X: 22, Line: 1}}})
	same(t, "axes", []chart.Axis{c.X, c.Y}, []chart.Axis{{Label: "TTFT, ms", Log: true},
		{Label: "share of requests with at most this TTFT", Percent: true, Zero: true}})
	same(t, "axes over time", []chart.Axis{drawn(t, "load", f).X, drawn(t, "load", f).Y},
		[]chart.Axis{{Label: "time, s"}, {Label: "requests", Zero: true}})
	if c = drawn(t, "ttft", f, f); c.Title != "TTFT of 2 runs" || len(c.Rules) != 0 {
		t.Errorf("%q with rules %v", c.Title, c.Rules)
	}
	f.Classes, f.Distributions = f.Classes[:1], f.Distributions[:1]
	if c = drawn(t, "ttft", f); c.Lines[0].Name != "run" || len(c.Rules) != 1 {
		t.Errorf("one class: %q with rules %v", c.Lines[0].Name, c.Rules)
	}
	f.Classes[0].TTFTMS, f.Classes[0].E2EMS = 0, 0
	if c = drawn(t, "rate", f); len(c.Lines) != 2 {
		t.Errorf("without targets there are %q", lines(c))
	}
}

// TestChartErrors: what a run cannot show is said.
func TestChartErrors(t *testing.T) {
	f := small().Run("run", 1)
	bare := &Run{Name: "bare"}
	noQueues := &Run{Name: "recording", Replicas: replicaSeries{Names: []string{"server"}, Of: 1,
		Running: [][]float64{{1}}}, UntilS: 1}
	for _, c := range []struct {
		name string
		runs []*Run
		want string
	}{
		{"ttft", []*Run{bare}, "no request has a TTFT"},
		{"kv", []*Run{f}, "run has no KV blocks over time: they need blis-sim --trace full"},
		{"kv", []*Run{f, f}, "a figure of replicas shows one run; there are 2"},
		{"waiting", []*Run{noQueues}, "recording does not say when requests left their queues"},
		{"waiting", []*Run{bare}, "bare has no replicas"},
		{"running", []*Run{noQueues}, ""},
	} {
		draw, err := Charts.Get("figure", c.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = draw(c.runs); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestLogarithmicLines: latencies of 0 move to the smallest one above 0, and only the last point there stays.
func TestLogarithmicLines(t *testing.T) {
	of := func(xs ...float64) []chart.Point {
		c := &chart.Chart{Lines: []chart.Line{{}}}
		for i, x := range xs {
			c.Lines[0].Points = append(c.Lines[0].Points, chart.Point{X: x, Y: float64(i)})
		}
		toLogarithms(c)
		return c.Lines[0].Points
	}
	same(t, "zeros", of(0, 0, 2, 2, 5), []chart.Point{{X: 2, Y: 3}, {X: 5, Y: 4}})
	same(t, "far below", of(0, 1e-9, 1000), []chart.Point{{X: 0.01, Y: 1}, {X: 1000, Y: 2}})
	same(t, "no zeros", of(1, 2), []chart.Point{{X: 1}, {X: 2, Y: 1}})
	near := cmpopts.EquateApprox(1e-12, 0)
	if diff := cmp.Diff([]chart.Point{{X: 3}, {X: 3.6}, {X: 3.6, Y: 1}, {X: 4.32, Y: 1}}, of(3.6, 3.6),
		near); diff != "" {
		t.Errorf("equal latencies:\n%s", diff)
	}
	if diff := cmp.Diff([]chart.Point{{X: 1e-3 / 1.2}, {X: 1e-3}, {X: 1e-3, Y: 1}, {X: 1.2e-3, Y: 1}}, of(0, 0),
		near); diff != "" {
		t.Errorf("only zeros:\n%s", diff)
	}
}

// TestSteps: a bin without a value is a gap, and its time does not count. The last bin is shorter.
func TestSteps(t *testing.T) {
	x, y := 4.0, 1.0
	l := steps("a", []*float64{&x, nil, &y}, 2, 5)
	if l.Name != "a" || !l.Step || len(l.Points) != 4 || l.Points[3] != (chart.Point{X: 5, Y: 1}) ||
		l.Points[2] != (chart.Point{X: 4, Y: 1}) || !math.IsNaN(l.Points[1].Y) || l.Numbers[0] != 3 ||
		l.Numbers[1] != 4 {
		t.Errorf("%+v", l)
	}
	if l = steps("b", []*float64{&y, &x}, 2, 4); l.Numbers[1] != 4 {
		t.Errorf("the largest is %g", l.Numbers[1])
	}
}

// TestManyReplicas: the chart has the eight whose requests waited most, in their order.
func TestManyReplicas(t *testing.T) {
	r := &Run{Name: "run", UntilS: 1, Replicas: replicaSeries{WidthS: 1, Of: 12}}
	s := &r.Replicas
	for i := range 12 {
		s.Names = append(s.Names, fmt.Sprint("main/", i))
		waiting := float64(i)
		if i == 0 {
			waiting = 100
		}
		s.Waiting, s.Running = append(s.Waiting, []float64{waiting}), append(s.Running, []float64{1})
		s.KV = append(s.KV, []*float64{nil})
	}
	c := drawn(t, "running", r)
	if c.Title != "running requests of run: the 8 of 12 replicas that waited most" || len(c.Lines) != 8 ||
		c.Lines[0].Name != "main/0" || c.Lines[1].Name != "main/5" || c.Lines[7].Name != "main/11" {
		t.Errorf("%q: %q", c.Title, lines(c))
	}
	half := 0.5
	s.KVShare, s.KV[0][0] = true, &half
	if c = drawn(t, "kv", r); !c.Y.Percent || !strings.HasPrefix(c.Y.Label, "share") ||
		lines(c)[0] != "main/0 0.5 0.5" {
		t.Errorf("%+v: %q", c.Y, lines(c))
	}
	s.KVShare = false
	if c = drawn(t, "kv", r); c.Y.Percent || c.Y.Label != "used KV blocks" {
		t.Errorf("%+v", c.Y)
	}
}
