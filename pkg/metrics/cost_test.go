package metrics

import (
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestCostOfDeployments: a has two replicas of 2 GPUs, up for 30 and 60 minutes, at 4 for a GPU and hour: 90 minutes of
// 2 GPUs cost 12. b has one GPU for an hour without a price. Of 500 tokens of a 300 were within their targets, which is
// 12/300 and 10800 s/300 for a token; of b all 200.
func TestCostOfDeployments(t *testing.T) {
	add := func(a *Accumulator) *Cost {
		for i, minutes := range []int64{30, 60} {
			a.AddReplica(ReplicaTotals{Deployment: "a", Index: stream.Index(i), GPUs: 2, UpUS: minutes * 60e6,
				PerGPUHour: 4})
		}
		a.AddReplica(ReplicaTotals{Deployment: "b", GPUs: 1, UpUS: 3600e6})
		return a.Raw().Cost
	}
	classes := []stream.SLOClass{{Name: "c", Targets: stream.Targets{TTFTMS: 1}}}
	served := func(a *Accumulator) *Accumulator {
		for _, o := range []struct {
			deployment string
			tokens     int64
			first      stream.Micros
		}{{"a", 300, 1000}, {"a", 200, 1001}, {"b", 200, 999}} {
			a.Add(&stream.Outcome{ID: "r", State: stream.StateCompleted, SLOClass: "c", Deployment: o.deployment,
				InputTokens: o.tokens - 10, OutputTokens: 10, GeneratedTokens: 10, FirstTokenUS: o.first,
				CompletedUS: 5000, ScheduledUS: 0})
		}
		return a
	}
	if c := add(served(New(classes))); c.Deployments != nil || c.PerMillionWithinSLO != nil || *c.Total != 12 {
		t.Errorf("not divided: %+v", c)
	}
	a := New(classes)
	a.DivideCost()
	c := add(served(a))
	number := func(x float64) *float64 { return &x }
	want := map[string]*DeploymentCost{
		"a": {GPUS: 10800, ReplicaS: 5400, Total: number(12), PerMillionWithinSLO: number(10800e6 / 300),
			TotalPerMillionWithinSLO: number(12.0 / 300 * 1e6)},
		"b": {GPUS: 3600, ReplicaS: 3600, PerMillionWithinSLO: number(3600e6 / 200)}}
	if diff := cmp.Diff(want, c.Deployments); diff != "" || *c.Total != 12 || *c.PerMillionWithinSLO != 14400e6/500 {
		t.Errorf("divided, of all %v and %v:\n%s", *c.Total, *c.PerMillionWithinSLO, diff)
	}
}

// TestAveragesOfScale: a run of no length, or without replicas, has no averages.
func TestAveragesOfScale(t *testing.T) {
	s := &Scale{}
	for _, c := range []struct {
		up, busy float64
		us       int64
	}{{0, 0, 10}, {5, 2, 0}} {
		if got := s.averages(c.up, c.busy, c.us); got.AvgReplicas != nil || got.Efficiency != nil {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := s.averages(20, 5, 10); *got.AvgReplicas != 2 || *got.Efficiency != 0.25 || s.AvgReplicas != nil {
		t.Errorf("20 us in a run of 10: %+v", got)
	}
}
