package policy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPluginList compares the plugins of llm-d-router with those simulated, and counts them.
func TestPluginList(t *testing.T) {
	text, err := os.ReadFile("llm-d-router-0.10.0.tsv")
	if err != nil {
		t.Fatal(err)
	}
	where := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) < 3 || fields[2] != "profile" && len(fields) != 4 {
			t.Fatalf("%q has no place or no reason", line)
		}
		where[fields[2]] = append(where[fields[2]], fields[0])
	}
	have := llmdPlugins().Names()
	slices.Sort(have)
	if !slices.Equal(have, where["profile"]) {
		t.Errorf("profiles have the plugins\n%v, the list has\n%v", have, where["profile"])
	}
	known := slices.Concat(FlowOrders, Fairnesses, usageLimits.Names())
	for _, name := range where["flow_control"] {
		if !slices.Contains(known, name) {
			t.Errorf("flow control has no %s", name)
		}
	}
	for _, name := range where["admission"] {
		if !slices.Contains(admissions().Names(), name) {
			t.Errorf("admission has no policy %s", name)
		}
	}
	for place, want := range map[string]int{"profile": 22, "implied": 8, "admission": 1, "flow_control": 8,
		"not simulated": 56} {
		if n := len(where[place]); n != want {
			t.Errorf("%s: %d plugins, want %d", place, n, want)
		}
		delete(where, place)
	}
	if len(where) > 0 {
		t.Errorf("unknown places: %v", where)
	}
}
