package metrics

import (
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestEnergy: replicas of 7.2 and 3.6 MJ in 2 hours are 3 kWh, 1500 W, 21.6 J for each of 500,000 output tokens and, at
// 400 g per kWh, 1.2 kg of CO2.
func TestEnergy(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	count := func(tokens int64, carbon *float64, counted bool, replicas ...*EnergyTotals) *Energy {
		a := New(nil)
		state := stream.StateCompleted
		if tokens == 0 {
			state = stream.StateFailed
		}
		a.Add(&stream.Outcome{ID: "r", State: state, InputTokens: 9, OutputTokens: tokens, CompletedUS: 7200e6})
		for _, e := range replicas {
			a.AddReplica(ReplicaTotals{Deployment: "d", GPUs: 1, UpUS: 7200e6, Energy: e})
		}
		if counted {
			a.CountEnergy(carbon)
		}
		return a.Raw().Energy
	}
	both := []*EnergyTotals{{J: 7.2e6, IdleJ: 1e6}, {J: 3.6e6, IdleJ: 2e6}}
	for _, c := range []struct {
		name string
		have *Energy
		want *Energy
	}{
		{"all", count(500_000, number(400), true, both...), &Energy{TotalJ: 10.8e6, IdleJ: 3e6,
			PerOutputToken: number(21.6), MeanW: number(1500), CarbonG: number(1200)}},
		{"no carbon", count(500_000, nil, true, both...), &Energy{TotalJ: 10.8e6, IdleJ: 3e6,
			PerOutputToken: number(21.6), MeanW: number(1500)}},
		{"carbon of 0", count(500_000, number(0), true, both...), &Energy{TotalJ: 10.8e6, IdleJ: 3e6,
			PerOutputToken: number(21.6), MeanW: number(1500), CarbonG: number(0)}},
		{"nothing completed", count(0, nil, true, both...), &Energy{TotalJ: 10.8e6, IdleJ: 3e6, MeanW: number(1500)}},
		{"one is unknown", count(500_000, nil, true, both[0], nil), nil},
		{"not counted", count(500_000, nil, false, both...), nil},
	} {
		if diff := cmp.Diff(c.want, c.have); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// TestEnergyOfTwoRuns: sums have carbon if both have it, and are divided by what both have done.
func TestEnergyOfTwoRuns(t *testing.T) {
	number := func(x float64) *float64 { return &x }
	a := &Energy{TotalJ: 100, IdleJ: 10, PerOutputToken: number(1), MeanW: number(2), CarbonG: number(3)}
	b := &Energy{TotalJ: 50, IdleJ: 5, CarbonG: number(4)}
	sum := a.Plus(b)
	sum.Divide(300, 0)
	want := &Energy{TotalJ: 150, IdleJ: 15, PerOutputToken: number(0.5), CarbonG: number(7)}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Error(diff)
	}
	b.CarbonG = nil
	if sum := a.Plus(b); sum.CarbonG != nil || sum.TotalJ != 150 {
		t.Errorf("carbon of one: %+v", sum)
	}
	var none *Energy
	if a.Plus(none) != nil || none.Plus(a) != nil {
		t.Error("a run without energy has some")
	}
}
