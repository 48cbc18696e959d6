package sim

import (
	"testing"

	"blis/pkg/internal/reference"
)

// TestReferenceOnEncoders compares random clusters with images.
func TestReferenceOnEncoders(t *testing.T) {
	compareSeeds(t, 2000, 150, reference.RandomEncoder, 5259, 9260)
}

// TestReferenceOnEncoderSessions compares those with sessions, and with clients that send requests again.
func TestReferenceOnEncoderSessions(t *testing.T) {
	compareSeeds(t, 1000, 100, reference.RandomEncoderSessions)
}

// TestEncodersCoast: with asynchronous scheduling an image at the end of a prompt is released when the first token
// comes. Another one then has room, also if the replica only decodes in between. Without records of steps it coasts.
func TestEncodersCoast(t *testing.T) {
	for at := range int64(120) {
		c := reference.Config{Replicas: 1, MaxNumSeqs: 8, MaxNumBatchedTokens: 64, BlockSize: 2, NumBlocks: 101,
			Chunked: true, Switches: reference.Switches{Async: true}, Beta: []float64{10, 0, 0}, Routing: "round-robin",
			HorizonUS: reference.Never, Encoder: &reference.Encoder{Budget: 4, Cache: 4}}
		image := func(id string) reference.Request {
			return reference.Request{ID: id, Input: 5, Output: 20, DeadlineUS: reference.Never,
				Prompt: []reference.Segment{{ID: "p", Tokens: 1}, {ID: "image-" + id, Tokens: 4, Media: true}}}
		}
		requests := []reference.Request{image("a"), image("b")}
		requests[1].ArrivalUS = at
		if diff := compare(t, c, requests); diff != "" {
			t.Fatalf("after %d µs the reference (-) and the simulator (+) differ:\n%s", at, diff)
		}
		compareQuiet(t, 0, c, requests)
	}
	for _, seed := range seeds(300, 30) {
		c, requests := reference.RandomEncoder(seed)
		compareQuiet(t, seed, c, requests)
	}
}
