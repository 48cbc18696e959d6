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
	a.computeStats()
	x := &proposal{a, &Pattern{losing: a.requests}, &Findings{}}
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
	} {
		if len(c.got) != 1 || !cmp.Equal(c.got[0].To, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if got := x.lossesApart(); got != nil {
		t.Errorf("all are of one class, but it gets a pool: %v", got)
	}
}
