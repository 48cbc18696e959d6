package cluster

import (
	"errors"
	"fmt"
	"testing"

	"blis/pkg/policy"
)

// Every listed setting exists, its range is that of files, and its default is the present value.
func TestEngineParams(t *testing.T) {
	d := Deployment{Engine: defaultEngine()}
	d.Engine.MaxNumSeqs = 77
	params, err := d.EngineParams()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range params {
		if p.Default == nil || p.Name == "max_num_seqs" && p.Default != 77.0 {
			t.Errorf("%s has the default %v", p.Name, p.Default)
		}
		if p.Kind != policy.Number {
			continue
		}
		for x, valid := range map[float64]bool{p.Min: true, p.Min - 1: false, p.Max: true, p.Max + 1: false} {
			e := engineWith(t, p.Name, x)
			err := e.validate("engine", func(path, format string, args ...any) error {
				return errors.New(path + ": " + fmt.Sprintf(format, args...))
			})
			if (err == nil) != valid {
				t.Errorf("%s: %g: %v, but its range is %s", p.Name, x, err, p.Range())
			}
		}
	}
}

// engineWith is the default engine with one other setting.
func engineWith(t *testing.T, name string, x float64) *Engine {
	t.Helper()
	e := defaultEngine()
	set := map[string]func(){
		"max_num_seqs":                 func() { e.MaxNumSeqs = int(x) },
		"max_num_batched_tokens":       func() { e.MaxNumBatchedTokens = int(x) },
		"long_prefill_token_threshold": func() { e.LongPrefillTokenThreshold = int(x) },
		"block_size":                   func() { e.BlockSize = int(x) },
		"gpu_memory_utilization":       func() { e.GPUMemoryUtilization = x },
		"watermark":                    func() { e.Watermark = x },
	}[name]
	if set == nil {
		t.Fatalf("no number %s", name)
	}
	set()
	return &e
}
