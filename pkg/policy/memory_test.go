package policy

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// viewOf is a view of n idle replicas.
func viewOf(n int) *View {
	v := &View{Request: &Request{Tier: Standard, DeadlineUS: -1}, Replicas: make([]Replica, n)}
	for i := range v.Replicas {
		v.Replicas[i] = Replica{Index: int32(i), Stats: &Stats{}}
	}
	return v
}

// mustPlane is planeWith without errors.
func mustPlane(t *testing.T, stage string, s Spec) *Plane {
	t.Helper()
	p, err := planeWith(stage, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCounterRoutesInTurn: a counter and % make a round-robin; the first decision sees init.
func TestCounterRoutesInTurn(t *testing.T) {
	p := mustPlane(t, "routing", Spec{Type: "expression", Score: "replica.index == state.turn ? 1 : 0",
		State: map[string]Variable{"turn": {2, "(state.turn + 1) % cluster.replicas"}}})
	v := viewOf(5)
	for i := range 12 {
		if c := p.Routing.Route(v); c.Candidate != (i+2)%5 {
			t.Fatalf("decision %d: candidate %d, want %d", i, c.Candidate, (i+2)%5)
		}
	}
	if v.memory != nil {
		t.Error("the view keeps the memory")
	}
}

// TestUpdatesSeeTheDecision: replica.* is the chosen replica, and all updates see the old values.
func TestUpdatesSeeTheDecision(t *testing.T) {
	p := mustPlane(t, "routing", Spec{Type: "expression",
		Score: "state.a * 100 + state.b == 0 ? replica.index : -replica.index",
		State: map[string]Variable{"a": {0, "replica.index"}, "b": {0, "state.a"}}})
	v := viewOf(4)
	var got []int
	for range 6 { // a, b are 0 0, then 3 0, 0 3, 0 0, 3 0, 0 3
		got = append(got, p.Routing.Route(v).Candidate)
	}
	if want := "[3 0 0 3 0 0]"; fmt.Sprint(got) != want {
		t.Errorf("chosen %v, want %s", got, want)
	}
	admitted := mustPlane(t, "admission", Spec{Type: "expression", Admit: "state.n < 3",
		State: map[string]Variable{"n": {0, "decision.admitted ? state.n + 1 : 0"}}}).Admission
	text := ""
	for range 9 {
		text += admitted.Admit(v).Action.String()[:1]
	}
	if text != "aaaraaara" {
		t.Errorf("verdicts %s", text)
	}
	rising := mustPlane(t, "priority", Spec{Type: "expression", Priority: "state.last * 2 + 1",
		State: map[string]Variable{"last": {Update: "decision.priority"}}}).Priority
	for _, want := range []float64{1, 3, 7, 15} {
		if x, _ := rising.Priority(v, &hints); x != want {
			t.Errorf("priority %g, want %g", x, want)
		}
	}
}

// TestFailedUpdateKeepsTheValue: NaN and infinity count as failures of the update's rule.
func TestFailedUpdateKeepsTheValue(t *testing.T) {
	for _, update := range []string{"state.x % 0.5 + 1", "state.x / 0", "[1.0][1]"} {
		if strings.Contains(update, "%") {
			update = "state.x % (state.x / 14)" // 0.5
		}
		p := mustPlane(t, "priority", Spec{Type: "expression", Priority: "state.x",
			State: map[string]Variable{"x": {7, update}}})
		for range 3 {
			if x, _ := p.Priority.Priority(viewOf(1), &hints); x != 7 {
				t.Errorf("%s: the variable is %g", update, x)
			}
		}
		r := p.Priority.Rules()[1]
		if r.Path != "priority.state.x.update" || r.Evaluated != 3 || r.Failed != 3 || r.Hits != 0 {
			t.Errorf("%s: rule %+v", update, r)
		}
	}
}

// TestRandIsUniform: 20,000 draws in ten bins, chi-squared with 9 degrees of freedom; 33.7 has p = 1e-4.
func TestRandIsUniform(t *testing.T) {
	p := mustPlane(t, "priority", Spec{Type: "expression", Priority: "rand()"})
	var bins [10]float64
	v := viewOf(1)
	const n = 20_000
	for v.Draw.Request = range int64(n) {
		x, _ := p.Priority.Priority(v, &hints)
		bins[int(x*10)]++ // out of range if not in [0, 1)
	}
	chi := 0.0
	for _, b := range bins {
		chi += (b - n/10) * (b - n/10) / (n / 10)
	}
	if chi > 33.7 {
		t.Errorf("chi-squared %.1f of %v", chi, bins)
	}
	// Each stage and seed has its own stream, and each call another number.
	other := mustPlane(t, "admission", Spec{Type: "expression", Admit: "rand() == rand()"})
	for v.Draw.Request = range int64(100) {
		if other.Admission.Admit(v).Action == Admit {
			t.Fatal("two calls give the same number")
		}
	}
}

// TestEpsilonGreedy: the share of decisions that explore is ε, spread over all candidates.
func TestEpsilonGreedy(t *testing.T) {
	p := mustPlane(t, "routing", Spec{Type: "expression", Score: "state.explore < 0.2 ? rand() : -replica.index",
		State: map[string]Variable{"explore": {1, "rand()"}}})
	v := viewOf(4)
	var chosen [4]float64
	const n = 20_000
	for v.Draw.Request = range int64(n) {
		chosen[p.Routing.Route(v).Candidate]++
	}
	for i, want := range []float64{0.85, 0.05, 0.05, 0.05} {
		if got := chosen[i] / n; math.Abs(got-want) > 0.01 {
			t.Errorf("replica %d has %.3f of the decisions, want %g", i, got, want)
		}
	}
}

func TestMemoryErrors(t *testing.T) {
	many := map[string]Variable{}
	for i := range maxVariables + 1 {
		many[fmt.Sprint("x", i)] = Variable{Update: "1"}
	}
	one := map[string]Variable{"x": {Update: "state.x + 1"}}
	for _, c := range []struct {
		stage string
		spec  Spec
		want  string
	}{
		{"routing", Spec{Type: "expression", Score: "1 +\n state.y", State: one},
			`routing.score:2:2: unknown name "state.y"; did you mean "state.x"? (have state.x); variables are ` +
				`declared as state: {y: {init: 0, update: …}}`},
		{"admission", Spec{Type: "expression", Admit: "state.z > 0"}, "declared as state: {z: {init: 0, update: …}}"},
		{"priority", Spec{Type: "expression", Priority: "state.x", State: map[string]Variable{
			"x": {Update: "state.x +\n  req.inputtokens"}}},
			`priority.state.x.update:2:3: unknown name "req.inputtokens"; did you mean "req.input_tokens"?`},
		{"priority", Spec{Type: "expression", Priority: "state.x", State: map[string]Variable{"x": {Update: "true"}}},
			"priority.state.x.update:1:1: this is of type true-or-false; it must be of type number"},
		{"priority", Spec{Type: "expression", Priority: "state.x", State: map[string]Variable{"x": {Init: 1}}},
			"priority.state.x.update: must be given, such as state.x + 1"},
		{"priority", Spec{Type: "expression", Priority: "state.x", State: map[string]Variable{
			"x": {math.Inf(1), "1"}}}, "priority.state.x.init: must be a finite number"},
		{"routing", Spec{Type: "expression", Score: "1", State: map[string]Variable{"a-b": {Update: "1"}}},
			`routing.state: "a-b" is not a name`},
		{"routing", Spec{Type: "expression", Score: "1", State: many}, "must have at most 16 variables, has 17"},
		{"scheduler", Spec{Type: "expression", Order: "1", State: one},
			"scheduler.state: a policy of type expression here has no state"},
		{"preemption", Spec{Type: "expression", Victim: "1", State: one}, "preemption.state: a policy"},
		{"routing", Spec{Type: "round-robin", State: one},
			"routing.state: a policy of type round-robin here has no state"},
		{"admission", Spec{Type: "expression", Admit: "decision.admitted"}, `unknown name "decision.admitted"`},
		{"routing", Spec{Type: "expression", Score: "rand(2)"}, "routing.score:1:6: rand() takes no arguments"},
	} {
		_, err := planeWith(c.stage, c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.spec, err, c.want)
		}
	}
}

// A policy with state does not route to prefill replicas, unless these have a policy of their own.
func TestStateWithPrefillReplicas(t *testing.T) {
	env := testEnv
	env.PrefillReplicas = 2
	b := &Bundle{Routing: Spec{Type: "expression", Score: "state.x",
		State: map[string]Variable{"x": {Update: "state.x + 1"}}}}
	b.Complete()
	_, err := Build(b, env)
	if err == nil || !strings.Contains(err.Error(), "prefill_routing: is that of routing unless it is set") {
		t.Errorf("error %v", err)
	}
	b.PrefillRouting = &Spec{Type: "least-loaded"}
	b.Complete()
	if _, err := Build(b, env); err != nil {
		t.Error(err)
	}
}

// TestUnreadVariables are reported, also those that only their own update reads.
func TestUnreadVariables(t *testing.T) {
	p := mustPlane(t, "routing", Spec{Type: "expression", Score: "state.b", State: map[string]Variable{
		"a": {0, "state.a + 1"}, "b": {0, "state.c"}, "c": {0, "state.c + 1"}}})
	if len(p.Unused) != 1 || p.Unused[0].Path != "routing.state.a" {
		t.Errorf("unused: %+v", p.Unused)
	}
}
