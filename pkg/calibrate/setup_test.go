package calibrate

import "testing"

// TestModelsAreKnownByOtherNames: owners, signs and endings do not count, versions and
// sizes do.
func TestModelsAreKnownByOtherNames(t *testing.T) {
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
	} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}
