package cli

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// example is a command of a document with the output that it shows.
type example struct {
	command string
	output  []string
}

// examples finds the commands in a document: indented or fenced lines that begin with
// "$ ". A command continues on the next line after a backslash or in a here-document. The
// lines up to the next command or the end of the block are its output.
func examples(text string) []example {
	var found []example
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		code := strings.TrimPrefix(strings.TrimPrefix(line, "    "), "\t")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = false
		case strings.HasPrefix(code, "$ "):
			found = append(found, example{command: code[2:]})
			inside = true
		case !inside:
		case strings.Contains(found[len(found)-1].command, "<<'END'") &&
			!strings.HasSuffix(found[len(found)-1].command, "\nEND"):
			found[len(found)-1].command += "\n" + code
		case len(found[len(found)-1].output) == 0 && strings.HasSuffix(found[len(found)-1].command, "\\"):
			found[len(found)-1].command += "\n" + code
		case line == "" || line == "#":
			inside = false
		default:
			last := &found[len(found)-1]
			last.output = append(last.output, code)
		}
	}
	return found
}

// files finds the fenced blocks of a document that begin with a comment with a file name.
func files(text string) map[string]string {
	found := map[string]string{}
	blocks := strings.Split(text, "\n```")
	for i := 1; i < len(blocks); i += 2 {
		_, body, _ := strings.Cut(blocks[i], "\n")
		first, _, _ := strings.Cut(body, "\n")
		if name, ok := strings.CutPrefix(first, "# "); ok && filepath.Ext(name) != "" && !strings.Contains(name, " ") {
			found[name] = body + "\n"
		}
	}
	return found
}

// own are commands about the repository, such as the one that runs this test.
var own = []string{"go test", "scripts/", "bash .ci/run", "git "}

// runExamples runs a document's commands in one fresh folder, in order.
func runExamples(t *testing.T, doc string, minimum int) {
	dir := t.TempDir()
	for name, body := range files(doc) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ran := 0
	for _, e := range examples(doc) {
		if slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(e.command, p) }) {
			continue
		}
		ran++
		if strings.Contains(e.command, "jq ") && !installed("jq") {
			t.Logf("jq is not installed: not run: %s", e.command)
			continue
		}
		runExample(t, dir, e)
	}
	if ran < minimum {
		t.Errorf("found %d examples, want at least %d, each marked with $", ran, minimum)
	}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func runExample(t *testing.T, dir string, e example) {
	t.Helper()
	cmd := exec.Command("bash", "-o", "pipefail", "-c", e.command)
	cmd.Dir = dir
	if strings.HasPrefix(e.command, "go build") {
		// Build from the repository, but not into it.
		cmd.Dir = root
		cmd.Args[4] = strings.ReplaceAll(e.command, "bin/", filepath.Join(dir, "bin")+"/")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s\n%v\n%s", e.command, err, stderr.String())
		return
	}
	if missing := firstMissing(e.output, strings.Split(string(out), "\n")); missing != "" {
		t.Errorf("%s\nthe output lacks this line at its place: %s\n%s", e.command, missing, out)
	}
}

// firstMissing returns the first documented line that got lacks at its place. A line of
// three dots means any number of lines.
func firstMissing(promised, got []string) string {
	at, anywhere := 0, false
	for _, want := range promised {
		if strings.TrimSpace(want) == "..." {
			anywhere = true
			continue
		}
		for anywhere && at < len(got) && got[at] != want {
			at++
		}
		if at >= len(got) || got[at] != want {
			return want
		}
		at, anywhere = at+1, false
	}
	return ""
}

func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the tools")
	}
	readme := readFile(t, "README.md")
	runExamples(t, readme, 5)
	if lines := strings.Count(readme, "\n"); lines > 150 {
		t.Errorf("README.md has %d lines, want at most 150", lines)
	}

	// The gate runs the test command that the README names, with a time limit.
	gate := strings.ReplaceAll(readFile(t, "scripts/check"), "-timeout 20m ", "")
	tests := 0
	for _, e := range examples(readme) {
		if strings.HasPrefix(e.command, "go test") {
			tests++
			if !strings.Contains(gate, "tests() { "+e.command+"; }\n") {
				t.Errorf("scripts/check does not run the README's %q", e.command)
			}
		}
	}
	if tests == 0 {
		t.Error("README.md shows no test command")
	}
}

func TestDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("runs all examples; run without -short")
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("found no documents: %v", err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runExamples(t, readFile(t, "docs/"+name), 1)
		})
	}
}

func TestManualPages(t *testing.T) {
	if testing.Short() {
		t.Skip("runs all examples; run without -short")
	}
	for _, tool := range tools {
		t.Run(tool.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(root, "cmd", tool.name, "main.go")
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			page := file.Doc.Text()
			runExamples(t, page, 2)
			for _, flag := range flags(tool) {
				if !strings.Contains(page, flag) {
					t.Errorf("the page does not mention %s", flag)
				}
			}
		})
	}
}

// flags lists the flags of a tool as they are written on the command line.
func flags(tool Tool) []string {
	var names []string
	for _, f := range tool.parser(tool.command(), standardStreams{}).Model.Flags {
		switch {
		case f.Group != nil && f.Group.Title == "Help:":
		case f.Short != 0:
			names = append(names, "-"+string(f.Short)+" ")
		default:
			names = append(names, "--"+f.Name)
		}
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestExamples(t *testing.T) {
	doc := "Text.\n\n```sh\n$ a | b \\\n    c\nout\n...\nend\n\n$ d\n```\n\n\t$ e\n\nMore $ text.\n\n```yaml\n# " +
		"x.yaml\nk: 1\n```\n"
	got := examples(doc)
	if len(got) != 3 || got[0].command != "a | b \\\nc" || len(got[0].output) != 3 || got[1].command != "d" ||
		got[2].command != "e" {
		t.Errorf("examples = %q", got)
	}
	if f := files(doc); f["x.yaml"] != "# x.yaml\nk: 1\n" {
		t.Errorf("files = %q", f)
	}
	for _, c := range []struct {
		promised, got []string
		missing       string
	}{
		{[]string{"a", "...", "c"}, []string{"a", "b", "c"}, ""},
		{[]string{"a", "c"}, []string{"a", "b", "c"}, "c"},
		{[]string{"...", "d"}, []string{"a"}, "d"},
		{[]string{"a", "..."}, []string{"a"}, ""},
	} {
		if m := firstMissing(c.promised, c.got); m != c.missing {
			t.Errorf("firstMissing(%q, %q) = %q, want %q", c.promised, c.got, m, c.missing)
		}
	}
}
