package fitness

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestAggregates(t *testing.T) {
	x := []float64{0.8, 0.2, 0.5, 0.4}
	for _, c := range []struct {
		name        string
		share, want float64
	}{{"mean", 0, 0.475}, {"geo", 0, math.Pow(0.032, 0.25)}, {"worst", 0, 0.2}, {"cvar", 0.5, 0.3}, {"cvar", 0.25, 0.2},
		{"cvar", 0.1, 0.2},
		{"cvar", 0.375, (0.2 + 0.5*0.4) / 1.5}, {"cvar", 1, 0.475}} {
		of, err := Aggregates.Get("aggregate", c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := of(x, c.share); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s of %v is %v, want %v", c.name, c.share, got, c.want)
		}
	}
}

// Scores 0.9 and 0.5; the gate fails by 0.5 in one scenario; the held-out scenario does not count.
func TestCombine(t *testing.T) {
	f, err := loadText(t, `version: 1
score: m.goodput.ratio
aggregate: worst
gates: [{name: quick, expr: m.ttft.p99 <= 300}]
objectives: {speed: -m.ttft.p99, e2e: -m.e2e.p99}
holdout: [secret]`)
	if err != nil {
		t.Fatal(err)
	}
	other := healthyMetrics()
	other.Goodput.Ratio, other.TTFT.P99 = 0.5, 900
	hidden := healthyMetrics()
	hidden.Goodput.Ratio = 0
	var all []Scenario
	runs := map[string]*Run{"day": runOf(healthyMetrics(), nil), "night": runOf(other, nil),
		"secret": runOf(hidden, nil)}
	for name, m := range runs {
		r, err := f.Evaluate(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Scenario{name, r})
	}
	r := f.Combine(all)
	g := r.Gates[0]
	if math.Abs(r.Value-0.5) > 1e-12 || g.Passed || math.Abs(g.Distance-0.25) > 1e-12 ||
		g.Detail != "night: m.ttft.p99 (900) <= 300" || math.Abs(r.Score-0.075) > 1e-12 {
		t.Errorf("%+v", r)
	}
	if o := r.Objectives; o[0].Value != nil || *o[1].Value != -600 {
		t.Errorf("objectives %+v", o)
	}
	// The worst can improve from 0.5 to 1; the better one does not limit the score.
	if lost := r.Terms[0].Lost; math.Abs(lost-0.45) > 1e-8 || math.Abs(r.Terms[0].Value-0.7) > 1e-12 {
		t.Errorf("terms %+v", r.Terms)
	}
	for _, c := range []struct {
		scenarios, want string
	}{{"day secret", ""}, {"day night", `unknown scenario "secret" (have day, night)`},
		{"secret", "all scenarios are held out; at least one must count"}} {
		err := f.CheckHoldout(strings.Fields(c.scenarios))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.scenarios, err)
		}
	}
}

// TestCombineOfOne: one scenario has its own numbers, also as features. A feature that one of several scenarios
// lacks is missing.
func TestCombineOfOne(t *testing.T) {
	f, err := loadText(t, `version: 1
score: m.goodput.ratio
features: {speed: m.ttft.p99}`)
	if err != nil {
		t.Fatal(err)
	}
	scenario := func(name string, p99 float64) Scenario {
		m := healthyMetrics()
		m.TTFT.P99 = p99
		r, err := f.Evaluate(runOf(m, nil))
		if err != nil {
			t.Fatal(err)
		}
		return Scenario{name, r}
	}
	one, other := scenario("a", 100), scenario("b", 300)
	if r := f.Combine([]Scenario{one}); len(r.Features) != 1 || *r.Features[0].Value != 100 || r.Score != one.Score {
		t.Errorf("of one: %+v", r)
	}
	if r := f.Combine([]Scenario{one, other}); *r.Features[0].Value != 200 {
		t.Errorf("of two: %+v", r.Features[0])
	}
}

// TestHoldoutErrorIsPlaced: the error about a held-out scenario has the place of its name in the file.
func TestHoldoutErrorIsPlaced(t *testing.T) {
	f, err := loadText(t, "version: 1\nscore: m.goodput.ratio\nholdout: [day, moon]")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CheckHoldout([]string{"day", "night"}); err == nil || !strings.Contains(err.Error(), ":3:16: ") {
		t.Errorf("error %v, want the place 3:16", err)
	}
}

// TestNeedsReferences: base and parent are read where an expression names them.
func TestNeedsReferences(t *testing.T) {
	for src, want := range map[string][2]bool{
		"m.goodput.ratio": {}, "ratio(base.ttft.p99, m.ttft.p99)": {true, false},
		"ratio(parent.ttft.p99, m.ttft.p99)":                 {false, true},
		"ratio(base.ttft.p99 + parent.ttft.p99, m.ttft.p99)": {true, true},
	} {
		f, err := Expression("test", src)
		if err != nil {
			t.Fatal(err)
		}
		if base, parents := f.NeedsReferences(); base != want[0] || parents != want[1] {
			t.Errorf("%s needs %v and %v, want %v", src, base, parents, want)
		}
	}
}

// Crowding distances by hand.
func TestCrowding(t *testing.T) {
	c := func(x ...float64) (v []Value) {
		for _, x := range x {
			v = append(v, Value{Value: &x})
		}
		return v
	}
	places := Pareto([][]Value{c(0, 4), c(1, 3), c(4, 0), c(0, 3), {{}, {}}, c(-1, 5)})
	got := ""
	for _, p := range places {
		got += fmt.Sprint(p.Rank)
		if p.Crowding != nil {
			got += fmt.Sprintf("(%.2f)", *p.Crowding)
		}
		got += " "
	}
	// First front, by the first objective: -1, 0, 1, 4 of range 5; by the second 0, 3, 4, 5.
	// 0: (1+1)/5 + (5-3)/5 = 0.8; 1: (4-0)/5 + (4-0)/5 = 1.6.
	if want := "1(0.80) 1(1.60) 1 2 3 1 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Two candidates that tie in the first objective have the same neighbors there, in any order; by hand.
func TestCrowdingOfTies(t *testing.T) {
	points := [][]float64{{0, 9, 5}, {2, 4, 1}, {2, 3, 2}, {6, 0, 3}, {3, 2, 0}}
	// First objective: 0, 2, 2, 3, 6; the ties each (3-0)/6; second: 0, 2, 3, 4, 9: (9-3)/9,
	// (4-2)/9; third: 0, 1, 2, 3, 5: (2-0)/5, (3-1)/5.
	want := map[int]float64{1: 3./6 + 6./9 + 2./5, 2: 3./6 + 2./9 + 2./5}
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 2, 3, 1, 0}} {
		var all [][]Value
		for _, i := range order {
			var c []Value
			for k := range points[i] {
				c = append(c, Value{Value: &points[i][k]})
			}
			all = append(all, c)
		}
		for at, p := range Pareto(all) {
			w, inner := want[order[at]]
			if p.Rank != 1 || inner != (p.Crowding != nil) || inner && math.Abs(*p.Crowding-w) > 1e-12 {
				t.Errorf("%v: candidate %d has %+v, want %v", order, order[at], p, w)
			}
		}
	}
}

// Ranks equal the definition on random candidates.
func TestParetoRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, m := 1+r.IntN(12), 1+r.IntN(3)
		var all [][]Value
		for range n {
			var c []Value
			for range m {
				x := float64(r.IntN(4))
				if v := (Value{Value: &x}); r.IntN(8) > 0 {
					c = append(c, v)
				} else {
					c = append(c, Value{})
				}
			}
			all = append(all, c)
		}
		places := Pareto(all)
		number := func(v Value) float64 {
			if v.Value == nil {
				return -1
			}
			return *v.Value
		}
		for i := range all {
			// The rank is the length of the longest chain of candidates that each dominate the next.
			want := 1
			for k := range all {
				better, worse := false, false
				for j := range m {
					better = better || number(all[k][j]) > number(all[i][j])
					worse = worse || number(all[k][j]) < number(all[i][j])
				}
				if better && !worse {
					want = max(want, places[k].Rank+1)
				}
			}
			if places[i].Rank != want {
				t.Fatalf("%d of %v has rank %d, want %d", i, all, places[i].Rank, want)
			}
			if c := places[i].Crowding; c != nil && !finite(*c) {
				t.Fatalf("crowding %v", *c)
			}
		}
	}
}
