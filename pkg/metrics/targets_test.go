package metrics

import (
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestWithTargets: what depends on targets is that of other metrics, in all groups, and the rest is not.
func TestWithTargets(t *testing.T) {
	raw := func(completed, met int64, classes ...string) *Raw {
		g := func() Group {
			return Group{Requests: Requests{Completed: completed}, Goodput: &Goodput{Met: met},
				Targeted: &Targeted{TTFT: &TargetedLatency{Count: met}}}
		}
		r := &Raw{Group: g(), Sessions: &Sessions{Offered: completed, Attainment: new(float64(met))},
			Cls: map[string]*Group{}, Tenants: map[string]*Group{}, Models: map[string]*Group{}}
		for _, name := range classes {
			for _, groups := range []map[string]*Group{r.Cls, r.Tenants, r.Models} {
				one := g()
				groups[name] = &one
			}
		}
		return r
	}
	r := raw(9, 1, "a", "b")
	got, want := r.WithTargets(raw(5, 4, "a")), raw(9, 4, "a", "b")
	for _, groups := range []map[string]*Group{want.Cls, want.Tenants, want.Models} {
		groups["b"].Goodput, groups["b"].Targeted = nil, nil // the other metrics have no such group
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(raw(9, 1, "a", "b"), r); diff != "" {
		t.Errorf("the metrics have changed:\n%s", diff)
	}
}

// TestPredictionsOfNothing: a router that always predicts 0 cached tokens is compared, too.
func TestPredictionsOfNothing(t *testing.T) {
	for _, predicts := range []bool{false, true} {
		a := New(nil)
		o := stream.Outcome{State: stream.StateCompleted, ArrivalUS: 1, ScheduledUS: 2, FirstTokenUS: 3, CompletedUS: 3,
			AdmittedUS: 1, RoutedUS: 1, EnqueuedUS: 1, EndedUS: stream.Never, InputTokens: 5, OutputTokens: 1,
			GeneratedTokens: 1, CachedTokens: 3, LoadedTokens: &stream.LoadedTokens{CPU: 1}, Tenant: "a"}
		a.Add(&o)
		o.Tenant = "b"
		a.Add(&o)
		if predicts {
			a.HasPrefixPrediction()
		}
		raw := a.Raw()
		if s := raw.Shadow; (s != nil) != predicts || predicts && (s.Requests != 2 || s.UnderTokens != 8) {
			t.Errorf("predicts %v: %+v", predicts, s)
		}
		if f := raw.Fairness; f == nil || f.Jain != 1 { // each tenant got the one token that it asked for
			t.Errorf("fairness %+v", f)
		}
	}
}
