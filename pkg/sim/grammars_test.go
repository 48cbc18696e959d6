package sim

import (
	"testing"

	"blis/pkg/dist"
	"blis/pkg/internal/reference"
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
