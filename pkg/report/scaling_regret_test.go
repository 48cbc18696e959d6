package report

import (
	"math"
	"testing"

	"blis/pkg/attribution"
	"blis/pkg/stream"
)

func TestScalingRegretText(t *testing.T) {
	g := attribution.ScalingRegret{Decision: "dec-000007", Deployment: "main", AtUS: 30_000_000, Current: 2, Desired: 4}
	const begin = "main at 30 s, 2 -> 4 replicas (dec-000007): "
	if got := scalingRegretText(&g); got != begin+"no other time is better beyond the run's own sensitivity" {
		t.Error(got)
	}
	g.Best = &stream.ScalingAlternative{Change: stream.ScalingEarlier, GPUS: -30,
		All: &stream.Difference{SLOGained: 5, SLOLost: 2, E2EMS: 1234}}
	if got := scalingRegretText(&g); got != begin+"better one look earlier: 3 more requests meet their targets, "+
		"E2E of all requests -1234 ms, GPU seconds +30.0" {
		t.Error(got)
	}
	g.Best = &stream.ScalingAlternative{Change: stream.ScalingNever, GPUS: 30, All: &stream.Difference{E2EMS: 5}}
	if got := scalingRegretText(&g); got != begin+"better not at this look: as many requests meet their targets, "+
		"E2E of all requests -5.0 ms, GPU seconds -30.0" {
		t.Error(got)
	}
	for x, want := range map[float64]string{0: "+0.0", math.Copysign(0, -1): "+0.0", -0.04: "+0.0", -0.06: "-0.1"} {
		if got := signed(x); got != want {
			t.Errorf("signed(%v) = %s, want %s", x, got, want)
		}
	}
}
