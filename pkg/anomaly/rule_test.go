package anomaly

import "testing"

// TestMinSamples: a window holds as many samples as the minimum of occurrences is its minimum share of, and one if
// it forgets old samples.
func TestMinSamples(t *testing.T) {
	for _, c := range []struct {
		rule
		want int
	}{
		{rule{minOccurrences: 3, minShare: 0.5}, 6}, {rule{minOccurrences: 1, minShare: 0.3}, 4},
		{rule{minOccurrences: 9, minShare: 0.5, windowOnly: true}, 1},
	} {
		if got := c.minSamples(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.rule, got, c.want)
		}
	}
}
