package recording

import (
	"context"
	"path/filepath"
	"testing"

	"blis/pkg/source"
)

// data is a file of public recordings; the test is skipped without it.
func data(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("../../../shared/data", name)
	if !source.Exists(path) {
		t.Skipf("needs %s, which is not there", path)
	}
	return path
}

// Recordings are read whole, with the runs and stages that they have.
func TestRealFiles(t *testing.T) {
	for _, c := range []struct {
		file, format string
		runs, n      int
	}{
		{"vllm/requests/20260217-202857-llama-2-70b-tp4-general.csv.zst", "csv", 1, 16800},
		{"vllm/lmbench/requests.csv", "lmbench", 37, 252},
	} {
		r, err := Open(context.Background(), data(t, c.file), "")
		if err != nil {
			t.Fatal(err)
		}
		if r.Format != c.format || len(r.Runs) != c.runs || len(r.Runs[0].Outcomes) != c.n {
			t.Errorf("%s: %s, %d runs, %d requests", c.file, r.Format, len(r.Runs), len(r.Runs[0].Outcomes))
		}
		t.Logf("%q %v %+v", r.Runs[0].Name, r.Runs[0].Stages, r.Runs[0].Outcomes[1])
	}
}
