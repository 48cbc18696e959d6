package calibrate

import (
	"fmt"
	"slices"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/hardware"
	"blis/pkg/recording"
)

// TestOthersAreLeftOutInOrder: steps of other setups are told of in the order of their
// names, behind the warnings that were there.
func TestOthersAreLeftOutInOrder(t *testing.T) {
	known, err := hardware.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &setup{hardware: known, deployment: &cluster.Deployment{Model: "a/model"}, key: hardware.Key{Model: "a/model", GPU: "H100-SXM", TensorParallelSize: 1}}
	s.warnf("z: was there")
	want := []string{"z: was there"}
	r := &recording.Recording{Path: "r"}
	for tp := 8; tp > 1; tp-- {
		r.Steps = append(r.Steps, recording.Step{TensorParallel: tp}, recording.Step{TensorParallel: tp})
	}
	for tp := 2; tp <= 8; tp++ {
		want = append(want, fmt.Sprintf("r: 2 steps of a model not named on a GPU not named, tensor parallelism %d are left out", tp))
	}
	r.Runs = append(r.Runs, &recording.Run{TensorParallel: 4})
	want = append(want, "r: 1 run of a model not named on a GPU not named, tensor parallelism 4 is left out")
	if err := s.take(r, nil); err != nil || !slices.Equal(s.warnings, want) {
		t.Errorf("%q, %v", s.warnings, err)
	}
}

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
