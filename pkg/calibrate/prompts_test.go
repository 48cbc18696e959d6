package calibrate

import (
	"slices"
	"strings"
	"testing"
)

// TestNewPromptsAreCounted: of ten prompts that repeat it is told how many of the requests
// with new ones are fitted to; of prompts that do not repeat, nothing.
func TestNewPromptsAreCounted(t *testing.T) {
	for _, c := range []struct {
		period, from int
		want         string
	}{
		{10, 0, "beta[1] is known from the first 10 requests alone"},
		{10, 7, "beta[1] is known from 3 requests alone: the prompts of the first 10 are new"},
		{10, 10, "none of the first 10 requests, whose prompts are new, is fitted to"},
		{0, 0, ""},
	} {
		r := shortRun(30)
		r.period = c.period
		copy(r.used, slices.Repeat([]bool{false}, c.from))
		s := &setup{}
		s.warnNewPrompts([]*run{r})
		if got := strings.Join(s.warnings, "; "); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("period %d, fitted from %d on: %q, want %q", c.period, c.from, got, c.want)
		}
	}
}
