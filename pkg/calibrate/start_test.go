package calibrate

import (
	"context"
	"math"
	"testing"
)

// TestNearOverloadIsFound: of a server that long prompts bring near overload, where
// what a line gives to sequences is prompts' time and most of TTFT is queue, the search
// finds what it was made with, and does not leave it where it is given.
func TestNearOverloadIsFound(t *testing.T) {
	truth := Coefficients{Alpha: [4]float64{3000}, Beta: [4]float64{8000, 125, 60, 0.1565}}
	s, r := synthetic(t, 1, truth, 400)
	c, ok := plane([]*run{r}, truth.Beta[3])
	if !ok || math.Abs(c.Beta[0]/truth.Beta[0]-1) > 0.2 || math.Abs(c.Beta[1]/truth.Beta[1]-1) > 0.2 {
		t.Errorf("a plane begins at %v, %v", c, ok)
	}
	for _, starts := range [][]Coefficients{nil, {truth}} {
		f, err := fitClient(context.Background(), []*run{r}, s.prior(loadOf([]*run{r})), nil, starts...)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{3, 4} {
			if got, want := f.list()[k], truth.list()[k]; math.Abs(got/want-1) > 0.03 {
				t.Errorf("from %v: %s is %.5g, made with %g", starts, names[k], got, want)
			}
		}
	}
}
