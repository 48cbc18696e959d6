package summarize

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// Each format says that a run does not hold what was written.
func TestIntegrity(t *testing.T) {
	intact := story().data(t)
	lines := bytes.SplitAfter(intact, []byte("\n"))
	last := len(lines) - 2 // after it comes the empty text behind the last line feed
	for _, c := range []struct {
		name string
		data []byte
		want stream.Integrity
	}{
		{"intact", intact, stream.IntegrityOK},
		{"a line dropped", bytes.Join(slices.Delete(slices.Clone(lines), 1, 2), nil), stream.IntegrityFiltered},
		{"a line edited", bytes.Replace(intact, []byte(`"tenant":"t2"`), []byte(`"tenant":"t1"`), 1),
			stream.IntegrityDamaged},
		{"a line added", bytes.Join(slices.Insert(slices.Clone(lines), 1, []byte("{\"kind\":\"note\"}\n")), nil),
			stream.IntegrityDamaged},
		{"a bare end", bytes.Join(append(lines[:last:last], []byte("{\"kind\":\"end\"}\n")), nil),
			stream.IntegrityDamaged},
	} {
		said := string(c.want) + ":"
		if c.want == stream.IntegrityOK {
			said = "integrity"
		}
		for _, format := range []string{"json", "text", "markdown", "csv", "table"} {
			var warnings []string
			o := Options{Format: format, Warn: func(w string) { warnings = append(warnings, w) }}
			text, err := summarize(c.data, o)
			if err != nil {
				t.Errorf("%s as %s: %v", c.name, format, err)
				continue
			}
			found := strings.Contains(text, said)
			switch format {
			case "json":
				found = strings.Contains(text, fmt.Sprintf(`"integrity": %q`, c.want))
			case "markdown", "csv":
				found = strings.Contains(text, "integrity")
			}
			if intact := c.want == stream.IntegrityOK; intact && format != "json" && found ||
				!intact && (!found || len(warnings) != 1 || !strings.Contains(warnings[0], said)) {
				t.Errorf("%s as %s: warnings %q, text\n%s", c.name, format, warnings, text)
			}
		}
	}
}

// Also in a table of several runs.
func TestIntegrityOfReferences(t *testing.T) {
	damaged := bytes.Replace(story().data(t), []byte(`"tenant":"t2"`), []byte(`"tenant":"t1"`), 1)
	text, err := summarize(story().data(t), Options{Format: "csv", Baseline: []string{"b"},
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(damaged)), nil }})
	if err != nil || !strings.Contains(text, "integrity,ok,damaged\n") {
		t.Errorf("error %v, text\n%s", err, text)
	}
}

func TestSelectionOfNothing(t *testing.T) {
	o := options(t, "input_tokens > 1000000", "", "", "json")
	var warned []string
	o.Warn = func(w string) { warned = append(warned, w) }
	if d, _ := document(t, story().data(t), o); len(warned) != 1 ||
		!slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "select none of the") }) {
		t.Errorf("warned %q, document %q", warned, d.Warnings)
	}
	o.Format = "text"
	o.Fitness = &Fitness{src: filepath.Join(t.TempDir(), "gates.yaml")}
	gates := "version: 1\ngates: [{name: calm, expr: m.kv.preemptions < 1}]\nscore: '1'\n"
	if err := os.WriteFile(o.Fitness.src, []byte(gates), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := summarize(story().data(t), o); err == nil || !strings.Contains(err.Error(), "the fitness has gates") {
		t.Errorf("error %v", err)
	}
}
