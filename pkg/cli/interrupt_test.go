package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// hangLimit is far above the second within which a signal ends a tool.
const hangLimit = 20 * time.Second

// blockedTools are tools that wait for ever, by what they wait for. Commands run in a new folder with the FIFO
// named fifo.
var blockedTools = []struct {
	name    string
	command []string
	// stdin and stdout: the tool has a pipe there that stays open and that no process uses.
	stdin, stdout bool
}{
	{"writing to a full pipe", []string{"blis-gen", "--requests", "100000000", "--plain"}, false, true},
	{"writing to a full pipe after reading", []string{"blis-sim", "--trace", "full", "w.jsonl"}, false, true},
	{"opening a FIFO", []string{"blis-sim", "fifo"}, false, false},
	{"opening a FIFO for output", []string{"blis-gen", "-o", "fifo"}, false, false},
	{"a FIFO as configuration", []string{"blis-sim", "-c", "fifo", "w.jsonl"}, false, false},
	{"a silent import", []string{"blis-gen", "--import", "azure:fifo"}, false, false},
	{"silent stdin", []string{"blis-sim", "-o", "run.jsonl"}, true, false},
	{"silent stdin with tables", []string{"blis-sim", "-o", "tables/"}, true, false},
	{"a silent stream of summarize", []string{"blis-summarize"}, true, false},
	{"a silent recording", []string{"blis-diff", "fifo", "w.jsonl"}, false, false},
	{"a long output to a file", []string{"blis-gen", "--requests", "100000000", "-o", "long.jsonl"}, false, false},
}

func TestSignalEndsBlockedTools(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the tools as processes")
	}
	for _, c := range blockedTools {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, dir, "blis-gen", "--requests", "2000", "-o", "w.jsonl")
			tool := exec.Command(c.command[0], c.command[1:]...)
			tool.Dir = dir
			if c.stdin {
				in, err := tool.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				defer in.Close()
			}
			if c.stdout {
				out, full, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer out.Close()
				defer full.Close()
				tool.Stdout = full
			}
			if err := tool.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // it blocks
			hang := time.AfterFunc(hangLimit, func() { tool.Process.Kill() })
			tool.Process.Signal(syscall.SIGTERM)
			tool.Wait()
			if code := tool.ProcessState.ExitCode(); !hang.Stop() || code != 128+int(syscall.SIGTERM) {
				t.Errorf("exit %d", code)
			}
			checkFolder(t, dir, "fifo", "w.jsonl")
		})
	}
}

// run runs a tool that must succeed.
func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	tool := exec.Command(name, args...)
	tool.Dir = dir
	if text, err := tool.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
}

// checkFolder reports an error unless the folder has exactly these files.
func checkFolder(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(want) {
		t.Errorf("the folder has %v, want %v: %v", entries, want, err)
		return
	}
	for i, e := range entries {
		if e.Name() != want[i] {
			t.Errorf("the folder has %s, want %s", e.Name(), want[i])
		}
	}
}

// What a killed tool leaves, the next writer of that name removes, but nothing that a running tool writes.
func TestNextWriterRemovesLeftFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the tools as processes")
	}
	for _, name := range []string{"run.jsonl", "tables/"} {
		dir := t.TempDir()
		run(t, dir, "blis-gen", "--requests", "20", "-o", "w.jsonl")
		start := func() (*exec.Cmd, io.Closer) {
			tool := exec.Command("blis-sim", "-o", name)
			tool.Dir = dir
			in, err := tool.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := tool.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // it waits for its input
			return tool, in
		}
		killed, in := start()
		killed.Process.Kill()
		killed.Wait()
		in.Close()
		running, in := start()
		run(t, dir, "blis-sim", "-o", name, "w.jsonl")
		checkFolder(t, dir, "."+filepath.Clean(name)+".0.tmp", filepath.Clean(name), "w.jsonl")
		running.Process.Signal(os.Interrupt)
		running.Wait()
		in.Close()
		checkFolder(t, dir, filepath.Clean(name), "w.jsonl")
	}
}
