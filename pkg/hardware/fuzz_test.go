package hardware

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFile: no hardware file crashes, and its GPUs are found by their names.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		`{version: 1, gpus: [{id: Own, memory_gib: 80, hbm_gb_per_s: 3000, dense_tflops: {bf16: 900}}]}`,
		`{version: 1, source: a test,
			coefficients: [{model: m, gpu: H100-SXM-80GB, tp: 1, alpha: [1, 2], beta: [1, 2, 3]}]}`,
		`{version: 2}`, `gpus: 7`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(t.TempDir(), "own.yaml")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Open(name)
		if err != nil {
			return
		}
		for _, g := range c.gpus {
			if found, err := c.GPU(g.ID); err != nil || found != g {
				t.Errorf("%q: GPU %q is %v, %v", text, g.ID, found, err)
			}
		}
	})
}
