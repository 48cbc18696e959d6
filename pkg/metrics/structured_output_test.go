package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStructuredOutput: what grammars took at replicas is added. Replicas without such requests have no metrics of
// them.
func TestStructuredOutput(t *testing.T) {
	replicas := []ReplicaTotals{{GrammarRequests: 2, GrammarWaits: 1, GrammarWaitUS: 1500, Compilations: 1, Masks: 7,
		MaskUS: 300, MaskWaitUS: 50}, {}, {GrammarRequests: 3, GrammarWaits: 3, GrammarWaitUS: 500, Compilations: 2,
		Masks: 1, MaskUS: 200, MaskWaitUS: 25}}
	want := &StructuredOutput{Requests: 5, Compilations: 3, Waits: 4, WaitMS: 2, Masks: 8, MaskMS: 0.5,
		StepWaitMS: 0.075}
	if diff := cmp.Diff(want, structuredOutput(replicas)); diff != "" {
		t.Error(diff)
	}
	if got := structuredOutput(replicas[1:2]); got != nil {
		t.Errorf("without grammars: %+v", got)
	}
}
