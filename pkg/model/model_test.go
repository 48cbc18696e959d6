package model

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// configs returns the public config.json files that the built-in models were read from; they are
// not in this repository.
func configs(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../shared/data/models/*.config.json")
	if err != nil || len(files) == 0 {
		t.Skip("needs ../shared/data/models, which is missing")
	}
	all := map[string]string{}
	for _, f := range files {
		name := strings.Replace(strings.TrimSuffix(filepath.Base(f), ".config.json"), "__", "/", 1)
		all[name] = f
	}
	return all
}

// TestBuiltInsMatchPublishedConfigs compares every model in the catalog with its file.
func TestBuiltInsMatchPublishedConfigs(t *testing.T) {
	for name, file := range configs(t) {
		parsed, err := readFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		have, err := BuiltIn(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if name == "nvidia/Llama-3.1-70B-Instruct-FP8" { // its file does not say that it is quantized
			if parsed, err = parsed.With(Overrides{Quantization: "fp8"}); err != nil {
				t.Error(err)
			}
		}
		byCount := cmpopts.SortSlices(func(a, b Layers) bool {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return string(x) < string(y)
		})
		if diff := cmp.Diff(have, parsed, byCount, cmpopts.IgnoreFields(Architecture{}, "Name", "Type"),
			cmpopts.IgnoreUnexported(Architecture{})); diff != "" {
			t.Errorf("%s: the built-in (-) and the file (+):\n%s", name, diff)
		}
	}
}

// TestSameNameOfModels: owners, punctuation and suffixes are ignored, versions and sizes are
// not.
func TestSameNameOfModels(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"llama2-70b", "meta-llama/Llama-2-70b-hf", true},
		{"Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", true},
		{"llama2-7b", "meta-llama/Llama-2-70b", false},
		{"Llama-3-8B", "meta-llama/Llama-3.1-8B", false},
		{"bloom-176b", "meta-llama/Llama-2-70b", false},
		{"/", "meta-llama/Llama-2-70b", false},
		{"RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", "meta-llama/Llama-4-Scout-17B-16E", true},
		{"neuralmagic/Llama-2-7b-chat-quantized.w8a16", "meta-llama/Llama-2-7b", true},
		{"fp8", "meta-llama/Llama-2-7b", false},
	} {
		if got := SameName(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
