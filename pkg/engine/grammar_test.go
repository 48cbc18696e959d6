package engine

import (
	"testing"

	"blis/pkg/internal/reference"
)

// grammarsOf converts that of the reference.
func grammarsOf(c reference.Config) Grammars {
	g := c.Grammars
	if g == nil {
		return Grammars{}
	}
	return Grammars{Workers: g.Workers, MaskUS: g.MaskUS, SamplingUS: g.SamplingUS}
}

// TestReferenceOnGrammars is TestReference with structured output.
func TestReferenceOnGrammars(t *testing.T) {
	compareFeature(t, 1000, reference.RandomGrammars, func(c *reference.Config) any { return *c.Grammars }, nil)
}

// TestPreemptedBeforeGrammars: of two equal requests the second was preempted before the first request with a grammar
// came, the first one after that. The first one to arrive is the first in the queue.
func TestPreemptedBeforeGrammars(t *testing.T) {
	e, tree := newEngine(t, Config{MaxNumSeqs: 4, MaxNumBatchedTokens: 64, ChunkedPrefill: true, ByArrival: true,
		Grammars: Grammars{Workers: 1, SamplingUS: 1}}, 20)
	first, second := enqueue(e, tree, 0, 20, 9), enqueue(e, tree, 1, 20, 9)
	_, now := step(t, e, 0)
	e.materializeAll()
	e.preempt(e.current, 1)
	e.Enqueue(Request{Tag: 2, Path: tree.Resolve(nil, nil, 20, ""), Input: 20, Output: 1, Order: 1, Grammar: 1,
		Now: now})
	e.preempt(e.current, 0)
	if got := e.firstWaiting(); got != first {
		t.Errorf("sequence %d is the first in the queue, want %d before %d", got, first, second)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}
