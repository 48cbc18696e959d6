package sim

import (
	"testing"

	"blis/pkg/internal/reference"
)

// TestReferenceOnLoRA compares random clusters with adapters.
func TestReferenceOnLoRA(t *testing.T) {
	compareSeeds(t, 2000, 150, reference.RandomLoRA)
}

// TestReferenceOnLoRAAffinity compares those whose router prefers replicas with requests of the adapter.
func TestReferenceOnLoRAAffinity(t *testing.T) {
	compareSeeds(t, 500, 100, reference.RandomAffinity)
}

// TestReferenceOnLoRASessions compares those with sessions, and with clients that send requests again.
func TestReferenceOnLoRASessions(t *testing.T) {
	compareSeeds(t, 1000, 100, reference.RandomLoRASessions)
}
