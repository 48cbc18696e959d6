// Package pkg_test holds the test of what may import what.
package pkg_test

import (
	"errors"
	"go/build"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "blis"

// layers says which packages of this module each package may import: the ones
// above in this list that it names. Tests may also import testOnly packages.
var layers = []struct{ pkg, may string }{
	{"schemas", ""},
	{"hardware", ""},
	{"pkg/named", ""},
	{"pkg/stat", ""},
	{"pkg/des", ""},
	{"pkg/kv", ""},
	{"pkg/model", "pkg/named"},
	{"pkg/config", "pkg/named"},
	{"pkg/expr", "pkg/named"},
	{"pkg/dist", "pkg/des pkg/named"},
	{"pkg/anomaly", "pkg/named"},
	{"pkg/latency", "pkg/des pkg/model pkg/named"},
	{"pkg/catalog", "hardware pkg/config pkg/latency pkg/named"},
	{"pkg/record", "schemas pkg/anomaly pkg/named"},
	{"pkg/filter", "pkg/expr pkg/record"},
	{"pkg/table", "pkg/record"},
	{"pkg/metrics", "pkg/record pkg/stat"},
	{"pkg/insight", "pkg/metrics pkg/named pkg/record"},
	// The two planes of the simulator, and a plain engine that tests compare the data plane with.
	{"pkg/engine", "pkg/des pkg/kv pkg/latency"},
	{"pkg/policy", "pkg/expr pkg/kv pkg/named"},
	{"pkg/reference", ""},
	{"pkg/capacity", "pkg/model"},
	{"pkg/cluster", "pkg/capacity pkg/catalog pkg/config pkg/kv pkg/latency pkg/model pkg/named pkg/policy"},
	{"pkg/workload", "pkg/record pkg/stat"},
	{"pkg/source", "pkg/record"},
	{"pkg/recording", "pkg/named pkg/record pkg/source"},
	{"pkg/load", "pkg/cluster pkg/kv pkg/latency"},
	{"pkg/fitness", "pkg/anomaly pkg/config pkg/expr pkg/metrics pkg/named pkg/record"},
	// The tools.
	{"pkg/trace", "pkg/dist pkg/named pkg/record pkg/recording pkg/source"},
	{"pkg/gen", "pkg/config pkg/des pkg/dist pkg/filter pkg/named pkg/record pkg/trace"},
	{"pkg/sim", "pkg/anomaly pkg/catalog pkg/cluster pkg/config pkg/des pkg/dist pkg/engine pkg/kv pkg/latency pkg/load pkg/metrics pkg/model pkg/named pkg/policy pkg/record pkg/stat pkg/table"},
	{"pkg/diff", "pkg/dist pkg/expr pkg/filter pkg/metrics pkg/named pkg/record pkg/recording pkg/source pkg/stat"},
	{"pkg/feedback", "pkg/fitness pkg/insight pkg/metrics pkg/named pkg/record"},
	{"pkg/summarize", "pkg/cluster pkg/config pkg/dist pkg/feedback pkg/filter pkg/fitness pkg/insight pkg/load pkg/metrics pkg/named pkg/record pkg/stat pkg/workload"},
	{"pkg/calibrate", "pkg/catalog pkg/cluster pkg/config pkg/des pkg/dist pkg/latency pkg/model pkg/record pkg/recording pkg/sim pkg/source pkg/stat"},
	{"pkg/cli", "pkg/calibrate pkg/config pkg/diff pkg/feedback pkg/gen pkg/insight pkg/record pkg/recording pkg/sim pkg/summarize pkg/table"},
	{"cmd/blis-gen", "pkg/cli"},
	{"cmd/blis-sim", "pkg/cli"},
	{"cmd/blis-summarize", "pkg/cli"},
	{"cmd/blis-diff", "pkg/cli"},
	{"cmd/blis-calibrate", "pkg/cli"},
	{"pkg", ""},
}

// testOnly packages and modules are imported by tests, of any package, and by
// nothing else.
var testOnly = []string{
	"blis/pkg/reference",
	"github.com/cockroachdb/datadriven",
	"github.com/google/go-cmp",
	"github.com/google/jsonschema-go",
	"github.com/rogpeppe/go-internal",
	"pgregory.net/rapid",
}

// testsMay says what the tests of a package may import beyond what it may
// itself: the schemas are held to the types of records and files.
var testsMay = map[string][]string{
	"pkg/cli":       {"pkg/metrics", "pkg/workload"},
	"pkg/gen":       {"pkg/workload"},
	"pkg/latency":   {"pkg/catalog", "pkg/record"},
	"pkg/summarize": {"schemas"},
	"schemas":       {"pkg/catalog", "pkg/cluster", "pkg/diff", "pkg/dist", "pkg/fitness", "pkg/gen", "pkg/metrics", "pkg/policy", "pkg/record", "pkg/summarize"},
}

// owners says which one package may import each module of others.
var owners = map[string]string{
	"github.com/alecthomas/kong":    "pkg/cli",
	"github.com/goccy/go-yaml":      "pkg/config",
	"github.com/google/cel-go":      "pkg/expr",
	"github.com/klauspost/compress": "pkg/record",
	"github.com/parquet-go":         "pkg/table",
	"golang.org/x/term":             "pkg/cli",
	"gonum.org/v1/gonum/mat":        "pkg/calibrate",
	"gonum.org/v1/gonum/stat":       "pkg/dist",
}

// pure packages decide and compute: they know no clock, no process, no
// randomness of their own and no concurrency.
var pure = []string{"pkg/des", "pkg/kv", "pkg/latency", "pkg/engine", "pkg/policy", "pkg/anomaly"}

var impure = []string{"time", "os", "log", "math/rand", "math/rand/v2", "sync"}

// packages parses the imports of all packages of the module. It does so itself,
// and not by the go command, so that a cached result of this test is forgotten
// when a file changes.
func packages(t *testing.T) map[string]*build.Package {
	t.Helper()
	found := map[string]*build.Package{}
	err := filepath.WalkDir("..", func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || name != ".." && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		var none *build.NoGoError
		p, err := build.ImportDir(dir, 0)
		if errors.As(err, &none) {
			return nil
		}
		found[filepath.ToSlash(strings.TrimPrefix(dir, ".."+string(filepath.Separator)))] = p
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestArrowsPointDown(t *testing.T) {
	above := map[string]bool{}
	may := map[string][]string{}
	for _, l := range layers {
		may[l.pkg] = strings.Fields(l.may)
		for _, to := range may[l.pkg] {
			if !above[to] {
				t.Errorf("%s may import %s, which does not stand above it in the list", l.pkg, to)
			}
		}
		above[l.pkg] = true
	}
	for name, p := range packages(t) {
		allowed, known := may[name]
		if !known {
			t.Errorf("%s is not listed: give it a line in layers", name)
			continue
		}
		for _, path := range p.Imports {
			if complaint := wrongImport(name, path, allowed); complaint != "" {
				t.Errorf("%s imports %s: %s", name, path, complaint)
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if complaint := wrongTestImport(name, path, slices.Concat(allowed, testsMay[name])); complaint != "" {
				t.Errorf("a test of %s imports %s: %s", name, path, complaint)
			}
		}
	}
}

// wrongImport says what is wrong with an import, or "".
func wrongImport(pkg, path string, allowed []string) string {
	if slices.ContainsFunc(testOnly, func(m string) bool { return within(path, m) }) {
		return "that is for tests"
	}
	if slices.Contains(pure, pkg) && slices.Contains(impure, path) {
		return "forbidden in the planes of the simulator"
	}
	if own, ok := strings.CutPrefix(path, module+"/"); ok {
		if !slices.Contains(allowed, own) {
			return "layers does not allow it"
		}
		return ""
	}
	if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") {
		return "" // the standard library
	}
	for m, owner := range owners {
		if within(path, m) {
			if pkg != owner {
				return "only " + owner + " may"
			}
			return ""
		}
	}
	return "no package owns that module: give it a line in owners"
}

// wrongTestImport is wrongImport for tests: they may also import the package
// under test, what is for tests, and what the standard library has.
func wrongTestImport(pkg, path string, allowed []string) string {
	if path == module+"/"+pkg || !strings.Contains(path, ".") && !strings.HasPrefix(path, module+"/") {
		return ""
	}
	if slices.ContainsFunc(testOnly, func(m string) bool { return within(path, m) }) {
		return ""
	}
	return wrongImport(pkg, path, allowed)
}

// within reports whether path is the module or package m, or inside it.
func within(path, m string) bool {
	return path == m || strings.HasPrefix(path, m+"/")
}

// The rules that matter most are asked directly, so that a slip in the list
// above does not switch them off.
func TestPlanesDoNotMeet(t *testing.T) {
	for _, l := range layers {
		fields := strings.Fields(l.may)
		for _, never := range map[string][]string{
			"pkg/engine":    {"pkg/policy", "pkg/record", "pkg/sim"},
			"pkg/policy":    {"pkg/engine", "pkg/record", "pkg/sim"},
			"pkg/reference": {"pkg/engine", "pkg/kv", "pkg/latency", "pkg/des"},
		}[l.pkg] {
			if slices.Contains(fields, never) {
				t.Errorf("layers lets %s import %s", l.pkg, never)
			}
		}
	}
	for _, bad := range []struct{ pkg, path string }{
		{"pkg/engine", "blis/pkg/policy"},
		{"pkg/policy", "time"},
		{"pkg/kv", "math/rand/v2"},
		{"pkg/engine", "blis/pkg/reference"},
		{"pkg/gen", "gonum.org/v1/gonum/stat/distuv"},
		{"pkg/sim", "pgregory.net/rapid"},
		{"pkg/sim", "example.com/new"},
	} {
		if wrongImport(bad.pkg, bad.path, nil) == "" {
			t.Errorf("%s may import %s", bad.pkg, bad.path)
		}
	}
}
