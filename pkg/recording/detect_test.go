package recording

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
)

// samples has a small valid file of each format.
func samples(t testing.TB) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/samples.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range archive.Files {
		all[f.Name] = string(f.Data)
	}
	for _, name := range Formats.Names() {
		if all[name] == "" {
			t.Fatalf("%s has no sample", name)
		}
	}
	return all
}

// Each format is detected by content, whatever the compression, with the same content and digest.
func TestFormatDetection(t *testing.T) {
	for name, sample := range samples(t) {
		var found []string
		h := readHead([]byte(sample), nil)
		for _, e := range Formats {
			if e.Value.detect(h) {
				found = append(found, e.Name)
			}
		}
		// A table of setups is also a table of requests: the narrower format comes first.
		if want := map[string]string{"lmbench": "lmbench csv"}[name]; strings.Join(found, " ") != name &&
			strings.Join(found, " ") != want {
			t.Errorf("%s is taken for %v", name, found)
		}
		want, err := Read(context.Background(), text(sample), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(sample))
		z.Close()
		for form, s := range map[string]string{"gzip": packed.String(), "a byte order mark": "\ufeff" + sample} {
			if name == "blis" && form != "gzip" {
				continue // BLIS streams have none
			}
			got, err := Read(context.Background(), text(s), "")
			if err != nil || formatRecording(got) != formatRecording(want) || got.Digest != want.Digest {
				t.Errorf("%s with %s: %v\n%s", name, form, err, formatRecording(got))
			}
		}
		if _, err := Read(context.Background(), text(packed.String()[:packed.Len()-3]), ""); err == nil {
			t.Errorf("%s: cut gzip is read without an error", name)
		}
	}
}

// Reading a file in the wrong format is an error with a position, never an empty recording.
func TestReadingInWrongFormat(t *testing.T) {
	for name, sample := range samples(t) {
		for _, e := range Formats {
			// A table is defined by its columns; LMBenchmark's is read like any table.
			if r, err := Read(context.Background(), text(sample), e.Name); err == nil && e.Name != name &&
				!(isTable(readHead([]byte(sample), nil)) && (e.Name == "csv" || e.Name == "lmbench")) {
				t.Errorf("%s is read as %s:\n%s", name, e.Name, formatRecording(r))
			}
		}
	}
}

// A file cut anywhere is an error or a shorter recording, and reading ends.
func TestTruncatedFiles(t *testing.T) {
	for name, sample := range samples(t) {
		for cut := 1; cut < len(sample); cut += 7 {
			r, err := Read(context.Background(), text(sample[:cut]), name)
			if err == nil && len(r.Runs) > 0 && len(r.Runs[0].Outcomes) == 0 {
				t.Errorf("%s cut at %d: a run without requests", name, cut)
			}
		}
	}
}

// Unknown formats are described in printable characters.
func TestUnknownFormat(t *testing.T) {
	for begin, want := range map[string]string{"\x00\x01,\x1b[2J": "it is not UTF-8 text",
		"caf\xe9,x\n1,2\n": "it is not UTF-8 text", "x,\x1b[2J\n1,2\n": `its columns are x, \x1b[2j`,
		"hello": "neither a table", `{"a":{"b":1}}`: "its JSON has a, a.b"} {
		_, err := Read(context.Background(), text(begin), "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\x00\x01\x1b") ||
			!utf8.ValidString(err.Error()) {
			t.Errorf("%q: %v, want %s", begin, err, want)
		}
	}
}

// A run can be chosen from stdin as from a file.
func TestStdin(t *testing.T) {
	for path, want := range map[string]string{"-": "", "-#qps=2": "#qps=2"} {
		if choice, ok := Stdin(path); !ok || choice != want {
			t.Errorf("%s: %q, %v", path, choice, ok)
		}
	}
	for _, path := range []string{"", "a", "--", "-a", "a-#b", "/dev/fd/63"} {
		if choice, ok := Stdin(path); ok || choice != "" {
			t.Errorf("%s: %q, %v", path, choice, ok)
		}
	}
}

// FORMAT:FILE names a format; any other name with a colon is a file.
func TestSplit(t *testing.T) {
	for in, want := range map[string][2]string{
		"otlp:a.json": {"otlp", "a.json"}, "a.json": {"", "a.json"}, "C:a.json": {"", "C:a.json"},
		"csv:b:c": {"csv", "b:c"},
	} {
		if format, path := Split(in); format != want[0] || path != want[1] {
			t.Errorf("%s is %q of %q", in, path, format)
		}
	}
}

// A run is chosen by its name or by words of it. A file whose name contains # is that file.
func TestRunSelection(t *testing.T) {
	dir := t.TempDir()
	sweep := "target_qps,replicas,arrival_s,input_tokens,output_tokens,ttft_s,e2e_s\n" +
		"1,1,0,10,5,0.1,0.3\n1,2,0,10,5,0.1,0.3\n10,2,0,10,5,0.1,0.3\n"
	path := filepath.Join(dir, "a#b.csv")
	if err := os.WriteFile(path, []byte(sweep), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "a.csv")
	if err := os.WriteFile(plain, []byte(sweep), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{path, "qps=1 replicas=1|qps=1 replicas=2|qps=10 replicas=2"},
		{plain + "#qps=1 replicas=2", "qps=1 replicas=2"},
		{plain + "#replicas=2,qps=1", "qps=1 replicas=2"},
		{plain + "#qps=1", "qps=1 replicas=1|qps=1 replicas=2"},
	} {
		r, err := Open(context.Background(), c.path, "")
		if err != nil || strings.Join(r.Names(), "|") != c.want {
			t.Errorf("%s: %v, %v", c.path, r, err)
		}
	}
	_, err := Open(context.Background(), plain+"#qps=3 replicas=2", "")
	if want := `a.csv: unknown run "qps=3 replicas=2"; did you mean "qps=1 replicas=2"?`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("ends with %v, want %s", err, want)
	}
	if _, err := Open(context.Background(), filepath.Join(dir, "none#x"), ""); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Canceling the context ends reading.
func TestCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Read(ctx, text(samples(t)["csv"]), ""); err != context.Canceled {
		t.Errorf("ends with %v", err)
	}
}

// TestHeaderOfTraceV2IsNamed: the header alone is not the recording, and the error says which file is.
func TestHeaderOfTraceV2IsNamed(t *testing.T) {
	in := text("model: x\n")
	in.Name = "run.header.yaml"
	if _, err := Read(context.Background(), in, ""); err == nil ||
		!strings.Contains(err.Error(), "this is the header of a TraceV2; name the CSV file instead") {
		t.Errorf("error %v", err)
	}
}
