// Package mutation breaks rules of the product one at a time, to see that tests notice. It is for tests.
package mutation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// insertion is text to be put into a file.
type insertion struct {
	at   int
	text string
}

// mutatedFile is a source file with all mutations of its functions.
type mutatedFile struct {
	name       string // of its package
	text       []byte
	insertions []insertion
	named      map[token.Pos]bool // parameters without a name that have got one
}

// apply returns the file's text with the insertions.
func (f *mutatedFile) apply() []byte {
	slices.SortStableFunc(f.insertions, func(a, b insertion) int { return cmp.Compare(a.at, b.at) })
	var out bytes.Buffer
	last := 0
	for _, i := range f.insertions {
		out.Write(f.text[last:i.at])
		out.WriteString(i.text)
		last = i.at
	}
	out.Write(f.text[last:])
	return out.Bytes()
}

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
		if !f.mutate(t, i, x) {
			m.alone[i] = true
		}
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

// mutate adds the copy of the function that the mutation changes, and the call of it. It
// returns false if the mutation is not inside a function, or its parameters or receiver have no names.
func (f *mutatedFile) mutate(t *testing.T, i int, x Mutation) bool {
	t.Helper()
	at := strings.Index(string(f.text), x.Old)
	changed := []byte(strings.Replace(string(f.text), x.Old, x.New, 1))
	parsed, original := functionAt(t, f.text, at, at+len(x.Old))
	_, mutant := functionAt(t, changed, at, at+len(x.New))
	if original == nil || mutant == nil {
		return false
	}
	f.name = parsed.Name.Name
	name := fmt.Sprintf("%sMutation%d", original.Name.Name, i)
	call, ok := f.callOf(original, name)
	if !ok {
		return false
	}
	f.insertions = append(f.insertions, insertion{int(original.Body.Lbrace),
		fmt.Sprintf("\nif activeMutation == \"%d\" {\n%s\n}\n", i, call)})
	start, stop := mutant.Pos()-1, mutant.End()-1
	nameAt, nameEnd := mutant.Name.Pos()-1, mutant.Name.End()-1
	f.insertions = append(f.insertions, insertion{len(f.text),
		fmt.Sprintf("\n%s%s%s\n", changed[start:nameAt], name, changed[nameEnd:stop])})
	return true
}

// functionAt returns the function that holds text[from:to], nil if there is none.
// Positions are offsets + 1, as in a file set with one file.
func functionAt(t *testing.T, text []byte, from, to int) (*ast.File, *ast.FuncDecl) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && int(fn.Body.Lbrace)-1 <= from && to < int(fn.End()) {
			return parsed, fn
		}
	}
	return parsed, nil
}

// callOf is the statement that calls the function's copy called name; ok is false if a
// parameter or the receiver has no name. A parameter called _ gets another one.
func (f *mutatedFile) callOf(fn *ast.FuncDecl, name string) (statement string, ok bool) {
	var arguments []string
	for _, p := range fn.Type.Params.List {
		if len(p.Names) == 0 {
			return "", false
		}
		for _, n := range p.Names {
			argument := n.Name
			if argument == "_" {
				prefix := fmt.Sprintf("ignored%d", len(arguments))
				argument = prefix + "_"
				if !f.named[n.Pos()] {
					f.named[n.Pos()] = true
					f.insertions = append(f.insertions, insertion{int(n.Pos()) - 1, prefix})
				}
			}
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	if fn.Recv != nil {
		if len(fn.Recv.List[0].Names) == 0 {
			return "", false
		}
		name = fn.Recv.List[0].Names[0].Name + "." + name
	}
	call := name + "(" + strings.Join(arguments, ", ") + ")"
	if fn.Type.Results != nil {
		return "return " + call, true
	}
	return call + "\nreturn", true
}

// buildOverlay compiles the package's tests with other texts of some files.
func buildOverlay(t *testing.T, binary string, texts map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for path, text := range texts {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, spec, 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("a mutation does not compile:\n%s", out)
	}
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
