package engine

import (
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
	compareFeature(t, 1000, reference.RandomLoRA, func(c *reference.Config) any { return *c.LoRA }, nil)
}
