package engine

import (
	"fmt"
	"testing"

	"blis/pkg/internal/reference"
)

// loraOf converts that of the reference.
func loraOf(c reference.Config) *LoRA {
	l := c.LoRA
	if l == nil {
		return nil
	}
	return &LoRA{MaxLoras: l.Max, MaxCPULoras: l.MaxHost, LoadUS: l.LoadUS, CopyUS: l.CopyUS}
}

// TestReferenceOnLoRA is TestReference with adapters.
func TestReferenceOnLoRA(t *testing.T) {
	cases := uint64(1000)
	if testing.Short() {
		cases = 300
	}
	livelocked := 0
	for seed := range cases {
		c, requests := reference.RandomLoRA(seed)
		setDraws(&c)
		_, _, ended := compareOnOneReplica(t, seed, &c, requests, fmt.Sprintf("%+v", *c.LoRA))
		if !ended {
			livelocked++
		}
	}
	if livelocked > int(cases)/20 {
		t.Errorf("%d of %d cases without progress", livelocked, cases)
	}
}
