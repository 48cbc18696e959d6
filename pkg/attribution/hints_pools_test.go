package attribution

import (
	"fmt"
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// Of 40 requests on four replicas a tenth has prompts of 5000 tokens: 20,000 of 23,600 prompt tokens, which is work for
// three replicas. They are of the tenant heavy, so that the other tenant sends 3,600 prompt tokens in 39 ms.
func TestPoolsFromTheRun(t *testing.T) {
	a := New(header(4))
	for i := range int64(40) {
		o := served(fmt.Sprint(i), stream.Index(i%4), i, 10)
		if o.Tenant = "calm"; i%10 == 0 {
			o.Tenant, o.InputTokens = "heavy", 5000
		}
		a.Outcome(&o, false)
	}
	a.stats.heavyTenant = a.heavyTenant()
	a.derive()
	a.computeStats()
	x := &proposal{a, &Pattern{losing: a.requests.list()}, &Findings{}}
	pool := func(by, key string) any {
		return map[string]any{"type": "pools", "params": map[string]any{"by": by, "shares": map[string]any{key: 0.75}}}
	}
	rate := 115385. // 1.25 * 3600 / 0.039
	for name, c := range map[string]struct {
		got  []Change
		want any
	}{
		"long prompts": {x.longPromptsApart(), pool("input_tokens", "4096")},
		"a tenant":     {x.heavyTenantApart(), pool("tenant", "heavy")},
		"rates": {x.equalRates(), map[string]any{"type": "token-bucket", "params": map[string]any{"per_tenant": true,
			"unit": "input_tokens", "refill_per_s": rate, "capacity": 2 * rate}}},
		// 23,640 tokens in 50 ms less 3,636 in 39 ms are 379,569 per second, for requests of 5001.
		"a limit": {x.limitTenant(), map[string]any{"type": "rate-limit", "params": map[string]any{"key": "tenant",
			"limit": noRateLimit, "limits": map[string]any{"heavy": 75.0}, "window_s": 1.0, "action": "reject"}}},
		"a share": {x.boundShare(), map[string]any{"type": "tenant-quota", "params": map[string]any{"share": 1.0,
			"shares": map[string]any{"heavy": 0.5}}}},
	} {
		if len(c.got) != 1 || !cmp.Equal(c.got[0].To, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	own := map[string]any{"refills_per_s": map[string]any{"heavy": 75.0}}
	x.topology.config = map[string]any{"policies": map[string]any{"admission": map[string]any{"type": "token-bucket",
		"params": own}}}
	bucket := x.topology.Policies["admission"]
	bucket.Type = "token-bucket"
	x.topology.Policies["admission"] = bucket
	if got := x.admitMore(); len(got) != 1 || !cmp.Equal(got[0].To, map[string]any{"type": alwaysAdmit}) {
		t.Errorf("the limit of one tenant is not lifted: %v", got)
	}
	if got := x.lossesApart(); got != nil {
		t.Errorf("all are of one class, but it gets a pool: %v", got)
	}
}
