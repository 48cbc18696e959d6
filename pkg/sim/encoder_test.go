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
