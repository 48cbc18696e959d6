package summarize

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"blis/pkg/texttab"
)

// comparisonTable renders n runs of one story and a baseline.
func comparisonTable(t *testing.T, n int, format string, color bool) string {
	t.Helper()
	o := Options{Format: format, Color: color, Fitness: &Fitness{src: fitnessFile(t)}, Baseline: []string{"old=base"},
		Open: func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(story().data(t))), nil }}
	for i := range n {
		o.Streams = append(o.Streams, fmt.Sprintf("run%d=file", i))
	}
	text, err := summarize(story().data(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestSideBySide: a few runs are columns, many are rows. Color is for terminals only and
// changes no other character.
func TestSideBySide(t *testing.T) {
	few, many := comparisonTable(t, 2, "table", false), comparisonTable(t, 7, "table", false)
	if head, _, _ := strings.Cut(few, "\n"); strings.Join(strings.Fields(head), " ") != "run run0 run1 baseline old" {
		t.Errorf("head %q", head)
	}
	// TTFT 100, 200 and 300 ms: the gate is at 300; 2 of 3 critical requests meet 250 ms.
	for _, row := range []string{"gate token=secret passed passed passed", "TTFT p99, ms 298.00 298.00 298.00",
		"met targets, %: critical 66.7 66.7 66.7",
		"objective fast -298 -298 -298", "candidate run0 run0 -", "pareto rank 1 1 -"} {
		found := false
		for line := range strings.Lines(few) {
			found = found || strings.Join(strings.Fields(line), " ") == row
		}
		if !found {
			t.Errorf("no row %q in\n%s", row, few)
		}
	}
	if lines := strings.Split(many, "\n"); !strings.HasPrefix(lines[0], "run ") ||
		!strings.HasPrefix(lines[7], "run6 ") || !strings.HasPrefix(lines[8], "baseline old ") {
		t.Errorf("rows of many:\n%s", many)
	}
	colored := comparisonTable(t, 2, "table", true)
	if plain := strings.NewReplacer(texttab.Bold, "", texttab.Red, "", texttab.Plain,
		"").Replace(colored); plain != few ||
		!strings.HasPrefix(colored, texttab.Bold) {
		t.Errorf("in color:\n%s", colored)
	}
	if csv := comparisonTable(t, 2, "csv", false); !strings.HasPrefix(csv, "metric,run0,run1,baseline old\nscore,") ||
		!strings.Contains(csv, "\nttft.p99,298,298,298\n") ||
		!strings.Contains(csv, "\nfrom_us,1000000,1000000,1000000\n") {
		t.Errorf("csv:\n%s", csv)
	}
	if md := comparisonTable(t, 2, "markdown", false); !strings.HasPrefix(md,
		"| run | run0 | run1 | baseline old |\n|---|---:|---:|---:|\n") {
		t.Errorf("markdown:\n%s", md)
	}
}
