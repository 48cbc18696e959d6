package calibrate

import (
	"regexp"
	"strconv"
	"testing"

	"blis/pkg/cluster"
)

// TestAdviceIsNoOverload: the workload's high rate, at the mean of its prompts and
// answers, leaves GPUs half of the time, of coefficients with costly prompts.
func TestAdviceIsNoOverload(t *testing.T) {
	d := &cluster.Deployment{}
	d.Engine.MaxModelLen, d.Engine.MaxNumSeqs = 8192, 256
	f := &fitted{}
	f.Beta = [4]float64{8000, 25, 60, 0.0391}
	a := (&setup{deployment: d}).advise(f, "alike")
	number := func(of string) float64 {
		v, err := strconv.ParseFloat(regexp.MustCompile(of + `: ([0-9.]+)`).FindStringSubmatch(a.Spec)[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	high := number("aggregate_rate") * number("start_time: 300000000, multiplier")
	if busy := high * (25*(128+4096)/2 + 256*60) * 1e-6; busy > 0.55 || busy < 0.3 {
		t.Errorf("%g requests/s keep GPUs busy for %g of the time", high, busy)
	}
}
