package calibrate

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"blis/pkg/recording"
	"blis/pkg/stream"
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

// TestKVBlocksAreRaised: a server with unknown settings has at least the KV blocks that recorded sequences hold at
// once. A server with a stated number keeps it.
func TestKVBlocksAreRaised(t *testing.T) {
	outcomes := make([]stream.Outcome, 50) // at once, with 900 to 924 tokens each on the average over its output
	for i := range outcomes {
		outcomes[i] = stream.Outcome{ID: strconv.Itoa(i), State: stream.StateCompleted, FirstTokenUS: 5e6,
			CompletedUS: 9e6, InputTokens: int64(800 + i), OutputTokens: int64(200 - i)}
	}
	for _, c := range []struct {
		settings []string
		blocks   int
		warned   bool
	}{{nil, 2852, true}, {[]string{"num_gpu_blocks_override=600"}, 600, false}} {
		run := &recording.Run{Arrivals: true, Settings: c.settings, Outcomes: slices.Clone(outcomes)}
		s, err := newSetup(&Options{Model: "meta-llama/Llama-3.1-70B-Instruct", GPU: "A100", TP: 2},
			[]*recording.Recording{{Path: "r", Runs: []*recording.Run{run}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.deployment.Computed.KVBlocks; got != c.blocks {
			t.Errorf("settings %q: %d KV blocks, want %d", c.settings, got, c.blocks)
		}
		if got := strings.Contains(strings.Join(s.warnings, ""), "is assumed to be 2852"); got != c.warned {
			t.Errorf("settings %q: warnings %q", c.settings, s.warnings)
		}
	}
}

// TestQuantizedNameIsTheModel: runs of a model whose name states quantized weights are runs of the model, with a
// warning if the engine's settings do not state them.
func TestQuantizedNameIsTheModel(t *testing.T) {
	outcome := stream.Outcome{ID: "0", State: stream.StateCompleted, FirstTokenUS: 1e6, CompletedUS: 2e6,
		InputTokens: 9, OutputTokens: 9}
	for _, c := range []struct {
		settings []string
		warned   bool
	}{{nil, true}, {[]string{"quantization=fp8"}, false}} {
		var runs []*recording.Run
		for _, name := range []string{"RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "Qwen/Qwen2.5-7B-Instruct"} {
			runs = append(runs, &recording.Run{Model: name, GPU: "H100-80GB-HBM3", Arrivals: true, Settings: c.settings,
				Outcomes: []stream.Outcome{outcome}})
		}
		s, err := newSetup(&Options{Model: "meta-llama/Llama-3.1-8B", GPU: "H100"},
			[]*recording.Recording{{Path: "r", Runs: runs}})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(s.warnings, ""), "has quantized weights"); got != c.warned ||
			len(s.replays) != 1 {
			t.Errorf("settings %q: %d replays, warnings %q", c.settings, len(s.replays), s.warnings)
		}
	}
}
