package reference

import (
	"strings"
	"testing"
)

// TestRandomScalingReaches: the random clusters get into the states that the rules are about.
func TestRandomScalingReaches(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		c, requests := RandomScaling(seed)
		fleet := strings.Join(Run(c, requests).Fleet, "\n") + "\n"
		seen[c.Scaling.Policy]++
		for _, part := range []string{" of 0: advice 0,", " of 0: advice 1, desired 1", " warming ",
			" draining with 1"} {
			if strings.Contains(fleet, part) {
				seen[part]++
			}
		}
		if c.Scaling.Trigger > 0 && fleet != "\n" {
			seen["trigger"]++
		}
	}
	for _, what := range []string{"target-utilization", "queue-depth", "average-value",
		"threshold", "slo-attainment", "expression", "predicted-load",
		"tree", "oscillator", "trigger", " of 0: advice 0,", " of 0: advice 1, desired 1",
		" warming ", " draining with 1"} {
		if seen[what] < 5 {
			t.Errorf("%q in only %d of 300 clusters", what, seen[what])
		}
	}
	t.Log(seen)
}
