package strictyaml

import (
	"fmt"
	"strings"
	"testing"
)

// keys returns n keys that begin with indent and end with end.
func keys(n int, indent, end string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sk%d: %d%s\n", indent, i, i, end)
	}
	return b.String()
}

func TestLongMappingsMustBeInBraces(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
	}{
		{"as many as allowed", keys(maxBlockKeys, "", ""), 0},
		{"one more", keys(maxBlockKeys+1, "", ""), maxBlockKeys + 1},
		{"one more, nested", "a:\n" + keys(maxBlockKeys+1, "  ", ""), maxBlockKeys + 2},
		{"in braces", "a: {\n" + keys(4*maxBlockKeys, "  ", ",") + "}", 0},
		{"two mappings", "a:\n" + keys(maxBlockKeys, "  ", "") + "b:\n" + keys(maxBlockKeys, "  ", ""), 0},
		{"a list", strings.Repeat("- {a: 1}\n", 2*maxBlockKeys), 0},
		{"a list of mappings", strings.Repeat("- a: 1\n  b: 1\n", maxBlockKeys/2), 0},
	} {
		if line := longMapping(c.text); line != c.line {
			t.Errorf("%s: line %d, want %d", c.name, line, c.line)
		}
	}
	if _, err := Parse("a.yaml", []byte(keys(maxBlockKeys+1, "", ""))); err == nil ||
		err.Error() != "a.yaml:10001: a mapping of more than 10000 keys must be in braces, as in JSON" {
		t.Error(err)
	}
}
