package policy

import (
	"strings"
	"testing"
)

// Ten replicas: the tenants b and c have the first and the next two tenths and a half, d has less than half a replica
// and still one, and others use the rest.
func TestPoolsByTenant(t *testing.T) {
	shares := map[string]any{"b": 0.2, "c": 0.25, "d": 0.01}
	r, v, _ := routerOf(t, Spec{Type: "pools", Params: map[string]any{"by": "tenant", "shares": shares, "tie": "first",
		"spill_at": 5.0}}, tieEnv(1)), View{Request: &Request{}}, 0
	for i := range int32(10) {
		v.Replicas = append(v.Replicas, Replica{Index: i, Inflight: 3})
	}
	for tenant, want := range map[string]int{"b": 0, "c": 2, "d": 5, "e": 5, "": 5} {
		if v.Request.Tenant = tenant; r.Route(&v).Candidate != want {
			t.Errorf("tenant %q goes to %d, want %d", tenant, r.Route(&v).Candidate, want)
		}
	}
	v.Replicas[0].Inflight, v.Replicas[1].Inflight, v.Replicas[9].Inflight = 5, 6, 2
	v.Request.Tenant = "b"
	if c := r.Route(&v); c.Candidate != 9 || c.Reason != "all replicas: the pool is full" {
		t.Errorf("the full pool sends to %+v", c)
	}
	v.Request.Class = "c"
	byClass := routerOf(t, Spec{Type: "pools",
		Params: map[string]any{"by": "slo_class", "shares": shares, "tie": "first"}}, tieEnv(1))
	if c := byClass.Route(&v); c.Candidate != 2 {
		t.Errorf("class c goes to %+v", c)
	}
}

// Shares and bounds that make no sense are rejected.
func TestPoolsRejectShares(t *testing.T) {
	for _, c := range []struct {
		params map[string]any
		want   string
	}{
		{map[string]any{"shares": map[string]any{"long": 0.5}}, "params.shares.long: the key must be a number"},
		{map[string]any{"shares": map[string]any{"0": 0.5}}, "params.shares.0: the key must be"},
		{map[string]any{"shares": map[string]any{"1": 0.7, "2": 0.5}}, "at most 1 in sum"},
		{map[string]any{"shares": map[string]any{}}, "at least one share"},
		{map[string]any{"shares": map[string]any{"1": 0.0}}, "between 1e-06 and 1"},
		{map[string]any{"spill_at": 0.5}, "between 1 and 1e+09"},
	} {
		_, err := planeWith("routing", Spec{Type: "pools", Params: c.params})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.params, err, c.want)
		}
	}
}
