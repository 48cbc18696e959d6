package calibrate

import (
	"math"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/latency"
)

// TestHostTimeByHand: a step of 20 ms of a GPU alone takes 1.1 ms more on a host that
// schedules synchronously and 0.8 on one that does not, each to 0.4 ms, 2 % of it.
func TestHostTimeByHand(t *testing.T) {
	for _, c := range []struct {
		async bool
		step  float64
	}{{false, 21100}, {true, 20800}} {
		r := &Report{setup: &setup{options: &Options{}, deployment: &cluster.Deployment{}}}
		r.setup.deployment.Engine.AsyncScheduling = c.async
		r.fit.method = "by hand"
		r.fit.Beta = [4]float64{15000, 20, 50, 0}
		if err := r.addHost(); err != nil {
			t.Fatal(err)
		}
		l := load{sequences: 100, least: 0, most: 200}
		r.fit.load = l
		m, err := r.slower(0)
		if err != nil {
			t.Fatal(err)
		}
		if us := float64(m.Step(latency.Batch{Decode: 100})); us != c.step {
			t.Errorf("async %v: a step of %g us, want %g", c.async, us, c.step)
		}
		if d, err := r.doubts(l); err != nil || math.Abs(d.total()-400/c.step) > 1e-9 {
			t.Errorf("async %v: in doubt by %g, %v, want %g", c.async, d.total(), err, 400/c.step)
		}
		r.fit.Beta[0] = -1
		if _, err := r.doubts(l); err == nil {
			t.Error("a model that cannot be is in no doubt")
		}
	}
}
