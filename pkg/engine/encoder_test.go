package engine

import (
	"fmt"
	"hash/fnv"
	"testing"

	"blis/pkg/internal/reference"
	"blis/pkg/latency"
)

// encoderOf converts that of the reference.
func encoderOf(c reference.Config) *Encoder {
	e := c.Encoder
	if e == nil {
		return nil
	}
	return &Encoder{Budget: int64(e.Budget), CacheTokens: int64(e.Cache), WholeItems: e.Whole,
		Cost: latency.LinearEncoder{ItemUS: e.ItemUS, TokenUS: e.TokenUS}}
}

// contentOf identifies the content of a segment.
func contentOf(s reference.Segment) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %d", s.ID, s.Tokens)
	return h.Sum64()
}

// TestReferenceOnEncoders is TestReference with images.
func TestReferenceOnEncoders(t *testing.T) {
	compareFeature(t, 1000, reference.RandomEncoder, func(c *reference.Config) any { return *c.Encoder }, nil)
}
