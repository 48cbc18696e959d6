package policy

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

type params = map[string]any

// tenantLimits are policies with limits of the tenant a, with the same policies where those are the limits of all.
var tenantLimits = map[string]struct{ own, others, all Spec }{
	"token-bucket": {
		own: Spec{Type: "token-bucket", Params: params{"per_tenant": true, "capacity": 9, "refill_per_s": 30,
			"capacities": params{"a": 2}, "refills_per_s": params{"a": 11.5}}},
		others: Spec{Type: "token-bucket", Params: params{"per_tenant": true, "capacity": 9, "refill_per_s": 30}},
		all:    Spec{Type: "token-bucket", Params: params{"per_tenant": true, "capacity": 2, "refill_per_s": 11.5}},
	},
	"token-bucket in tokens": {
		own: Spec{Type: "token-bucket", Params: params{"unit": "input_tokens", "per_tenant": true, "capacity": 9000,
			"refill_per_s": 30000, "refills_per_s": params{"a": 0, "absent": 1}}},
		others: Spec{Type: "token-bucket", Params: params{"unit": "input_tokens", "per_tenant": true,
			"capacity": 9000, "refill_per_s": 30000}},
		all: Spec{Type: "token-bucket", Params: params{"unit": "input_tokens", "per_tenant": true,
			"capacity": 9000, "refill_per_s": 0}},
	},
	"rate-limit": {
		own: Spec{Type: "rate-limit", Params: params{"key": "tenant", "limit": 8, "window_s": 0.3,
			"action": "delay", "limits": params{"a": 3}}},
		others: Spec{Type: "rate-limit", Params: params{"key": "tenant", "limit": 8, "window_s": 0.3,
			"action": "delay"}},
		all: Spec{Type: "rate-limit", Params: params{"key": "tenant", "limit": 3, "window_s": 0.3,
			"action": "delay"}},
	},
	"tenant-quota": {
		own:    Spec{Type: "tenant-quota", Params: params{"min_inflight": 5, "shares": params{"a": 0.1}}},
		others: Spec{Type: "tenant-quota", Params: params{"min_inflight": 5}},
		all:    Spec{Type: "tenant-quota", Params: params{"min_inflight": 5, "share": 0.1}},
	},
}

// A tenant with a limit of its own is treated as if all had that limit, and the others as if it had none.
func TestLimitsOfSingleTenants(t *testing.T) {
	admitter := func(s Spec) Admitter {
		p, err := planeWith("admission", s)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Unused) > 0 {
			t.Fatalf("without effect: %v", p.Unused)
		}
		return p.Admission
	}
	for name, c := range tenantLimits {
		t.Run(name, func(t *testing.T) {
			checkConformance(t, Entry{Stage: "admission", Name: c.own.Type}, c.own)
			own, others, all := admitter(c.own), admitter(c.others), admitter(c.all)
			r := rand.New(rand.NewPCG(2, 3))
			now, different := int64(0), 0
			for i := range 3000 {
				now += r.Int64N(40_000)
				v, _ := randomView(r, now)
				v.Request.TenantID = int32(v.Request.Tenant[0] - 'a')
				got, want, other := own.Admit(v), others.Admit(v), all.Admit(v)
				if v.Request.Tenant == "a" {
					if want != other {
						different++
					}
					want = other
				}
				if got != want {
					t.Fatalf("request %d of %s: %+v, want %+v", i, v.Request.Tenant, got, want)
				}
			}
			if different < 100 {
				t.Errorf("the limit decides %d times", different)
			}
		})
	}
}

// Limits of a class are those of its window; with other keys than those of the table, limits have no effect.
func TestNamedLimitsNeedKeys(t *testing.T) {
	for _, c := range []struct {
		s               Spec
		tenants         int
		classes, unused []string
	}{
		{s: Spec{Type: "rate-limit", Params: params{"key": "class", "limits": params{"batch": 3}}},
			classes: []string{"batch"}},
		{s: Spec{Type: "rate-limit", Params: params{"key": "tenant", "limits": params{"b": 3, "a": 1}}},
			tenants: 2},
		{s: Spec{Type: "rate-limit", Params: params{"limits": params{"a": 3}}},
			unused: []string{"admission.params.limits"}},
		{s: Spec{Type: "token-bucket", Params: params{"capacities": params{"a": 3},
			"refills_per_s": params{"a": 3}}},
			unused: []string{"admission.params.capacities", "admission.params.refills_per_s"}},
	} {
		p, err := planeWith("admission", c.s)
		if err != nil {
			t.Fatal(err)
		}
		var unused []string
		for _, u := range p.Unused {
			unused = append(unused, u.Path)
		}
		if fmt.Sprint(p.Classes, len(p.Tenants), unused) != fmt.Sprint(c.classes, c.tenants, c.unused) {
			t.Errorf("%v: classes %v, tenants %v, without effect %v", c.s, p.Classes, p.Tenants, unused)
		}
	}
}
