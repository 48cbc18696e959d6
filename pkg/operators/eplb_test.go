package operators

import (
	"math"
	"testing"
)

// TestBalancedExperts: with the loads 90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183 and 86 of 12 experts and 4
// redundant ones on 8 GPUs, an example of github.com/deepseek-ai/EPLB, the experts with 183, 165, 132 and 104 have two
// copies. In order the copies have 91.5, 91.5, 90, 86, 82.5, 82.5, 73, 66, 66, 61, 56, 52, 52, 40, 39, 4. The first
// eight go to GPUs of their own, and each of the others to the one with the lowest load: 66 to 66, 61 to 73, 56 and 52
// to 82.5, 52 to 86, 40 to 90, 39 and 4 to 91.5. The busiest has 138.5, the mean is 1033/8.
func TestBalancedExperts(t *testing.T) {
	loads := ExpertLoads{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86}
	if got, want := loads.Balanced(8, 4), 138.5*8/1033; math.Abs(got-want) > 1e-9 {
		t.Errorf("%g, want %g", got, want)
	}
	// Without redundant experts 4 GPUs have three each: 183+61+4, 165+73+39, 132+86+40, 104+90+56.
	if got, want := loads.Balanced(4, 0), 277.0*4/1033; math.Abs(got-want) > 1e-9 {
		t.Errorf("without redundant experts: %g, want %g", got, want)
	}
}

// TestExpertLoads: equal loads are balanced everywhere. By a power law the busiest GPU has more than the mean, and the
// balancer lowers that, nearly to the mean with redundant experts.
func TestExpertLoads(t *testing.T) {
	even := LoadsOf("balanced", 64)
	if a, b := even.Linear(8), even.Balanced(8, 0); math.Abs(a-1)+math.Abs(b-1) > 1e-9 {
		t.Errorf("equal loads: %g and %g", a, b)
	}
	skewed := LoadsOf("power_law_1.2", 256)
	sum := 0.0
	for _, x := range skewed {
		sum += x
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("shares add up to %g", sum)
	}
	linear := skewed.Linear(64)
	packed, copied := skewed.Balanced(64, 0), skewed.Balanced(64, 64)
	t.Logf("64 GPUs with 4 experts each: %.2f, with EPLB %.2f, with 64 redundant experts %.2f", linear, packed, copied)
	if linear < 1.5 || packed > 0.9*linear || copied > 0.9*packed || copied < 1-1e-9 {
		t.Errorf("the busiest of 64 GPUs has %g, with EPLB %g, with 64 redundant experts %g", linear, packed, copied)
	}
}

// TestBalancerLowersTime: with the balancer experts take as long as without it for as many fewer tokens as the busiest
// GPU has less.
func TestBalancerLowersTime(t *testing.T) {
	c := &compiler{machine: Machine{EPLB: true, RedundantExperts: 64, Distribution: "power_law_1.2"}}
	want := experts{experts: 256, topK: 8, ep: 64, tp: 1}
	us := func(tokens float64) float64 { return 100 + tokens }
	loads := LoadsOf("power_law_1.2", 256)
	factor := loads.Balanced(64, 64) / loads.Linear(64)
	if got, expect := c.balanced(us, want)(1000), 100+1000*factor; math.Abs(got-expect) > 1e-9 || factor > 0.3 {
		t.Errorf("%g µs, want %g, for %g times the tokens", got, expect, factor)
	}
	if c.machine.EPLB = false; c.balanced(us, want)(1000) != 1100 {
		t.Error("times change without the balancer")
	}
}
