package calibrate

import (
	"errors"
	"testing"

	"blis/pkg/recording"
)

// TestOnlyMissingServerNamesAreAskedFor: an error names what neither the flags nor the recordings state.
func TestOnlyMissingServerNamesAreAskedFor(t *testing.T) {
	files := []*recording.Recording{{Runs: []*recording.Run{{}}}}
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{}, "the recordings name no model and no GPU: give --model and --gpu, or --cluster"},
		{Options{GPU: "H100"}, "the recordings name no model: give --model, or --cluster"},
		{Options{Model: "meta-llama/Llama-2-7b-hf"}, "the recordings name no GPU: give --gpu, or --cluster"},
	} {
		_, err := (&setup{options: &c.options, files: files, assumed: true}).findTarget()
		var usage *UsageError
		if !errors.As(err, &usage) || err.Error() != c.want {
			t.Errorf("model %q, GPU %q: %v, want %q", c.options.Model, c.options.GPU, err, c.want)
		}
	}
}
