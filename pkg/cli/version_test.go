package cli

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionNamesRevisionAndDate(t *testing.T) {
	for _, c := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"clone", &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc123"},
			{Key: "vcs.time", Value: "2026-11-22T10:00:00Z"}, {Key: "vcs.modified", Value: "true"}}},
			"abc123 of 2026-11-22, modified"},
		{"module", &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		{"archive", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "unknown: built without version control"},
		{"no build information", nil, "unknown: built without version control"},
	} {
		var out strings.Builder
		if err := writeVersion(&out, "blis-sim", c.info); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(out.String(), "\n"); lines[1] != "revision "+c.want {
			t.Errorf("%s: %q, want %q", c.name, lines[1], c.want)
		}
	}
}
