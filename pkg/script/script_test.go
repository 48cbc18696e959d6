package script

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/expr"
)

// fleet is what the programs of the tests read.
type fleet struct {
	tokens   float64
	tenant   string
	replicas []replica
}

type replica struct {
	index  int
	queue  float64
	ready  bool
	parent *fleet
}

var fleetScope = &Scope[fleet]{
	Fields: []expr.Field[fleet]{
		{Name: "req.tokens", Type: expr.Number, Number: func(f *fleet) float64 { return f.tokens }},
		{Name: "req.tenant", Type: expr.Text, Text: func(f *fleet) string { return f.tenant }},
		{Name: "req.age_ms.queue", Type: expr.Number, Number: func(*fleet) float64 { return 7 }},
		{Name: "state.extend", Type: expr.Number, Number: func(*fleet) float64 { return 2 }},
		{Name: "demand.history", Type: expr.Number, ByIndex: func(_ *fleet, i int) float64 { return float64(10 - i) }},
		{Name: "demand.share", Type: expr.Number,
			ByKey: func(_ *fleet, key string) float64 { return float64(len(key)) }},
	},
	Lists: []List[fleet]{NewList("replicas", "replica", []expr.Field[replica]{
		{Name: "replica.index", Type: expr.Number, Number: func(r *replica) float64 { return float64(r.index) }},
		{Name: "replica.queue", Type: expr.Number, Number: func(r *replica) float64 { return r.queue }},
		{Name: "replica.ready", Type: expr.Flag, Flag: func(r *replica) bool { return r.ready }},
	}, func(f *fleet) int { return len(f.replicas) }, func(f *fleet, i int) replica { return f.replicas[i] })},
}

var hooks = []Hook{{Name: "f", Want: []expr.Type{expr.Number}}, {Name: "g", Want: []expr.Type{expr.Flag, expr.Text}}}

func testFleet() *fleet {
	f := &fleet{tokens: 100, tenant: "a"}
	for i := range 5 {
		f.replicas = append(f.replicas, replica{index: i, queue: float64((i * 3) % 5), ready: i != 2, parent: f})
	}
	return f
}

// TestResults: programs with loops, lists, dicts and functions have the results that Starlark defines.
func TestResults(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		want float64
	}{
		"arithmetic": {"def f(req):\n  return req.tokens * 2 + 1 - 7 // 2 + 7 % 4 - 3 / 2", 199.5},
		"loop":       {"def f(replicas):\n  n = 0\n  for r in replicas:\n    n += r.queue\n  return n", 10},
		"if in loop": {
			"def f(replicas):\n  n = 0\n  for r in replicas:\n    if r.ready and r.queue > 1:\n" +
				"      n += 1\n  return n",
			3,
		},
		"break": {
			"def f(replicas):\n  for r in replicas:\n    if r.queue > 2: return r.index\n" +
				"  return -1",
			1,
		},
		"comprehension": {"def f(replicas): return sum([r.queue * 2 for r in replicas if r.ready])", 18},
		"sorted by key": {"def f(replicas): return sorted(replicas, key=lambda r: -r.queue)[1].index", 1},
		"sorted tuples": {"def f(): return sorted(zip([3, 1, 2], [7, 8, 9]))[0][1]", 8},
		"slice":         {"def f(replicas): return sum([r.index for r in list(replicas)[1:3]])", 3},
		"dict":          {"def f(req): return {\"a\": 3, \"b\": 4}[req.tenant] * 10 + {}.get(req.tenant, 1)", 31},
		"insertion": {
			"def f():\n  d = {}\n  for k in [\"z\", \"a\", \"m\"]:\n    d[k] = len(d)\n  n = 0\n" +
				"  for k, v in d.items():\n    n = n * 10 + v\n  return n",
			12,
		},
		"function": {
			"LIMIT = 3\ndef over(x, by=1): return max(x - LIMIT, 0) + by\ndef f(replicas):\n" +
				"  return sum([over(r.queue) for r in replicas])",
			6,
		},
		"enumerate": {
			"def f(replicas):\n  n = 0\n  for i, r in enumerate(replicas):\n    n += i * r.queue\n" +
				"  return n",
			0*0 + 1*3 + 2*1 + 3*4 + 4*2,
		},
		"min of objects": {"def f(replicas): return min(replicas, key=lambda r: (r.queue, r.index)).index", 0},
		"strings": {
			"def f(req): return 1 if req.tenant + \"b\" == \"ab\" and req.tenant.startswith(\"a\") else 2",
			1,
		},
		"history":      {"def f(demand): return demand.history[0] + demand.history[3] + demand.share[\"abc\"]", 20},
		"inner object": {"def f(req): return req.age_ms.queue", 7},
		"functions": {
			"def f(): return clamp(abs(-5), 1, 3) + sqrt(16) + pow(2, 3) + ema(1, 3, 0.5) + int(2.7)",
			3 + 4 + 8 + 2 + 2,
		},
		"big step": {"def f():\n  x = 3000000000\n  return x * 3", 9e9},
		"list of one": {
			"def f():\n  x = [1, 2] + [3]\n  y = [0] * 3\n  x.append(5)\n  x[0] = 9\n  x[1] += 1\n" +
				"  return len(x) * 1000 + sum(x) + len(y)",
			4023,
		},
		"in":            {"def f(): return 1 if 2 in [1, 2] and 3 not in {1: 2} and \"b\" in \"abc\" else 0", 1},
		"unpack":        {"def f():\n  a, b = 1, 2\n  a, b = b, a\n  return a * 10 + b", 21},
		"integers":      {"def f():\n  n = 1\n  for i in range(5): n *= 2\n  return n", 32},
		"lists equal":   {"def f(): return 1 if [1, 2] == list(range(1, 3)) else 0", 1},
		"loop of range": {"def f():\n  n = 0\n  for i in range(0, 10, 3): n += i\n  return n", 18},
		"product of parameters": {
			"def h(x, y): return x * y\ndef f(req): return h(req.tokens, 2.5) + h(2, req.tokens)",
			450,
		},
		"empty list times": {"def f():\n  x = [] * 3\n  return len(x)", 0},
		"infinite":         {"def f(): return float(\"inf\")", math.Inf(1)},
	} {
		all, err := Compile(c.src, fleetScope, hooks)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for range 2 { // the second call has no state of the first one
			got, err := all["f"].Number(testFleet())
			if err != nil || got != c.want {
				t.Errorf("%s: %v %v, not %v", name, got, err, c.want)
			}
		}
	}
}

// TestMissing: what is compared with a missing number is missing, whichever comes first.
func TestMissing(t *testing.T) {
	for _, call := range []string{"min(1, nan)", "min(nan, 1)", "max(1, nan)", "max(nan, 1)"} {
		all, err := Compile("nan = float(\"nan\")\ndef f(): return "+call, fleetScope, hooks)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := all["f"].Number(testFleet()); err != nil || !math.IsNaN(got) {
			t.Errorf("%s: %v %v", call, got, err)
		}
	}
}

// TestTextFieldsAreLimited: a field is a text where it is one, also if all others are numbers.
func TestTextFieldsAreLimited(t *testing.T) {
	scope := &Scope[fleet]{Fields: fleetScope.Fields[:2]} // req.tokens and req.tenant
	all, err := Compile("def f(req):\n  s = req.tenant\n  for i in range(14): s = s + s\n  return 1", scope, hooks)
	if err != nil {
		t.Fatal(err)
	}
	const want = "a string has 16384 elements, at most 10000 are allowed"
	if _, err := all["f"].Number(testFleet()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, not %s", err, want)
	}
}

// TestFlagsAndTexts: a function whose result is a flag or a text.
func TestFlagsAndTexts(t *testing.T) {
	for src, want := range map[string]string{
		"def g(req): return req.tokens > 10":                                "true  false <nil>",
		"def g(req):\n  return \"delay\" if req.tokens > 10 else \"admit\"": "false delay true <nil>",
		"def g(req): return 3": "false  false 1:1: g returned a value of type int; " +
			"it must be True or False or a string",
		"def g(req):\n  if req.tokens < 10:\n    return True": "false  false 1:1: " +
			"g returned a value of type NoneType; it must be True or False or a string",
	} {
		all, err := Compile(src, fleetScope, hooks)
		if err != nil {
			t.Fatal(err)
		}
		yes, text, isText, err := all["g"].FlagOrText(testFleet())
		if got := fmt.Sprint(yes, " ", text, " ", isText, " ", err); got != want {
			t.Errorf("%q: %s", src, got)
		}
	}
}

// TestErrors: wrong programs have an error that says where and what is allowed.
func TestErrors(t *testing.T) {
	for src, want := range map[string]string{
		"def f(req)\n  return 1":                     "2:1: got newline, want ':'",
		"load(\"x.star\", \"y\")\ndef f(): return 1": "1:1: load is not available",
		"def f():\n  while True: pass":               "2:3: while is not available in policies; use for",
		"def f():\n  print(1)":                       "2:3: print is not available in policies (have abs, all",
		"def f(): return getattr(1, \"x\")":          "1:17: getattr is not available",
		"def f(): return hash(\"x\")":                "1:17: hash is not available",
		"def f(): return time.now()":                 "1:17: unknown name \"time\"",
		"def f(): return rand()":                     "1:17: unknown name \"rand\"",
		"def f(request): return 1": "1:7: unknown parameter of f \"request\" " +
			"(have req, state, demand, replicas)",
		"def f(req=1): return 1": "1:7: the parameters of f are names without defaults",
		"def h(x): return 1": "1:1: the program defines no function that is called " +
			"here (have f, g)",
		"def f(req): return req.token": "1:24: unknown field of req \"token\"; did you mean " +
			"\"tokens\"? (have age_ms.queue, " +
			"tenant, tokens)",
		"def f(replicas):\n  return [r.quue for r in replicas][0]": "2:13: unknown field \"quue\"; did " +
			"you mean \"queue\"?",
		"def f(req): return req.age_ms": "1:24: " +
			"\"age_ms\" is only part of a name (have age_ms.queue)",
		"def f(req): return req.tokens()":           "1:24: tokens is a field and cannot be called",
		"def f(req):\n  x = [1]\n  return x.append": "3:12: append is a method, which must be called",
		"def f(req):\n  req.tokens = 1":             "2:6: fields cannot be changed",
		"def f(): return 1 << 3":                    "1:19: << is not available",
		"def f():\n  max = 3\n  return max": "2:3: " +
			"max is a function of programs; choose another name",
		"def h(max): return max\ndef f(): return h(1)":     "1:7: max is a function of programs",
		"def h(x, max=1): return x\ndef f(): return h(1)":  "1:10: max is a function of programs",
		"def f():\n  (max, x) = 1, 2\n  return x":          "2:4: max is a function of programs",
		"def f():\n  for (max) in [1]: pass\n  return max": "2:8: max is a function of programs",
		"def f():\n  x = {}\n  x[1] *= 2": "3:8: " +
			"*= is not available here; write x[i] = x[i] * …",
		"def f(): return h(*[1])\ndef h(x): return x":           "1:19: * and ** are not available",
		"def f(): return b\"x\"":                                "1:17: bytes are not available",
		"x = [1] + 3\ndef f(): return 1":                        "1:9: unknown binary op: list + int",
		"x = 123456789012345678901234567890\ndef f(): return x": "1:5: an integer has at most 64 bits",
		"for i in range(3): pass\ndef f(): return 1":            "1:1: for loop not within a function",
		"# " + strings.Repeat("x", maxSource) + "\ndef f(): return 1": "the " +
			"program has 16404 bytes, at most 16384 are allowed",
	} {
		_, err := Compile(src, fleetScope, hooks)
		if _, ok := errors.AsType[*expr.Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, not %s", src, err, want)
		}
	}
}

// TestUses: the fields that a program reads are those of its parameters, and all fields with the name of other objects.
func TestUses(t *testing.T) {
	for src, want := range map[string]string{
		"def f(req): return req.tokens":                                            "[req.tokens]",
		"def f(replicas): return replicas[0].queue":                                "[replica.queue]",
		"def h(x): return x.age_ms.queue\ndef f(req): return h(req)":               "[req.age_ms.queue]",
		"def f(req, demand):\n  return demand.history[1] + demand.share[\"b\"]":    "[demand.history demand.share]",
		"def f(req):\n  req = 3\n  return 1":                                       "[]",
		"def f(req):\n  if req.tenant == \"x\" or req.tenant in [\"y\"]: return 1": "[req.tenant]",
	} {
		all, err := Compile(src, fleetScope, hooks)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(all["f"].Uses()); got != want {
			t.Errorf("%q uses %s", src, got)
		}
		compared := fmt.Sprint(all["f"].ComparedLiterals("req.tenant"))
		if strings.Contains(src, "tenant") && compared != "[{x 2 20} {y 2 42}]" {
			t.Errorf("compared: %v", compared)
		}
	}
}
