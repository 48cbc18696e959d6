package policy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestExtremesChooseTheSame: with and without extremes a router takes the same replica, with the same score and the
// same number of ties, while loads change.
func TestExtremesChooseTheSame(t *testing.T) {
	for seed := range uint64(120) {
		d := rand.New(rand.NewPCG(seed, 1))
		n := minReplicas + d.IntN(100)
		tie := map[string]any{"tie": []string{tieRandom, tieFirst, tieLeastInflight}[seed%3]}
		s := Spec{Type: "least-loaded", Params: tie}
		switch d.IntN(4) {
		case 0:
			tie["load"] = "snapshot"
		case 1, 2:
			s.Type = "weighted"
			for _, name := range []string{"prefix-affinity", "queue-depth", "running-requests", "kv-utilization",
				"active-requests"} {
				tie[name] = float64(d.IntN(3))
			}
			tie["queue-depth"] = 1.5
		}
		env := Env{Models: []string{"m"}, Replicas: n, Candidates: n, Seed: func(string) uint64 { return seed }}
		quick, plain := routerOf(t, s, env), routerOf(t, s, env)
		v := viewOf(n)
		for i := range v.Replicas {
			v.Replicas[i].Blocks = 4
		}
		x, width := NewExtremes(v.Replicas), int32(1+d.IntN(6))
		for v.Draw.Request = range int64(200) {
			for range d.IntN(40) {
				r := &v.Replicas[d.IntN(n)]
				r.Inflight, r.QueueDepth, r.Running = d.Int32N(width), d.Int32N(width), d.Int32N(width)
				r.KVUtil = float64(d.Int32N(width)) / 7
				x.Changed(r.Index)
			}
			v.Matched = v.Matched[:0]
			for i := range v.Replicas {
				if v.Replicas[i].Matched = 0; d.IntN(30) == 0 {
					v.Replicas[i].Matched = 1 + d.Int32N(4)
					v.Matched = append(v.Matched, int32(i))
				}
			}
			v.Extremes = nil
			want := fmt.Sprint(plain.Route(v))
			v.Extremes = x
			if got := fmt.Sprint(quick.Route(v)); got != want {
				t.Fatalf("seed %d, %+v, decision %d: %s, without extremes %s", seed, s, v.Draw.Request, got, want)
			}
			all, few := &Trace{}, &Trace{Most: 4}
			v.Extremes, v.Trace = nil, all
			all.Reset(n)
			plain.Route(v)
			v.Extremes, v.Trace = x, few
			few.Reset(n)
			chosen := quick.Route(v).Candidate
			v.Trace = nil
			if err := compareTraces(all, few, chosen); err != nil {
				t.Fatalf("seed %d, %+v, decision %d: %v", seed, s, v.Draw.Request, err)
			}
		}
	}
}

// compareTraces compares the record of the best candidates with that of all.
func compareTraces(all, few *Trace, chosen int) error {
	n := len(all.Scores)
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(x, y int32) int {
		if all.LowerIsBetter {
			x, y = y, x
		}
		return cmp.Compare(all.Scores[y], all.Scores[x])
	})
	if few.LowerIsBetter != all.LowerIsBetter || !slices.Equal(few.Scorers, all.Scorers) || len(few.Best) > few.Most+1 {
		return fmt.Errorf("%+v", few)
	}
	for _, i := range append(order[:few.Most:few.Most], int32(chosen)) {
		if !slices.Contains(few.Best, i) || few.Scores[i] != all.Scores[i] {
			return fmt.Errorf("candidate %d has score %v, not %v; the best are %v", i, few.Scores[i], all.Scores[i],
				few.Best)
		}
		for k := range all.Scorers {
			if got, want := few.Terms[k*n+int(i)], all.Terms[k*n+int(i)]; got != want {
				return fmt.Errorf("candidate %d: term %s is %v, not %v", i, all.Scorers[k], got, want)
			}
		}
	}
	return nil
}
