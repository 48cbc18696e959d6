package attribution

import (
	"testing"

	"blis/pkg/stream"
)

// TestRequestsPrefilledBefore: x waits from 100 ms, enters a batch at 200 ms and has its first token at 300 ms.
// Before it come a request that is being prefilled when x is enqueued, one that waits before it, one of its batch that
// was enqueued earlier, and one that came later and overtook it. A request that starts after x is not ahead of it.
func TestRequestsPrefilledBefore(t *testing.T) {
	for _, c := range []struct {
		name                         string
		enqueued, started, prefilled int64 // ms
		isAhead, isStarted           bool
	}{
		{"decoding", 10, 20, 90, false, false},
		{"its first token when x is enqueued", 10, 20, 100, false, false},
		{"being prefilled", 10, 20, 150, true, false},
		{"in the queue", 50, 150, 180, true, true},
		{"same batch, enqueued earlier", 90, 200, 300, true, true},
		{"same batch, enqueued later", 110, 200, 300, false, true},
		{"overtakes it", 150, 180, 250, true, true},
		{"starts after it", 110, 250, 400, false, true},
		{"starts after its first token", 110, 350, 400, false, false},
	} {
		a := New(header(1))
		other := func(id string) {
			o := served(id, 0, c.enqueued, c.started-c.enqueued)
			o.FirstTokenUS, o.CompletedUS = stream.Micros(1000*c.prefilled), 900_000
			o.CachedTokens, o.OutputTokens, o.Tenant = 30, 7, "t"
			a.Outcome(&o, false)
		}
		x := served("x", 0, 100, 100)
		x.FirstTokenUS, x.CompletedUS = 300_000, 500_000
		a.Outcome(&x, false)
		other("y")
		a.derive()
		ahead, started, _ := a.requestsBefore(0)
		check := func(what string, g RequestGroup, want bool, tokens int64) {
			t.Helper()
			if !want {
				tokens = 0
			}
			if g.Count > 0 != want || g.Tokens != tokens {
				t.Errorf("%s, %s: %+v, want %t with %d tokens", c.name, what, g, want, tokens)
			}
			if want && (g.Largest[0] != Work{"y", tokens} || g.Tenants[0] != Share{"t", 1}) {
				t.Errorf("%s, %s: %+v", c.name, what, g)
			}
		}
		check("ahead", ahead, c.isAhead, 70)
		check("started", started, c.isStarted, 77)
	}
}
