package recording

import "testing"

// TestIntegersWithUnits: a small letter is a power of 1,000, a large one of 1,024. Only integers from 0 to 2^40 count.
func TestIntegersWithUnits(t *testing.T) {
	for value, want := range map[string]string{"7": "7", "8k": "8000", "8K": "8192", "1.5k": "1500", "2m": "2000000",
		"1024G": "1099511627776", "-1": "", "1.5": "", "x": "", "1025G": ""} {
		if got, err := plainInteger(value); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%s: %q, %v", value, got, err)
		}
	}
}
