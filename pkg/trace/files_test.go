package trace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/stream"
	"blis/pkg/textio"

	"github.com/rogpeppe/go-internal/txtar"
)

// writeFolder writes the files of a txtar text and returns their folder.
func writeFolder(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A pool in a folder reads the same as an archive of it.
func TestPoolInFolderEqualsArchive(t *testing.T) {
	dir := writeFolder(t, samples["servegen"])
	list, _, err := readAll("servegen", Input{Name: dir, Path: dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range list {
		lines = append(lines, list[i].line(t))
	}
	if want := wireLines(t, "servegen", sample(t, "servegen")); strings.Join(lines, "\n") != want {
		t.Errorf("from a folder\n%v\nfrom an archive\n%s", lines, want)
	}
}

const wekaOne = `{"id": "ID", "block_size": 4, "requests": [{"t": 0, "type": "n", "in": 4, "out": 3, "hash_ids": ` +
	`[1], "api_time": 1}]}`

// The sessions in a folder are read in the order of file names; other files are ignored. Errors
// name the file.
func TestWekaFolder(t *testing.T) {
	one := func(id string) string { return strings.Replace(wekaOne, "ID", id, 1) + "\n" }
	dir := writeFolder(t, "-- b.json --\n"+one("x")+"-- a.jsonl --\n"+one("z")+one("y")+"-- readme.md --\nhello\n")
	list, _, err := readAll("weka", Input{Name: dir, Path: dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, a := range list {
		ids = append(ids, a.Session.ID)
	}
	if strings.Join(ids, " ") != "z y x" {
		t.Errorf("read %v", ids)
	}
	for _, c := range []struct{ text, want string }{
		{"-- a.json --\n" + one("x") + "-- b.json --\n" + one("x"), `b.json: duplicate session "x", first in `},
		{"-- a.json --\n" + one("x") + "-- b.json --\n{\n", "b.json: the session at byte 0: ends in"},
		{"-- a.txt --\n" + one("x"), "the folder contains no *.json file"},
	} {
		dir := writeFolder(t, c.text)
		if _, _, err := readAll("weka", Input{Name: dir, Path: dir}, Options{}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("ends with %v, want %s", err, c.want)
		}
	}
}

// TestFileWithTheNameOfAFormat: a file that exists is read, also if its name begins like the choice of a format.
func TestFileWithTheNameOfAFormat(t *testing.T) {
	const text = `{"kind":"request","id":"a","arrival_us":0,"input_tokens":4,"output_tokens":2}` + "\n"
	dir := writeFolder(t, "-- recording:w.jsonl --\n"+text)
	t.Chdir(dir)
	const name = "recording:w.jsonl"
	_, _, err := readAll("recording", Input{Name: name, Path: name}, Options{})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err) // a workload is no recording
	}
}

// TestPromptsWithoutIDs: a prompt without ids is as long as it is; only ids that cover too little are suspicious.
func TestPromptsWithoutIDs(t *testing.T) {
	for ids, warns := range map[string]bool{"": false, "1": true, "1 2": false} {
		b := &hashedLines{Lines: &textio.Lines{}, size: 16}
		var all []int64
		for _, id := range strings.Fields(ids) {
			all = append(all, int64(len(all))+int64(len(id)))
		}
		if err := b.prompt(&stream.Request{InputTokens: 40}, all, false); err != nil {
			t.Fatal(err)
		}
		if got := len(b.Warnings()) > 0; got != warns {
			t.Errorf("ids %q: a warning is %v", ids, got)
		}
	}
}
