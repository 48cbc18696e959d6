package script

import (
	"strings"
	"testing"
)

// TestAttacks: programs that would take all time or memory fail soon, with the limit and the place in the message.
func TestAttacks(t *testing.T) {
	const steps = "more than 100000 steps, the limit of a call"
	for name, c := range map[string]struct{ src, want string }{
		"long loop": {"def f():\n  n = 0\n  for i in range(10000000000): n += 1\n  return n", steps},
		"nested loops": {
			"def f():\n  n = 0\n  for i in range(100000):\n    for j in range(100000): n += 1\n" +
				"  return n",
			steps,
		},
		"growing list": {
			"def f():\n  x = [1]\n  for i in x: x.append(i)\n  return len(x)",
			"append: cannot append to list during iteration",
		},
		"recursion": {"def h(n): return h(n + 1)\ndef f(): return h(0)", "function h called recursively"},
		"mutual recursion": {
			"def a(n): return b(n)\ndef b(n): return a(n)\ndef f(): return a(0)",
			"function a called recursively",
		},
		"recursive lambda": {"def f():\n  y = lambda g: g(g)\n  return y(y)", "function lambda called recursively"},
		"string doubling": {
			"def f(req):\n  s = req.tenant\n  for i in range(60): s = s + s\n  return 1",
			"3:29: a string has 16384 elements, at most 10000 are allowed",
		},
		"string doubling 2": {
			"def f():\n  s = \"ab\"\n  for i in range(60): s += s\n  return 1",
			"this must be a number, is of type string",
		},
		"string times": {
			"def f():\n  return 1 if \"ab\" * 1000000000 else 2",
			"2:20: a string of 2 elements times 1000000000 has more than 10000 elements",
		},
		"string format": {
			"def f():\n  s = \"%s%s\"\n  for i in range(60): s = s % (s, s)\n  return 1",
			"this must be a number, is of type string",
		},
		"list of lists": {
			"def f():\n  x = [{1: 2}.items()]\n  return 1",
			"lists, tuples and dicts hold numbers, strings, True, False, None and objects",
		},
		"list doubling": {
			"def f():\n  x = [1]\n  for i in range(60): x = x + x\n  return 1",
			"a list has 16384 elements",
		},
		"list doubling 2": {
			"def f():\n  x = [1]\n  for i in range(60): x += x\n  return 1",
			"this must be a number, is of type list",
		},
		"list times": {
			"def f():\n  x = [0] * 100000000\n  return 1",
			"has more than 10000 elements, the limit",
		},
		"list in place": {
			"def f():\n  x = [0]\n  x *= 100000000\n  return 1",
			"has more than 10000 elements, the limit",
		},
		"list of range": {
			"def f(): return len(list(range(1000000000)))",
			"a range has 1000000000 elements, at most 10000 are allowed",
		},
		"sorted range": {"def f(): return len(sorted(range(1000000000)))", "a range has 1000000000 elements"},
		"sum of range": {"def f(): return sum(range(1000000000))", "a range has 1000000000 elements"},
		"nested lists": {
			"def f():\n  x = []\n  for i in range(60): x = [x, x]\n  return 1 if x == x else 2",
			"lists, tuples and dicts hold numbers, strings, True, False, None and objects; this is of " +
				"type list",
		},
		"nested tuples": {
			"def f():\n  x = ()\n  for i in range(60): x = (x, x)\n  return {x: 1}[x]",
			"this is of type tuple",
		},
		"nested dicts": {
			"def f():\n  x = {}\n  for i in range(60): x = {1: x, 2: x}\n  return 1",
			"this is of type dict",
		},
		"nested by append": {
			"def f():\n  x = []\n  for i in range(60):\n    y = []\n    y.append(x)\n    x = y\n" +
				"  return 1",
			"this is of type list",
		},
		"nested by index": {"def f():\n  x = [1]\n  x[0] = x\n  return 1", "this is of type list"},
		"nested by zip": {
			"def f():\n  x = [1]\n  for i in range(60): x = zip(x, x)\n  return 1",
			"zip takes no lists of tuples",
		},
		"nested by items":    {"def f():\n  x = {}\n  x.setdefault(1, [])\n  return 1", "this is of type list"},
		"nested by default":  {"def h(x=[[1]]): return x\ndef f(): return 1", "load: this is of type list"},
		"functions in lists": {"def f():\n  x = [f]\n  return x[0]()", "this is of type function"},
		"method as field": {
			"def f():\n  x = [1]\n  e = x.extend\n  for i in range(60): e(x)\n  return len(x)",
			"a list has no such field",
		},
		"squares": {
			"def f():\n  x = 3\n  for i in range(60): x = x * x\n  return x",
			"is not within the 64 bits of an integer",
		},
		"squares in place": {
			"def f():\n  x = 3\n  for i in range(60): x *= x\n  return x",
			"is not within the 64 bits of an integer",
		},
		"search": {
			"def f():\n  x = list(range(9999))\n  for i in range(1000):\n" +
				"    if -1 in x: return 1\n  return 0",
			steps,
		},
		"comparison": {
			"def f():\n  x = list(range(9999))\n  y = list(range(9999))\n  for i in range(1000):\n" +
				"    if x != y: return 1\n  return 0",
			steps,
		},
		"slices": {
			"def f():\n  x = list(range(9999))\n  for i in range(1000): y = x[1:]\n  return 0",
			steps,
		},
		"dict copies": {
			"def f():\n  x = {i: i for i in range(5000)}\n  for i in range(1000): y = x.items()\n" +
				"  return 0",
			steps,
		},
		"sorting": {"def f():\n  x = list(range(9999))\n  return len(sorted(x))", steps},
		"long list": {
			"def f():\n  x = [0] * 9999\n  for i in range(20): x.append(1)\n  return 0",
			"a list has 10001 elements, at most 10000 are allowed",
		},
		"load time": {"x = [i for i in range(100000000)]\ndef f(): return 1", "load: " + steps},
		"state": {
			"x = []\ndef f():\n  x.append(1)\n  return len(x)",
			"append: cannot append to frozen list",
		},
		"state of defaults": {"def h(x=[]):\n  return 1\ndef f(): return h()", "load: this is of type list"},
		"objects compared": {
			"def f(replicas): return 1 if replicas[0] == replicas[1] else 0",
			"replica cannot be compared as a whole",
		},
		"division by zero": {"def f(): return 1 / 0", "1:19: floating-point division by zero"},
		"missing key":      {"def f():\n  return {}[\"a\"]", "2:12: key \"a\" not in dict"},
		"index":            {"def f(replicas): return replicas[99].index", "1:33: replicas index 99 out of range"},
		"too deep": {"def f(): return " + strings.Repeat("(", 7000) + "1" + strings.Repeat(")", 7000),
			"load: excessive nesting"},
		"long sum": {"def f(): return " + strings.Repeat("1+", 7000) + "1", "result"},
	} {
		all, err := Compile(c.src, fleetScope, hooks)
		if want, ok := strings.CutPrefix(c.want, "load: "); ok {
			c.want = want
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		} else {
			_, err = all["f"].Number(testFleet())
			if c.want == "result" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			again, _ := Compile("def f(): return 1", fleetScope, hooks)
			if x, err := again["f"].Number(testFleet()); x != 1 || err != nil {
				t.Errorf("%s: another program fails then: %v", name, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %s", name, err, c.want)
		}
	}
}

// TestCallAfterFailure: a function that exceeds the limit can be called again, as can a clone.
func TestCallAfterFailure(t *testing.T) {
	const count = "def f(req):\n  n = 0\n  for i in range(int(req.tokens)): n += 1\n  return n"
	all, err := Compile(count, fleetScope, hooks)
	if err != nil {
		t.Fatal(err)
	}
	f := all["f"]
	if _, err := f.Number(&fleet{tokens: 1e9}); err == nil {
		t.Error("no limit")
	}
	for _, g := range []*Function[fleet]{f, f.Clone()} {
		if x, err := g.Number(&fleet{tokens: 5}); err != nil || x != 5 {
			t.Errorf("%v %v", x, err)
		}
	}
}
