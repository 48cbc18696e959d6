package policy

import (
	"math"
	"slices"
	"testing"
)

// TestTenantQuotaFloorCountsAllReplicas: no quota applies up to 8 requests per replica of the whole
// cluster, however few replicas can hold the request.
func TestTenantQuotaFloorCountsAllReplicas(t *testing.T) {
	p, err := planeWith("admission", Spec{Type: "tenant-quota"})
	if err != nil {
		t.Fatal(err)
	}
	v := &View{Request: &Request{Tier: Standard}, Tenant: Tenant{Active: 1000}, Replicas: make([]Replica, 1)}
	floor := int64(8 * testEnv.Replicas)
	for inflight, want := range map[int64]Action{9: Admit, floor: Admit, floor + 1: Reject} {
		v.Cluster = Cluster{Inflight: inflight, Tenants: 1}
		if got := p.Admission.Admit(v).Action; got != want {
			t.Errorf("%d in flight: %v, want %v", inflight, got, want)
		}
	}
}

// TestRoundRobinIsFair: each replica gets as many turns as possible, even if every other request
// has fewer candidates.
func TestRoundRobinIsFair(t *testing.T) {
	p, err := planeWith("routing", Spec{Type: "round-robin"})
	if err != nil {
		t.Fatal(err)
	}
	all := []Replica{{Index: 3}, {Index: 4}, {Index: 8}, {Index: 9}}
	turns := map[int32]int{}
	var order []int32
	for i := range 400 {
		v := &View{Replicas: all[i%2*2:]}
		c := p.Routing.Route(v)
		if index := v.Replicas[c.Candidate].Index; i%2 == 0 {
			turns[index]++
			order = append(order, index)
		}
	}
	if turns[3] != 100 || turns[4] != 100 {
		t.Errorf("turns %v", turns)
	}
	q := p.Clone()
	order = order[:0]
	for range 8 {
		v := &View{Replicas: all}
		order = append(order, v.Replicas[q.Routing.Route(v).Candidate].Index)
	}
	if !slices.Equal(order[:4], order[4:]) {
		t.Errorf("turns %v among constant candidates", order)
	}
}

// TestRequestPriority: a lower number asks for more.
func TestRequestPriority(t *testing.T) {
	p, err := planeWith("priority", Spec{Type: "request-priority"})
	if err != nil {
		t.Fatal(err)
	}
	for asked, want := range map[float64]float64{-5: 5, 0: 0, 7: -7} {
		v := &View{Request: &Request{Requested: asked, Priority: 3}}
		x, _ := p.Priority.Priority(v, new([MaxHints]float64))
		if x != want || math.Signbit(x) != (want < 0) {
			t.Errorf("%g has priority %g, want %g", asked, x, want)
		}
	}
}

// TestSLOScores: a class with a score has it; others have default_score or, without one, their own priority.
func TestSLOScores(t *testing.T) {
	for _, c := range []struct {
		params map[string]any
		want   [2]float64 // of a realtime and of a batch request
	}{
		{nil, [2]float64{7, 7}},
		{map[string]any{"scores": map[string]any{"realtime": 3.0}}, [2]float64{3, 7}},
		{map[string]any{"realtime_score": 3.0}, [2]float64{3, 7}},
		{map[string]any{"default_score": 5.0}, [2]float64{5, 5}},
		{map[string]any{"batch_score": 1.0, "default_score": 5.0}, [2]float64{5, 1}},
	} {
		p, err := planeWith("priority", Spec{Type: "slo-based", Params: c.params})
		if err != nil {
			t.Fatal(err)
		}
		for i, class := range []string{"realtime", "batch"} {
			v := &View{Request: &Request{Class: class, Priority: 7}}
			if x, _ := p.Priority.Priority(v, new([MaxHints]float64)); x != c.want[i] {
				t.Errorf("%v: %s has priority %g, want %g", c.params, class, x, c.want[i])
			}
		}
	}
	both := map[string]any{"batch_score": 1.0, "scores": map[string]any{"batch": 2.0}}
	if _, err := planeWith("priority", Spec{Type: "slo-based", Params: both}); err == nil {
		t.Error("a class has two scores")
	}
}
