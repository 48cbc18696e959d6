package policy

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// equivalents have a Starlark program and a CEL expression that must decide alike.
var equivalents = []struct {
	stage    string
	starlark string
	cel      Spec
}{
	{"admission", "def admit(req, best): return req.tier != 'sheddable' or best.queue_depth < 2",
		Spec{Admit: `req.tier != "sheddable" || best.queue_depth < 2`}},
	{"admission", `
def admit(tenant, cluster):
    if tenant.active > 10 and tenant.burst:
        return "reject"
    return "delay" if cluster.inflight % 7 == 3 else "admit"`,
		Spec{Admit: `tenant.active > 10 && tenant.burst ? "reject" : cluster.inflight % 7 == 3 ? "delay" : "admit"`}},
	{"priority", `
def hint_a(cluster): return cluster.inflight
def hint_b(req): return req.age_ms / 3
def priority(req, tenant): return req.priority - req.input_tokens / 100 + pow(tenant.rate, 1.5)`,
		Spec{Priority: "req.priority - req.input_tokens / 100 + pow(tenant.rate, 1.5)",
			Hints: map[string]string{"a": "cluster.inflight", "b": "req.age_ms / 3"}}},
	{"routing", `
def filter(replica): return replica.kv_util < 0.9
def score(replica): return replica.prefix_match - 0.1 * replica.queue_depth`,
		Spec{Filter: "replica.kv_util < 0.9", Score: "replica.prefix_match - 0.1 * replica.queue_depth"}},
	{"routing", `
def score(req, replica, state):
    penalty = 0
    if replica.index == state.last:
        penalty += 2
    fresh = 1 / (1 + replica.age_ms.queue_depth)
    return replica.prefix_match * req.input_tokens - penalty * replica.inflight + fresh`,
		Spec{Score: "replica.prefix_match * req.input_tokens" +
			" - (replica.index == state.last ? 2 : 0) * replica.inflight + 1 / (1 + replica.age_ms.queue_depth)",
			State: lastReplica}},
	{"routing", "def score(replica): return replica.kv_util / (replica.inflight - replica.inflight)", // fails
		Spec{Score: "replica.kv_util / (replica.inflight - replica.inflight)"}},
	{"scheduler", "def order(req): return req.input_tokens - req.priority * max(req.turn, 1.5)",
		Spec{Order: "req.input_tokens - req.priority * max(req.turn, 1.5)"}},
	{"preemption", "def victim(req, seq): return seq.blocks - req.priority * 3",
		Spec{Victim: "seq.blocks - req.priority * 3"}},
	{"autoscale", `
def desired(deployment):
    return deployment.inflight / 3 + deployment.load_history[1] + deployment.attainment["a"]`,
		Spec{Desired: `deployment.inflight / 3 + deployment.load_history[1] + deployment.attainment["a"]`}},
}

var lastReplica = map[string]Variable{"last": {-1, "replica.index"}}

// TestStarlarkEqualsCEL: a program decides like the same expression, needs the same fields and counts the same.
func TestStarlarkEqualsCEL(t *testing.T) {
	for _, e := range equivalents {
		e.cel.Type = "expression"
		program := Spec{Type: "starlark", Program: e.starlark, State: e.cel.State}
		a, b := mustPlane(t, e.stage, e.cel), mustPlane(t, e.stage, program)
		if a.Needs() != b.Needs() {
			t.Errorf("%s: the expression needs %b, the program %b", e.starlark, a.Needs(), b.Needs())
		}
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 3000 {
			v, l := randomView(r, int64(i)*1000)
			x, y := a.decide(e.stage, v, l), b.decide(e.stage, v, l)
			x.Choice.Reason, y.Choice.Reason = "", "" // the text of the rule
			if x != y {
				t.Fatalf("%s: %+v, the expression decides %+v", e.starlark, y, x)
			}
		}
		for i, rule := range a.Rules() {
			got := b.Rules()[i]
			if got.Path != rule.Path || got.Evaluated != rule.Evaluated || got.Hits != rule.Hits ||
				got.Failed != rule.Failed || (got.Error != "") != (rule.Failed > 0 && rule.Path != "routing.filter") {
				t.Errorf("%s: rule %+v, the expression has %+v", e.starlark, got, rule)
			}
		}
	}
}

// TestStarlarkOverReplicas: programs loop over the candidates, at admission too.
func TestStarlarkOverReplicas(t *testing.T) {
	ranked := mustPlane(t, "routing", Spec{Type: "starlark", Program: `
def score(replica, replicas):
    shorter = 0
    for r in replicas:
        if r.queue_depth < replica.queue_depth:
            shorter += 1
    return -shorter`, Params: map[string]any{"tie": "first"}})
	direct := mustPlane(t, "routing", Spec{Type: "expression", Score: "-replica.queue_depth",
		Params: map[string]any{"tie": "first"}})
	idle := mustPlane(t, "admission", Spec{Type: "starlark", Program: `
def admit(replicas):
    return any([r.queue_depth == 0 for r in replicas])`})
	shortest := mustPlane(t, "admission", Spec{Type: "expression", Admit: "best.queue_depth == 0"})
	if !ranked.Needs().Has(FieldQueueDepth) || !idle.Needs().Has(FieldQueueDepth) {
		t.Error("the queues of the list are not needed")
	}
	r := rand.New(rand.NewPCG(2, 1))
	for i := range 2000 {
		v, l := randomView(r, int64(i)*1000)
		if x, y := ranked.decide("routing", v, l), direct.decide("routing", v, l); x.Candidate != y.Candidate {
			t.Fatalf("candidate %d, not %d", x.Candidate, y.Candidate)
		}
		if x, y := idle.decide("admission", v, l), shortest.decide("admission", v, l); x.Action != y.Action {
			t.Fatalf("%v, not %v", x.Action, y.Action)
		}
	}
}

// TestStarlarkErrors: wrong programs are errors of the bundle with the place in the program, and the first error of a
// run is kept.
func TestStarlarkErrors(t *testing.T) {
	for _, c := range []struct {
		stage, program, want string
	}{
		{"routing", "", "routing.program: must be given, such as def score(req): return …"},
		{"routing", "def filter(replica): return True", "routing.program: defines no function score"},
		{"routing", "def score(replica):\n  return replica.queue",
			`routing.program:2:18: unknown field of replica "queue"`},
		{"routing", "def score(replica):\n  return rand()", `routing.program:2:10: unknown name "rand"`},
		{"admission", "def admit(req):\n  return 'reject' if req.turn > 1 else 'admt'",
			`admission.program:2:40: unknown verdict "admt"; did you mean "admit"?`},
		{"admission", "def admit(req): return req.model == 'x'",
			`admission.program:1:37: unknown model of this cluster "x"`},
		{"admission", "def admit(replica): return True",
			`unknown parameter of admit "replica"; did you mean "replicas"?`},
		{"priority", "def hint_a(req): return 1", "priority.program: defines no function priority"},
		{"scheduler", "def order(req, replicas): return 1", `unknown parameter of order "replicas"`},
		{"scheduler", "def order(req, state): return 1", `unknown parameter of order "state"`},
		{"autoscale", "def desired(deployment): return deployment.attainment", ""},
	} {
		_, err := planeWith(c.stage, Spec{Type: "starlark", Program: c.program})
		if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, not %s", c.program, err, c.want)
		}
	}
	p := mustPlane(t, "admission", Spec{Type: "starlark",
		Program: "def admit(req):\n  return [1][1] > 0"})
	v, l := randomView(rand.New(rand.NewPCG(1, 1)), 0)
	for range 3 {
		if d := p.decide("admission", v, l); d.Action != Admit {
			t.Errorf("a program that fails does not admit: %+v", d)
		}
	}
	if r := p.Rules()[0]; r.Failed != 3 || r.Evaluated != 3 || r.Error !=
		"program:2:13: list index 1 out of range [-1:0]" {
		t.Errorf("the rule is %+v", r)
	}
}
