package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// shown runs a tool in this process and returns what it prints.
func shown(t *testing.T, tool Tool, args ...string) string {
	t.Helper()
	tool.source = readFile(t, "cmd/"+tool.name+"/main.go")
	var out, errs bytes.Buffer
	if code := tool.run(t.Context(), args, standardStreams{strings.NewReader(""), &out, &errs}); code != 0 {
		t.Fatalf("%s %s: exit %d\n%s", tool.name, args, code, errs.String())
	}
	return out.String()
}

func TestHelpIsShort(t *testing.T) {
	for _, tool := range tools {
		help, all := shown(t, tool, "--help"), shown(t, tool, "--help-all")
		listed := 0
		for _, f := range tool.parser(tool.command(), standardStreams{}).Model.Flags {
			if !strings.Contains(all, "--"+f.Name) {
				t.Errorf("%s --help-all lacks --%s", tool.name, f.Name)
			}
			if strings.Contains(help, " --"+f.Name+"=") || strings.Contains(help, " --"+f.Name+" ") {
				listed++
			}
			if f.Group == nil {
				t.Errorf("%s: --%s has no group", tool.name, f.Name)
			}
		}
		if listed > 21 {
			t.Errorf("%s --help has %d flags; mark rare ones", tool.name, listed)
		}
		for _, e := range tool.examples {
			if !strings.Contains(help, e.command) {
				t.Errorf("%s --help lacks the example %s", tool.name, e.command)
			}
		}
		if len(tool.examples) != 2 || shown(t, tool, "help") != help {
			t.Errorf("%s: %d examples, or help is not --help", tool.name, len(tool.examples))
		}
	}
}

// TestHelpExamples runs the examples of the help texts; those of blis-calibrate, which fit real recordings for
// long, are only parsed.
func TestHelpExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the tools")
	}
	dir := t.TempDir()
	trace := `{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "trace.jsonl"), []byte(trace), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		for _, e := range tool.examples {
			if tool.name == Calibrate.name {
				args := strings.Fields(e.command)[1:]
				if err := tool.parse(tool.command(), args, standardStreams{}); err != nil {
					t.Errorf("%s: %v", e.command, err)
				}
				continue
			}
			command := e.command
			if tool.name == Diff.name {
				command += "; (($? <= 1))" // 1 means a difference
			}
			runExample(t, dir, example{command: command})
		}
		if tool.name == Sim.name {
			runExample(t, dir, example{command: "blis-sim --set routing=random workload.jsonl.zst -o random.jsonl.zst"})
		}
	}
}

func TestManualPageIsRoff(t *testing.T) {
	for _, tool := range tools {
		page := shown(t, tool, "--man")
		for _, f := range tool.parser(tool.command(), standardStreams{}).Model.Flags {
			if !strings.Contains(page, `\fB\-\-`+escapeRoff(f.Name)+`\fR`) {
				t.Errorf("%s --man lacks --%s", tool.name, f.Name)
			}
		}
		if !strings.HasPrefix(page, `.TH "`+strings.ToUpper(escapeRoff(tool.name))) {
			t.Errorf("%s --man begins with %.40q", tool.name, page)
		}
		if installed("mandoc") {
			cmd := exec.Command("mandoc", "-T", "lint", "-W", "warning")
			cmd.Stdin = strings.NewReader(page)
			out, _ := cmd.CombinedOutput() // its exit code counts also the date, which the page has not
			for line := range strings.Lines(string(out)) {
				if !strings.Contains(line, "missing date") {
					t.Errorf("%s --man: %s", tool.name, line)
				}
			}
		}
	}
	if got, want := escapeRoff(`a\b-c'd`), `a\eb\-c\(aqd`; got != want {
		t.Errorf("escapeRoff = %s, want %s", got, want)
	}
}

// TestCompletion asks the real shells, where they are installed, what they complete.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	for _, shell := range shells.Names() {
		for _, tool := range tools {
			script := shown(t, tool, "--completion", shell)
			for _, f := range tool.parser(tool.command(), standardStreams{}).Model.Flags {
				if !strings.Contains(script, "-"+f.Name) && !strings.Contains(script, "-l "+f.Name) {
					t.Errorf("%s --completion %s lacks --%s", tool.name, shell, f.Name)
				}
			}
			path := filepath.Join(dir, tool.name+"."+shell)
			if err := os.WriteFile(path, []byte(script), 0o666); err != nil {
				t.Fatal(err)
			}
			if !installed(shell) {
				t.Logf("%s is not installed", shell)
			} else if out, err := exec.Command(shell, "-n", path).CombinedOutput(); err != nil {
				t.Errorf("%s -n %s: %s", shell, path, out)
			}
		}
	}
	const words = `. %s; try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _${1//-/_}; echo "${COMPREPLY[@]}"; }; `
	for _, c := range []struct{ shell, command, want string }{
		{"bash", "try blis-sim --coun", "--counterfactual --counterfactual-horizon"},
		{"bash", "try blis-sim --list = po", "policies"},
		{"bash", "try blis-sim -c clus", ""},
		{"fish", "complete -C 'blis-sim --list po'", "policies"},
		{"fish", "complete -C 'blis-sim --export=d'", "--export=dynamo"},
	} {
		if !installed(c.shell) {
			continue
		}
		path := filepath.Join(dir, "blis-sim."+c.shell)
		setup := "source " + path + "; "
		if c.shell == "bash" {
			setup = strings.Replace(words, "%s", path, 1)
		}
		out, err := exec.Command(c.shell, "-c", setup+c.command).Output()
		got, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
		if err != nil || got != c.want {
			t.Errorf("%s: %s completes %q, want %q (%v)", c.shell, c.command, got, c.want, err)
		}
	}
	if installed("zsh") {
		script := filepath.Join(dir, "blis-sim.zsh")
		completesInZsh(t, script, "blis-sim --list pol", "policies")
		completesInZsh(t, script, "blis-sim --counterfactual-h", "orizon")
	}
	var errs bytes.Buffer
	if Sim.run(t.Context(), []string{"--completion", "ksh"}, standardStreams{Err: &errs}) != exitUsage ||
		!strings.Contains(errs.String(), "bash") {
		t.Errorf("an unknown shell: %s", errs.String())
	}
}

// completesInZsh types a line and a tab in an interactive zsh with a completion script, and waits for the rest of the
// word.
func completesInZsh(t *testing.T, script, line, want string) {
	t.Helper()
	const session = `zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; autoload -U compinit; compinit -D -u; source $1; echo rea''dy"
zpty -r -m shell ignored "*ready*"
zpty -w -n shell "$2"$'\t'
zpty -r -m shell shown "*$3*"
zpty -d shell`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "zsh", "-f", "-c", session, "zsh", script, line, want)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("zsh: %s does not complete to %s: %v\n%s", line, want, err, out)
	}
}
