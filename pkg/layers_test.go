// Package pkg_test checks the structure and the words of the repository.
package pkg_test

import (
	"errors"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the path of this module, as go.mod names it.
var module = func() string {
	text, err := os.ReadFile("../go.mod")
	if err != nil {
		panic(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(line, "module ")
}()

// layers lists the packages of this module that each package may import. They must be
// above it in the list. Tests may also import testOnly packages.
var layers = []struct{ pkg, may string }{
	{"schemas", ""},
	{"hardware/operators", ""},
	{"pkg/limits", ""},
	{"pkg/portable", ""},
	{"pkg/registry", ""},
	{"pkg/stat", ""},
	{"pkg/spill", "pkg/stat"},
	{"pkg/texttab", ""},
	{"pkg/des", ""},
	{"pkg/kv", ""},
	{"pkg/link", "pkg/des"},
	{"pkg/tier", "pkg/kv"},
	{"pkg/model", "pkg/limits pkg/registry"},
	{"pkg/strictyaml", "pkg/limits pkg/registry"},
	{"pkg/expr", "pkg/portable pkg/registry"},
	{"pkg/script", "pkg/expr pkg/registry"},
	{"pkg/dist", "pkg/des pkg/portable pkg/registry"},
	{"pkg/scale", "pkg/dist pkg/portable pkg/registry"},
	{"pkg/anomaly", "pkg/registry"},
	{"pkg/latency", "pkg/des pkg/model pkg/portable pkg/registry"},
	{"pkg/hardware", "pkg/strictyaml pkg/latency pkg/registry"},
	{"pkg/stream", "schemas pkg/anomaly pkg/registry"},
	{"pkg/filter", "pkg/expr pkg/stream"},
	{"pkg/parquet", "pkg/stream"},
	{"pkg/operators", "hardware/operators pkg/latency pkg/model pkg/parquet pkg/portable pkg/registry"},
	{"pkg/metrics", "pkg/spill pkg/stream pkg/stat"},
	{"pkg/resample", "pkg/dist pkg/metrics pkg/stat pkg/stream"},
	{"pkg/perfetto", "pkg/stream"},
	{"pkg/chart", ""},
	{"pkg/figures", "pkg/chart pkg/registry pkg/resample pkg/stat pkg/stream"},
	{"pkg/htmlreport", "pkg/figures pkg/metrics pkg/resample pkg/stat pkg/stream"},
	{"pkg/llmtext", ""},
	{"pkg/attribution", "pkg/hardware pkg/llmtext pkg/metrics pkg/registry pkg/stat pkg/stream"},
	// The two planes of the simulator, and the reference simulator of the tests.
	{"pkg/engine", "pkg/des pkg/kv pkg/latency pkg/link pkg/portable pkg/tier"},
	{"pkg/policy", "pkg/expr pkg/kv pkg/portable pkg/registry pkg/scale pkg/script"},
	{"pkg/internal/codecgen", ""},
	{"pkg/internal/fixedseed", ""},
	{"pkg/internal/mutation", ""},
	{"pkg/internal/mutation/mutate", "pkg/internal/mutation"},
	{"pkg/internal/reference", "pkg/portable"},
	{"pkg/llmd", "pkg/policy pkg/strictyaml"},
	{"pkg/cluster", "pkg/hardware pkg/limits pkg/llmd pkg/strictyaml pkg/kv pkg/latency pkg/model pkg/operators " +
		"pkg/registry pkg/policy pkg/scale pkg/tier"},
	{"pkg/workloadstats", "pkg/stream pkg/stat"},
	{"pkg/textio", "pkg/limits pkg/stream"},
	{"pkg/recording", "pkg/limits pkg/registry pkg/stream pkg/strictyaml pkg/textio"},
	{"pkg/deploy", "pkg/cluster pkg/llmd pkg/policy pkg/registry"},
	{"pkg/capacity", "pkg/cluster pkg/kv pkg/latency"},
	{"pkg/fitness", "pkg/anomaly pkg/portable pkg/strictyaml pkg/expr pkg/metrics pkg/registry pkg/stat pkg/stream"},
	// The tools.
	{"pkg/trace", "pkg/dist pkg/limits pkg/registry pkg/stream pkg/recording pkg/textio"},
	{"pkg/gen", "pkg/strictyaml pkg/des pkg/dist pkg/filter pkg/limits pkg/portable pkg/registry pkg/stream pkg/trace"},
	{"pkg/sim", "pkg/anomaly pkg/hardware pkg/cluster pkg/deploy pkg/strictyaml pkg/des pkg/dist pkg/engine pkg/kv " +
		"pkg/latency pkg/link pkg/tier pkg/capacity pkg/metrics pkg/model pkg/portable pkg/registry pkg/policy " +
		"pkg/scale pkg/spill pkg/stream pkg/stat pkg/parquet"},
	{"pkg/sweep", "pkg/cluster pkg/fitness pkg/metrics pkg/sim pkg/stream pkg/strictyaml"},
	{"pkg/plan", "pkg/chart pkg/cluster pkg/fitness pkg/hardware pkg/metrics pkg/strictyaml pkg/sweep pkg/texttab"},
	{"pkg/diff", "pkg/dist pkg/expr pkg/filter pkg/metrics pkg/recording pkg/registry pkg/resample pkg/stat " +
		"pkg/stream pkg/textio pkg/texttab"},
	{"pkg/report", "pkg/attribution pkg/fitness pkg/llmtext pkg/metrics pkg/registry pkg/stream pkg/texttab"},
	{"pkg/summarize", "pkg/attribution pkg/capacity pkg/cluster pkg/deploy pkg/dist pkg/filter pkg/fitness " +
		"pkg/figures pkg/metrics pkg/htmlreport pkg/perfetto pkg/registry pkg/report pkg/resample pkg/stat " +
		"pkg/stream pkg/strictyaml pkg/texttab pkg/workloadstats"},
	{"pkg/leastsq", "pkg/stat"},
	{"pkg/calibrate", "pkg/cluster pkg/des pkg/dist pkg/hardware pkg/latency pkg/leastsq pkg/model " +
		"pkg/recording pkg/registry pkg/sim pkg/stat pkg/stream pkg/strictyaml pkg/textio"},
	{"pkg/cli", "pkg/calibrate pkg/figures pkg/limits pkg/strictyaml pkg/deploy pkg/diff pkg/report pkg/gen " +
		"pkg/attribution pkg/stream pkg/recording pkg/plan pkg/sim pkg/summarize pkg/sweep pkg/parquet " +
		"pkg/metrics pkg/model pkg/hardware pkg/registry pkg/trace pkg/cluster pkg/textio"},
	{"cmd/blis-gen", "pkg/cli"},
	{"cmd/blis-sim", "pkg/cli"},
	{"cmd/blis-summarize", "pkg/cli"},
	{"cmd/blis-diff", "pkg/cli"},
	{"cmd/blis-calibrate", "pkg/cli"},
	{"pkg", ""},
}

// testOnly packages and modules may be imported by tests of any package and by nothing
// else but their owners.
var testOnly = []string{
	module + "/pkg/internal/fixedseed",
	module + "/pkg/internal/mutation",
	module + "/pkg/internal/reference",
	"github.com/cockroachdb/datadriven",
	"github.com/google/go-cmp",
	"github.com/google/jsonschema-go",
	"github.com/rogpeppe/go-internal",
	"pgregory.net/rapid",
}

// testsMay lists what the tests of a package may import in addition. The schemas are
// compared with the types of records and files.
var testsMay = map[string][]string{
	"pkg/calibrate": {"pkg/dist"},
	"pkg/cli":       {"pkg/stat", "pkg/workloadstats"},
	"pkg/diff":      {"pkg/dist"},
	"pkg/gen":       {"pkg/workloadstats"},
	"pkg/latency":   {"pkg/hardware", "pkg/operators", "pkg/stream"},
	"pkg/summarize": {"schemas"},
	"pkg/plan":      {"pkg/sim", "pkg/stream"},
	"schemas": {"pkg/hardware", "pkg/cluster", "pkg/diff", "pkg/dist", "pkg/fitness", "pkg/gen", "pkg/metrics",
		"pkg/plan", "pkg/policy", "pkg/scale", "pkg/stream", "pkg/summarize", "pkg/sweep"},
}

// owners names the packages, mostly one, that may import each third-party module.
var owners = map[string]string{
	"github.com/alecthomas/kong":    "pkg/cli",
	"github.com/goccy/go-yaml":      "pkg/strictyaml",
	"github.com/google/cel-go":      "pkg/expr",
	"github.com/guptarohit":         "pkg/chart",
	"github.com/klauspost/compress": "pkg/stream",
	"github.com/parquet-go":         "pkg/parquet",
	"go.starlark.net":               "pkg/script",
	"golang.org/x/term":             "pkg/cli",
	"gonum.org/v1/gonum/floats":     "pkg/leastsq",
	"gonum.org/v1/gonum/mat":        "pkg/leastsq",
	"gonum.org/v1/gonum/stat":       "pkg/dist pkg/leastsq",
	"gonum.org/v1/plot":             "pkg/chart",
	"pgregory.net/rapid":            "pkg/internal/fixedseed",
}

// pure packages only decide and compute. They use no clock, process, randomness of their
// own or concurrency.
var pure = []string{"pkg/portable", "pkg/des", "pkg/kv", "pkg/link", "pkg/tier", "pkg/latency", "pkg/engine",
	"pkg/policy", "pkg/anomaly"}

var impure = []string{"time", "os", "log", "math/rand", "math/rand/v2", "sync"}

// Functions of package math whose last digit differs between processors: pkg/portable has others.
var unportable = regexp.MustCompile(`\bmath\.(Acosh?|Asinh?|Atan[2h]?|Cbrt|Cosh?|Erf\w*|Exp\w*|Gamma|Hypot|Lgamma|` +
	`Log\w*|Pow|Sin|Sincos|Sinh|Tanh?)\(`)

// TestPortable holds the packages that a run depends on to functions with the same bits on every processor. The
// arrival processes of pkg/dist are rounded to whole microseconds, and may use others.
func TestPortable(t *testing.T) {
	for _, name := range []string{"anomaly", "capacity", "cluster", "des", "engine", "expr", "fitness", "kv", "latency",
		"link", "metrics", "model", "operators", "policy", "scale", "sim", "stream", "tier"} {
		files, err := filepath.Glob(name + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal("no files in", name, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found := unportable.Find(text); found != nil && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s has %s…), whose last digit differs between processors", file, found)
			}
		}
	}
}

// packages parses the imports of all packages of the module. It reads the files itself
// instead of asking the go command, so that a change of a file invalidates the cached
// result of this test.
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
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != ".." {
			return filepath.SkipDir // another module
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
				t.Errorf("%s may import %s, which is not above it in the list", l.pkg, to)
			}
		}
		above[l.pkg] = true
	}
	for name, p := range packages(t) {
		allowed, known := may[name]
		if !known {
			t.Errorf("%s is not listed: add it to layers", name)
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

// wrongImport describes what is wrong with an import, or returns "".
func wrongImport(pkg, path string, allowed []string) string {
	isTool := strings.HasPrefix(pkg, "pkg/internal/mutation/") // a program for tests
	if owners[path] != pkg && !isTool && slices.ContainsFunc(testOnly, func(m string) bool { return within(path, m) }) {
		return "only tests may"
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
			if !slices.Contains(strings.Fields(owner), pkg) {
				return "only " + owner + " may"
			}
			return ""
		}
	}
	return "no package owns that module: add it to owners"
}

// wrongTestImport is wrongImport for tests. They may also import the package under test,
// test-only packages and all of the standard library.
func wrongTestImport(pkg, path string, allowed []string) string {
	if path == module+"/"+pkg || !strings.Contains(path, ".") && !strings.HasPrefix(path, module+"/") {
		return ""
	}
	isTool := strings.HasPrefix(pkg, "pkg/internal/mutation/") // a program for tests
	if owners[path] != pkg && !isTool && slices.ContainsFunc(testOnly, func(m string) bool { return within(path, m) }) {
		return ""
	}
	return wrongImport(pkg, path, allowed)
}

// within reports whether path is the module or package m, or inside it.
func within(path, m string) bool {
	return path == m || strings.HasPrefix(path, m+"/")
}

// The most important rules are checked directly, so that a mistake in the list above
// does not disable them.
func TestPlanesDoNotMeet(t *testing.T) {
	for _, l := range layers {
		fields := strings.Fields(l.may)
		for _, never := range map[string][]string{
			"pkg/engine":             {"pkg/policy", "pkg/stream", "pkg/sim"},
			"pkg/policy":             {"pkg/engine", "pkg/stream", "pkg/sim"},
			"pkg/internal/reference": {"pkg/engine", "pkg/kv", "pkg/latency", "pkg/des"},
		}[l.pkg] {
			if slices.Contains(fields, never) {
				t.Errorf("layers lets %s import %s", l.pkg, never)
			}
		}
	}
	for _, bad := range []struct{ pkg, path string }{
		{"pkg/engine", module + "/pkg/policy"},
		{"pkg/policy", "time"},
		{"pkg/kv", "math/rand/v2"},
		{"pkg/engine", module + "/pkg/internal/reference"},
		{"pkg/gen", "gonum.org/v1/gonum/stat/distuv"},
		{"pkg/sim", "pgregory.net/rapid"},
		{"pkg/sim", "example.com/new"},
	} {
		if wrongImport(bad.pkg, bad.path, nil) == "" {
			t.Errorf("%s may import %s", bad.pkg, bad.path)
		}
	}
}
