package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// folder writes the files of a txtar text and returns where they are.
func folder(t *testing.T, text string) string {
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

// A pool is the same from a folder and from an archive of it.
func TestPoolOfFolder(t *testing.T) {
	dir := folder(t, samples["servegen"])
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

const wekaOne = `{"id": "ID", "block_size": 4, "requests": [{"t": 0, "type": "n", "in": 4, "out": 3, "hash_ids": [1], "api_time": 1}]}`

// A folder of sessions is read by name, one file after the other; other files
// are none. Errors name the file.
func TestWekaFolder(t *testing.T) {
	one := func(id string) string { return strings.Replace(wekaOne, "ID", id, 1) + "\n" }
	dir := folder(t, "-- b.json --\n"+one("x")+"-- a.jsonl --\n"+one("z")+one("y")+"-- readme.md --\nhello\n")
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
		{"-- a.json --\n" + one("x") + "-- b.json --\n" + one("x"), `b.json: the session "x" stood already in `},
		{"-- a.json --\n" + one("x") + "-- b.json --\n{\n", "b.json: at byte "},
		{"-- a.txt --\n" + one("x"), "the folder holds no file *.json"},
	} {
		dir := folder(t, c.text)
		if _, _, err := readAll("weka", Input{Name: dir, Path: dir}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ends with %v, want %s", err, c.want)
		}
	}
}

// The header beside a TraceV2 is checked, by either name, and need not be there.
func TestTraceV2Header(t *testing.T) {
	table := "-- t.csv --\n" + samples["tracev2"]
	for _, c := range []struct{ header, want string }{
		{"", ""},
		{"-- t.header.yaml --\ntrace_version: 2\ntime_unit: us\nserver:\n  time_unit: ms\n", ""},
		{"-- t.yaml --\ntrace_version: 2 # the second\ntime_unit: \"microseconds\"\n", ""},
		{"-- t.header.yaml --\nmode: real\ntrace_version: 3\n", `t.header.yaml:2: trace_version must be 2, is "3"`},
		{"-- t.yaml --\ntime_unit: ms\n", `t.yaml:1: time_unit must be us or microseconds, is "ms"`},
	} {
		path := filepath.Join(folder(t, table+c.header), "t.csv")
		list, _, err := readAll("tracev2", Input{Name: path, Path: path}, Options{})
		if c.want == "" && (err != nil || len(list) != 2) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %d requests, %v", c.header, len(list), err)
		}
	}
}

// The samples of what others write.
func TestFormatSamples(t *testing.T) {
	for _, c := range []struct {
		format, file string
		n            int
		input        int64 // of the first
	}{
		{"tracev2", "formats/blis_tracev2_real_sample.csv", 6, 910},
		{"vllm-bench", "formats/vllm_bench_serve_detailed.sample.json", 2, 759},
	} {
		path := data(t, c.file)
		list, odd, err := readAll(c.format, Input{Name: path, Path: path}, Options{})
		if err != nil || len(odd) > 0 || len(list) != c.n || list[0].Request.InputTokens != c.input {
			t.Errorf("%s: %d requests, %q, %v", c.file, len(list), odd, err)
		}
	}
}
