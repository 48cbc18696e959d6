package operators

import (
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/parquet"
)

// TestUnreadableTablesAreErrors: only a folder that does not exist has no tables.
func TestUnreadableTablesAreErrors(t *testing.T) {
	root, s := t.TempDir(), source{folder: "gemm", file: "gemm"}
	if err := (&Tables{}).readSource(root, &s); err != nil {
		t.Errorf("no folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, s.folder), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, s.folder, "vllm"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := (&Tables{}).readSource(root, &s); err == nil {
		t.Error("a file in place of a folder is no error")
	}
}

// TestFirstChunks: of the context phase only chunks without tokens before are kept, and no attention in 8 bits.
func TestFirstChunks(t *testing.T) {
	c := map[string]parquet.Column{
		"op_name": {Texts: []string{"mla_context", "mla_context", "mla_generation", "mla_context"}},
		"step":    {Numbers: []float64{0, 1, 1, 0}}, "mla_dtype": {Texts: []string{"bfloat16", "", "", "fp8"}}}
	for i, want := range []bool{true, false, true, false} {
		if got := isFirstChunk(c, i); got != want {
			t.Errorf("row %d is kept: %v", i, got)
		}
	}
}
