package sim

import (
	"testing"

	"blis/pkg/internal/reference"
)

// TestReferenceOnFrontDoors compares random clusters whose servers reject requests.
func TestReferenceOnFrontDoors(t *testing.T) {
	compareSeeds(t, 4000, 300, reference.RandomFrontDoor)
}
