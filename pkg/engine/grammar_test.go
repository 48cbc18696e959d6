package engine

import (
	"fmt"
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
	cases := uint64(4000)
	if testing.Short() {
		cases = 300
	}
	livelocked := 0
	for seed := range cases {
		c, requests := reference.RandomGrammars(seed)
		setDraws(&c)
		if _, _, ended := compareOnOneReplica(t, seed, &c, requests, fmt.Sprintf("%+v", *c.Grammars)); !ended {
			livelocked++
		}
	}
	if livelocked > int(cases)/20 {
		t.Errorf("%d of %d cases without progress", livelocked, cases)
	}
}
