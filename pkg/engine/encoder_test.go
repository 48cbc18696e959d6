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
	cases := uint64(1000)
	if testing.Short() {
		cases = 300
	}
	livelocked := 0
	for seed := range cases {
		c, requests := reference.RandomEncoder(seed)
		_, _, ended := compareOnOneReplica(t, seed, &c, requests, fmt.Sprintf("%+v", *c.Encoder))
		if !ended {
			livelocked++
		}
	}
	if livelocked > int(cases)/20 {
		t.Errorf("%d of %d cases without progress", livelocked, cases)
	}
}
