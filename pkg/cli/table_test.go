package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/parquet"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// The tables have the records of the stream, row by row.
func TestTablesEqualStream(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	call := func(tool Tool, args ...string) {
		t.Helper()
		var complaints bytes.Buffer
		if code := tool.run(t.Context(), args, standardStreams{Out: io.Discard, Err: &complaints}); code != exitOK {
			t.Fatalf("%s %q: %s", tool.name, args, &complaints)
		}
	}
	call(Gen, "--scenario", "mixed-slo", "--requests", "300", "-o", in("w.jsonl"))
	run := []string{"--set", "deployments.main.replicas=6", "--set", "routing.type=weighted",
		"--set", "admission={type: rate-limit, params: {limit: 20, action: delay, delay_ms: 50}}", "--itl",
		in("w.jsonl"), "-o"}
	call(Sim, append(run, in("run.jsonl"))...)
	call(Sim, append(run, in("tables")+"/")...)

	var outcomes []stream.Outcome
	var decisions []stream.Decision
	f, err := os.Open(in("run.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := stream.NewReader(f)
	for r.Next() {
		switch r.Kind() {
		case stream.KindOutcome:
			var o stream.Outcome
			err = r.Outcome(&o)
			outcomes = append(outcomes, o)
		case stream.KindDecision:
			var d stream.Decision
			err = r.Decision(&d)
			decisions = append(decisions, d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if r.Err() != nil || len(outcomes) != 300 || len(decisions) < 600 {
		t.Fatalf("%d outcomes, %d decisions: %v", len(outcomes), len(decisions), r.Err())
	}
	sameRows(t, in("tables/outcomes.parquet"), outcomes, parquet.ReadOutcomes)
	sameRows(t, in("tables/decisions.parquet"), decisions, parquet.ReadDecisions)
}

// sameRows compares a table with records.
func sameRows[T any](t *testing.T, name string, want []T, read func(io.ReaderAt, int64) ([]T, error)) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b stream.Number) bool { return a == b || a.IsZero() && b.IsZero() })
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("%s is not the stream (-):\n%s", name, diff)
	}
}
