package fitness

import (
	"math"
	"reflect"
	"testing"

	_ "blis/pkg/internal/fixedseed"
	"blis/pkg/metrics"

	"pgregory.net/rapid"
)

// A loss is divided by what each number would gain if it were ideal, and a time has a limit up to which nothing is
// lost. The values are those of partlyServed: TTFT p50 20 ms of 40 requests, of which 0.875 have one.
func TestLossesByNumber(t *testing.T) {
	type want struct {
		path        string
		lost, limit float64
		served      bool
	}
	raw := partlyServed()
	raw.Goodput = &metrics.Goodput{Offered: 40, Met: 30, Ratio: 0.75}
	for src, want := range map[string][]want{
		// 0.9 * 0.5 * (1 - 0.75), and 0.9 * 0.5 * (1 - 0.5*0.875)
		"wmean(0.5, m.goodput.ratio, 0.5, ratio(20, m.ttft.p50))": {{"goodput.ratio", 0.1125, 0, false},
			{"ttft.p50", 0.253125, 0, false}},
		// soft is 1 up to 10 ms and exp(-1) at 20 ms.
		"soft(m.ttft.p50, 10, 1)": {{"ttft.p50", 0.9 * (1 - 0.875*math.Exp(-1)), 10, false}},
		// 1 - 0.5*0.95, of the served ones alone.
		"ratio(60, served(m.ttft.p50))": {{"ttft.p50", 0.9 * (1 - 0.5*0.95), 0, true}},
		// The load cannot be better.
		"m.requests.completed / max(m.requests.offered, 1)": {{"requests.completed", 0.9 * 0.05, 0, false}},
		// What is subtracted is lost.
		"1 - 0.5 * m.requests.rejected / 10": {{"requests.rejected", 0.9 * 0.25, 0, false}},
		`attained("critical")`:               {{`cls["critical"].goodput.ratio`, 0.9 * 0.5, 0, false}},
	} {
		run := runOf(raw, nil)
		run.values[ownTree][`cls["critical"].goodput.ratio`] = 0.5
		f, err := Expression("test", src)
		if err != nil {
			t.Fatal(err)
		}
		result, err := f.Evaluate(run)
		if err != nil {
			t.Fatal(err)
		}
		got := f.Losses(run, result)
		if len(got) != len(want) {
			t.Errorf("%s loses %v", src, got)
			continue
		}
		for i, w := range want {
			l := got[i]
			if l.Path != w.path || math.Abs(l.Lost-w.lost) > 1e-9 || math.Abs(l.Limit-w.limit) > 1e-3 ||
				l.Served != w.served {
				t.Errorf("%s loses %+v, want %+v", src, l, w)
			}
		}
	}
}

// A gate that fails loses what it takes from the score, up to the limit at which it would pass.
func TestLossesByGates(t *testing.T) {
	f, err := loadText(t, `version: 1
gates: [{name: fast, expr: served(m.ttft.p50) < 30.0}, {name: most, expr: m.requests.rejected <= 10}]
score: ratio(60, served(m.ttft.p50))
`)
	if err != nil {
		t.Fatal(err)
	}
	run := runOf(partlyServed(), nil)
	result, err := f.Evaluate(run)
	if err != nil {
		t.Fatal(err)
	}
	got := f.Losses(run, result)
	if len(got) != 2 || got[1].Term != "gate fast" || math.Abs(got[1].Limit-30) > 1e-3 ||
		math.Abs(got[0].Lost+got[1].Lost-(1-result.Score)) > 1e-9 {
		t.Errorf("%+v of the score %v", got, result.Score)
	}
}

// The losses of a term's numbers are those of the term.
func TestLossesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := rapid.SampledFrom([]string{"m.goodput.ratio", "ratio(50, m.ttft.p99)", "soft(m.e2e.p50, 100, 1)",
			"ratio(9, m.tpot.p50) * m.goodput.ratio", "worst(ratio(50, m.ttft.p99), ratio(1, m.e2e.p50))",
			"min(m.goodput.ratio, ratio(7, m.queue.mean))"})
		src := "wmean(0.3, " + term.Draw(t, "term") + ", 0.7, " + term.Draw(t, "term") + ")"
		f, err := Expression("test", src)
		if err != nil {
			t.Fatal(err)
		}
		run := runOf(healthyMetrics(), nil)
		result, err := f.Evaluate(run)
		if err != nil {
			t.Fatal(err)
		}
		lost := map[string]float64{}
		for _, l := range f.Losses(run, result) {
			lost[l.Term] += l.Lost
		}
		for _, term := range result.Terms {
			if math.Abs(lost[term.Name]-term.Lost) > 1e-6 {
				t.Fatalf("%s: %s loses %v, its numbers %v", src, term.Name, term.Lost, lost[term.Name])
			}
		}
	})
}

// TestIdealOf: the best value of a number is 1 for a share, 0 for what should be low, what was offered for what
// is served, and unknown otherwise.
func TestIdealOf(t *testing.T) {
	raw := healthyMetrics()
	r := runOf(raw, nil)
	now := func(path string) float64 {
		x, ok := r.value(ownTree, path)
		if !ok {
			t.Fatalf("no %s", path)
		}
		return x
	}
	for path, want := range map[string]float64{"goodput.ratio": 1, "ttft.p99": 0,
		"requests.offered": now("requests.offered"), "requests.completed": now("requests.offered"),
		"ttft.count": 2 * now("ttft.count")} {
		if got := r.idealOf(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// TestLossesOfSharedRun: another fitness, with other targets, may have judged the run before its losses are asked for.
// Of the weighted requests 3·1 of 100 + 3·10 met their targets, and more would count if p50 were ideal.
func TestLossesOfSharedRun(t *testing.T) {
	f, err := loadText(t, `version: 1
slo: {late: {ttft_ms: 5}}
weights: {late: 3}
score: m.goodput.ratio * ratio(20, m.ttft.p50)`)
	if err != nil {
		t.Fatal(err)
	}
	run := runOf(healthyMetrics(), nil)
	run.values[ownTree][`cls["late"].goodput.met`], run.values[ownTree][`cls["late"].goodput.offered`] = 1, 10
	result, err := f.Evaluate(run)
	if err != nil {
		t.Fatal(err)
	}
	want := f.Losses(run, result)
	if len(want) != 2 || math.Abs(result.Value-0.25*3/130) > 1e-12 {
		t.Fatalf("value %v, losses %+v", result.Value, want)
	}
	evaluate(t, "m.goodput.ratio", run)
	if got := f.Losses(run, result); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
