package sim

import (
	"fmt"
	"testing"

	"blis/pkg/dist"
	"blis/pkg/internal/reference"
	"blis/pkg/metrics"
)

// grammarCV is the coefficient of variation of the compilation times of random clusters.
const grammarCV = 0.7

// setCompileTimes gives the grammars of the reference the times that they have in a run with this seed.
func setCompileTimes(c *reference.Config, seed uint64) {
	if c.Grammars == nil {
		return
	}
	g := *c.Grammars
	times := grammarTimes{meanUS: float64(g.MeanUS), noise: dist.Noise(grammarCV), seed: seed}
	g.CompileUS = times.of
	c.Grammars = &g
}

// compareGrammars returns the difference of the counts that both have.
func compareGrammars(g reference.GrammarCounts, got *metrics.StructuredOutput) string {
	want := [4]int{g.Requests, g.Compiled, g.Waits, g.Masks}
	have := [4]int{}
	if got != nil {
		have = [4]int{int(got.Requests), int(got.Compilations), int(got.Waits), int(got.Masks)}
	}
	if want != have {
		return fmt.Sprintf("requests with grammars, compilations, waits and masks: %v, want %v", have, want)
	}
	return ""
}

// TestReferenceOnGrammars compares random clusters with structured output.
func TestReferenceOnGrammars(t *testing.T) {
	compareSeeds(t, 2500, 200, reference.RandomGrammars)
}

// TestReferenceOnGrammarSessions compares those with sessions, and with clients that send requests again.
func TestReferenceOnGrammarSessions(t *testing.T) {
	compareSeeds(t, 1000, 100, reference.RandomGrammarSessions)
}

// TestReferenceOnGrammarFailures compares those whose replicas fail.
func TestReferenceOnGrammarFailures(t *testing.T) {
	compareSeeds(t, 1000, 100, reference.RandomGrammarFailures)
}
