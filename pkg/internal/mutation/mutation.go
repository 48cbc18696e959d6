// Package mutation breaks rules of the product one at a time, to see that tests notice. It is for tests.
package mutation

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/token"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mutation is a rule, and the change to a file that breaks it. File is relative to the parent of the package
// whose tests run; it contains Old once.
type Mutation struct{ Rule, File, Old, New string }

// stride is the flag -mutations. All mutations of a simulator take minutes.
var stride = flag.Int("mutations", 8, "break one rule in this many; 1: each")

// sample returns the numbers of the mutations to be applied: one in every stride. Which ones these are follows from
// the texts of the files, so that other rules are broken after a change and the same ones when a test is repeated.
func sample(t *testing.T, all []Mutation) (numbers []int) {
	t.Helper()
	every := max(*stride, 1)
	h := fnv.New64a()
	for _, x := range all {
		text, err := os.ReadFile(x.path(t))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(text)
	}
	for i := int(h.Sum64() % uint64(every)); i < len(all); i += every {
		numbers = append(numbers, i)
	}
	return numbers
}

// Run applies a sample of the mutations, one at a time, to the package in the working directory, each in a subtest. It
// expects that a test of one of patterns(i) fails with mutation i, and none without. The others must compile.
func Run(t *testing.T, all []Mutation, patterns func(i int) []string) {
	m := build(t, all)
	if failed := run(t, m.binary, -1, patterns(0)[:1]...); failed != nil {
		t.Fatalf("without a mutation the tests fail: %v", failed)
	}
	for _, i := range sample(t, all) {
		x := all[i]
		t.Run(x.Rule, func(t *testing.T) {
			t.Parallel()
			binary := m.binary
			if m.alone[i] {
				binary = filepath.Join(t.TempDir(), "mutation.test")
				text, err := os.ReadFile(x.path(t))
				if err != nil {
					t.Fatal(err)
				}
				changed := strings.Replace(string(text), x.Old, x.New, 1)
				buildOverlay(t, binary, map[string][]byte{x.path(t): []byte(changed)})
			}
			failed := run(t, binary, i, patterns(i)...)
			if failed == nil {
				t.Fatalf("the tests pass without the rule")
			}
			t.Logf("caught by %v", failed)
		})
	}
}

// path is that of the file to be changed.
func (m Mutation) path(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", m.File))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// variable names the mutation that a test binary of build applies.
const variable = "BLIS_MUTATION"

// Active reports whether a rule is broken in this process.
func Active() bool { return os.Getenv(variable) != "" && os.Getenv(variable) != "-1" }

// mutations is a test binary that holds many mutations. Compiling one binary takes
// seconds, one for each mutation takes minutes.
type mutations struct {
	binary string
	// alone holds the mutations outside of functions. Each takes a binary of its own.
	alone map[int]bool
}

// build compiles the package's tests with every mutation of a function.
// The function gets a copy with the mutation, and a first statement that calls the copy
// when variable is the mutation's number.
func build(t *testing.T, all []Mutation) *mutations {
	t.Helper()
	m := &mutations{binary: filepath.Join(t.TempDir(), "mutations.test"), alone: map[int]bool{}}
	files := map[string]*mutatedFile{}
	for i, x := range all {
		path := x.path(t)
		f := files[path]
		if f == nil {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f = &mutatedFile{text: text, named: map[token.Pos]bool{}}
			files[path] = f
		}
		if n := strings.Count(string(f.text), x.Old); n != 1 {
			t.Errorf("%s: %s contains the text to be changed %d times, want once", x.Rule, x.File, n)
			continue
		}
		at := strings.Index(string(f.text), x.Old)
		ok, err := f.replace(at, at+len(x.Old), x.New, fmt.Sprintf("Mutation%d", i),
			fmt.Sprintf("activeMutation == \"%d\"", i))
		if err != nil {
			t.Fatal(err)
		}
		m.alone[i] = !ok
	}
	if t.Failed() {
		t.FailNow()
	}
	overlay := map[string][]byte{}
	for path, f := range files {
		if len(f.insertions) == 0 {
			continue
		}
		overlay[path] = f.apply()
		overlay[filepath.Join(filepath.Dir(path), "active_mutation.go")] = fmt.Appendf(nil,
			"package %s\n\nimport \"os\"\n\nvar activeMutation = os.Getenv(%q)\n", f.name, variable)
	}
	buildOverlay(t, m.binary, overlay)
	return m
}

// buildOverlay compiles the package's tests with other texts of some files.
func buildOverlay(t *testing.T, binary string, texts map[string][]byte) {
	t.Helper()
	if out, err := compile(t.TempDir(), ".", binary, texts); err != nil {
		t.Fatalf("a mutation does not compile: %v\n%s", err, out)
	}
}

// compile compiles the tests of the package in a folder with other texts of some files, which it keeps in temp.
func compile(temp, folder, binary string, texts map[string][]byte) (out []byte, err error) {
	replace := map[string]string{}
	for path, text := range texts {
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		file := filepath.Join(temp, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		replace[path] = file
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(overlay, spec, 0o644); err != nil {
		return nil, err
	}
	command := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	command.Dir = folder
	return command.CombinedOutput()
}

// run runs the tests of a binary under mutation i, one pattern after the other, and returns the names of those
// that failed, and the seeds of their cases.
func run(t *testing.T, binary string, i int, patterns ...string) (failed []string) {
	t.Helper()
	for _, pattern := range patterns {
		command := exec.Command(binary, "-test.failfast", "-test.run", pattern)
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, i))
		out, err := command.CombinedOutput()
		if err == nil {
			continue
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "--- FAIL: ") {
				failed = append(failed, strings.Fields(line)[2])
			} else if _, seed, ok := strings.Cut(line, "seed "); ok {
				failed = append(failed, "seed "+strings.Split(seed, ":")[0])
			}
		}
		if len(failed) == 0 {
			t.Fatalf("no test ran:\n%s", out)
		}
		return failed
	}
	return nil
}
