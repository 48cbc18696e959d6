package calibrate

import (
	"context"
	"math"
	"testing"
)

// TestContextIsDoubted: of servers whose steps do not grow with their contexts, and whose
// contexts differ, beta[3] is left out and beta[2] what it was made with; where they grow
// as physics says, it stays; and where contexts are alike nothing is asked.
func TestContextIsDoubted(t *testing.T) {
	const physics = 0.1565 // of Llama-2-7b on an H100, us a token
	alike := usual
	alike.input, alike.output = [2]int64{500, 520}, [2]int64{200, 200}
	for _, c := range []struct {
		name  string
		load  made
		beta3 float64
		want  float64
	}{
		{"none", usual, 0, 0},
		{"physics'", usual, physics, physics},
		{"none, of contexts alike", alike, 0, physics},
	} {
		c.load.perRate = 300
		truth := Coefficients{Alpha: [4]float64{5000}, Beta: [4]float64{6200, 16, 60, c.beta3}}
		s, r := c.load.record(t, 3, truth)
		f, err := fitClient(context.Background(), []*run{r}, s.prior(loadOf([]*run{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(f.Beta[3]-c.want) > 1e-3 {
			t.Errorf("%s: beta[3] is %.4g, want %.4g", c.name, f.Beta[3], c.want)
		}
		told := f.coefficients(f.told.x)
		if data, _ := f.intervals(); c.want == c.beta3 && math.Abs(told.Beta[2]-60) > data[beta2].High-data[beta2].Low {
			t.Errorf("%s: made with beta[2] of 60, fitted %.4g in %.4g", c.name, told.Beta[2], data[beta2])
		}
	}
}
