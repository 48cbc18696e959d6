package policy

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// tieEnv seeds streams from their names and a seed.
func tieEnv(seed uint64) Env {
	return Env{Models: []string{"m"}, Replicas: 8, Candidates: 8, Seed: func(name string) uint64 {
		d := rng(seed)
		for _, c := range name {
			d = rng(d.next() ^ uint64(c))
		}
		return d.next()
	}}
}

// routerOf builds a routing policy.
func routerOf(t *testing.T, s Spec, env Env) Router {
	t.Helper()
	b := &Bundle{Routing: s}
	b.Complete()
	p, err := Build(b, env)
	if err != nil {
		t.Fatal(err)
	}
	return p.Routing
}

// tiedView has eight replicas, of which those in best are equally good for every policy.
func tiedView(best ...int) *View {
	v := &View{Request: &Request{SessionID: -1, InputTokens: 512, Tier: Standard, Model: "m"}}
	for i := range 8 {
		x := Replica{Index: int32(i), Inflight: 5, Blocks: 32, Stats: &Stats{MaxSeqs: 8}}
		x.Snapshot = Snapshot{QueueDepth: 3, Running: 2, KVUtil: 0.5}
		if slices.Contains(best, i) {
			x.Inflight, x.Matched, x.Snapshot = 1, 32, Snapshot{Cached: 32}
		}
		v.Replicas = append(v.Replicas, x)
	}
	return v
}

// policiesWithTies are all routing policies with the parameter tie, by name.
func policiesWithTies() map[string]Spec {
	score := "replica.prefix_match - 0.1 * replica.inflight"
	return map[string]Spec{
		"least-loaded":     {Type: "least-loaded"},
		"weighted":         {Type: "weighted"},
		"prefix-affinity":  {Type: "prefix-affinity"},
		"session-affinity": {Type: "session-affinity"},
		"pools":            {Type: "pools", Params: map[string]any{"shares": map[string]any{"4096": 1.0}}},
		"expression":       {Type: "expression", Score: score},
		"expression with a filter": {Type: "expression", Filter: "replica.queue_depth < 3 || replica.index == 0",
			Score: score},
		"expression that fails": {Type: "expression", Score: "0 * replica.inflight / 0"},
		"tree of numbers": {Type: "tree", Root: &Node{If: "replica.queue_depth < 3", Then: &Node{Value: 2.0},
			Else: &Node{Value: 1.0}}},
		"filter": {Type: "filter", Filter: "replica.queue_depth < 9", Use: &Spec{Type: "least-loaded"}},
		"tree of policies": {Type: "tree", Root: &Node{If: "req.input_tokens > 100",
			Then: &Node{Use: &Spec{Type: "weighted"}}, Else: &Node{Use: &Spec{Type: "least-loaded"}}}},
	}
}

// chiSquared is the statistic of counts with the given expected shares.
func chiSquared(counts []int, shares []float64) float64 {
	n, sum := 0, 0.0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		expected := float64(n) * shares[i]
		sum += (float64(c) - expected) * (float64(c) - expected) / expected
	}
	return sum
}

// equalShares are n shares of 1/n.
func equalShares(n int) []float64 { return slices.Repeat([]float64{1 / float64(n)}, n) }

// limit999 is the 99.9 % quantile of the chi-squared distribution with the given degrees of freedom, by
// the approximation of Wilson and Hilferty (within 3 %).
func limit999(degrees int) float64 {
	v := 2 / (9 * float64(degrees))
	return float64(degrees) * math.Pow(1-v+3.0902*math.Sqrt(v), 3)
}

// testUniform fails if a chi-squared test rejects that all n are equally likely.
func testUniform(t *testing.T, what string, counts []int) {
	t.Helper()
	n := len(counts)
	if x := chiSquared(counts, equalShares(n)); x > limit999(n-1) {
		t.Errorf("%s %v: chi-squared %.1f, limit %.1f", what, counts, x, limit999(n-1))
	}
}

// TestTiesAreUniform: every policy chooses each of the tied replicas equally often, whatever it
// chose before, and no other replica. The seed is fixed.
func TestTiesAreUniform(t *testing.T) {
	const n = 24000
	for name, s := range policiesWithTies() {
		for _, best := range [][]int{{1, 4, 6}, {0, 1, 2, 3, 4, 5, 6, 7}, {2, 7}} {
			t.Run(fmt.Sprint(name, best), func(t *testing.T) {
				r, v, k := routerOf(t, s, tieEnv(1)), tiedView(best...), len(best)
				counts, pairs, last := make([]int, k), make([]int, k*k), 0
				for v.Draw.Request = range int64(n) {
					c := r.Route(v)
					at := slices.Index(best, c.Candidate)
					if at < 0 || c.Tied != k {
						t.Fatalf("%+v", c)
					}
					counts[at]++
					pairs[last*k+at]++
					last = at
				}
				testUniform(t, "choices", counts)
				testUniform(t, "pairs of choices", pairs)
			})
		}
	}
}

// TestTwoChoicesAreUniform: of eight equal replicas power-of-two takes each equally often.
func TestTwoChoicesAreUniform(t *testing.T) {
	r, v, counts := routerOf(t, Spec{Type: "power-of-two"}, tieEnv(1)), tiedView(), make([]int, 8)
	for v.Draw.Request = range int64(24000) {
		counts[r.Route(v).Candidate]++
	}
	testUniform(t, "choices", counts)
}

// TestTiesAreUniformEverywhere: of 2 to 16 tied replicas each is drawn equally often, over seeds with one
// request and over requests with one seed.
func TestTiesAreUniformEverywhere(t *testing.T) {
	for n := 2; n <= 16; n++ {
		v := viewOf(n)
		bySeed, byRequest := make([]int, n), make([]int, n)
		draw := func(seed, request int) int {
			var c Choice
			v.Draw.Request = int64(request)
			same := ties{tieRandom, draws(seed)}
			same.settle(&c, v, n, func(int) bool { return true })
			return c.Candidate
		}
		for i := range 1000 * n {
			bySeed[draw(i, 7)]++
			byRequest[draw(7, i)]++
		}
		testUniform(t, "by seed", bySeed)
		testUniform(t, "by request", byRequest)
	}
}

// TestTiesOfDifferentSets: without its winner a tie has another one, without anybody else the same.
func TestTiesOfDifferentSets(t *testing.T) {
	drawn := ties{tieRandom, 3}
	v := viewOf(6)
	for v.Draw.Request = range int64(500) {
		var all Choice
		drawn.settle(&all, v, 6, func(int) bool { return true })
		for without := range 6 {
			c := Choice{}
			if without == 0 {
				c.Candidate = 1
			}
			drawn.settle(&c, v, 5, func(i int) bool { return i != without })
			if (c.Candidate == all.Candidate) == (without == all.Candidate) {
				t.Fatalf("request %d: %d of all, %d without %d", v.Draw.Request, all.Candidate, c.Candidate, without)
			}
		}
	}
}

// TestRepeatedDecisionsDrawAgain: another decision about the same request has other numbers.
func TestRepeatedDecisionsDrawAgain(t *testing.T) {
	v, counts := viewOf(2), make([]int, 4)
	r := routerOf(t, Spec{Type: "random"}, tieEnv(1))
	for v.Draw.Request = range int64(4000) {
		v.Draw.Repeat = 0
		a := r.Route(v).Candidate
		v.Draw.Repeat = 1
		counts[2*a+r.Route(v).Candidate]++
	}
	testUniform(t, "pairs", counts)
}

// TestOneBestDrawsNothing: decisions without a tie do not change the numbers of later ones.
func TestOneBestDrawsNothing(t *testing.T) {
	for name, s := range policiesWithTies() {
		a, b := routerOf(t, s, tieEnv(2)), routerOf(t, s, tieEnv(2))
		tied, single := tiedView(1, 4, 6), tiedView(3)
		for tied.Draw.Request = range int64(200) {
			if c := b.Route(single); c.Candidate != 3 || c.Tied != 0 {
				t.Fatalf("%s: %+v", name, c)
			}
			if x, y := a.Route(tied), b.Route(tied); x != y {
				t.Fatalf("%s: %+v and %+v", name, x, y)
			}
		}
	}
}

// TestTieRules: first is the lowest index and draws nothing; least-inflight is the fewest in
// flight, and of several of those each equally often.
func TestTieRules(t *testing.T) {
	v := tiedView(1, 3, 4, 6)
	v.Replicas[1].Inflight = 2
	s := Spec{Type: "expression", Score: "replica.prefix_match", Params: map[string]any{"tie": "first"}}
	r := routerOf(t, s, tieEnv(1))
	for range 100 {
		if c := r.Route(v); c.Candidate != 1 || c.Tied != 0 {
			t.Fatalf("first: %+v", c)
		}
	}
	s.Params["tie"] = "least-inflight"
	r = routerOf(t, s, tieEnv(1))
	counts := make([]int, 3)
	for v.Draw.Request = range int64(12000) {
		c := r.Route(v)
		at := slices.Index([]int{3, 4, 6}, c.Candidate)
		if at < 0 || c.Tied != 3 {
			t.Fatalf("least-inflight: %+v", c)
		}
		counts[at]++
	}
	testUniform(t, "least-inflight", counts)
	v.Replicas[6].Inflight = 0
	if c := r.Route(v); c.Candidate != 6 || c.Tied != 0 {
		t.Errorf("least-inflight: %+v", c)
	}
}

// TestWeightedRandomPicker compares the picks with those of the A-Res algorithm: key U^(1/score) for
// each score above 0, and the highest key is picked.
func TestWeightedRandomPicker(t *testing.T) {
	p, v := picker{name: pickWeightedRandom, draws: 1}, viewOf(4)
	for _, scores := range [][]float64{{3, 0, 1, 2}, {0.2, 0.1, 0.1, 0.6}, {0, 0, 0, 0}} {
		shares, picks, reservoir := make([]float64, 4), make([]int, 4), make([]int, 4)
		sum := scores[0] + scores[1] + scores[2] + scores[3]
		for i, s := range scores {
			shares[i] = s / sum
		}
		if sum == 0 {
			shares = equalShares(4)
		}
		u := rng(2)
		for v.Draw.Request = range int64(30000) {
			picks[p.pick(v, scores).Candidate]++
			if sum > 0 {
				best, highest := 0, -1.0
				for i, s := range scores {
					if key := math.Pow(u.float(), 1/s); s > 0 && key > highest {
						best, highest = i, key
					}
				}
				reservoir[best]++
			}
		}
		degrees := 3
		if scores[1] == 0 && sum > 0 {
			if picks[1] > 0 {
				t.Errorf("%d picks of a score of 0", picks[1])
			}
			shares, picks = slices.Delete(shares, 1, 2), slices.Delete(picks, 1, 2)
			reservoir = slices.Delete(reservoir, 1, 2)
			degrees = 2
		}
		if x := chiSquared(picks, shares); x > limit999(degrees) {
			t.Errorf("scores %v: picks %v, chi-squared %.1f", scores, picks, x)
		}
		if sum > 0 {
			if x := chiSquared(reservoir, shares); x > limit999(degrees) {
				t.Errorf("scores %v: A-Res %v, chi-squared %.1f", scores, reservoir, x)
			}
		}
	}
}

// TestPickerWithoutTies: a tie rule for a picker that has no ties is reported.
func TestPickerWithoutTies(t *testing.T) {
	for rule, want := range map[string]int{"first": 1, "random": 0} {
		b := &Bundle{Routing: Spec{Type: "weighted", Params: map[string]any{"picker": "random", "tie": rule}}}
		b.Complete()
		p, err := Build(b, tieEnv(1))
		if err != nil || len(p.Unused) != want {
			t.Errorf("tie %s: %v, %v", rule, p.Unused, err)
		}
		if w := b.Routing.Params["queue-depth"]; w != 2.0 {
			t.Errorf("without weights, queue-depth has the weight %v", w)
		}
	}
}

// TestTieOfComposedPolicies: the policies in a filter or a tree take its tie unless they have their
// own.
func TestTieOfComposedPolicies(t *testing.T) {
	first := map[string]any{"tie": "first"}
	v := tiedView(1, 4, 6)
	for name, s := range map[string]Spec{
		"filter": {Type: "filter", Filter: "replica.queue_depth < 9", Params: first, Use: &Spec{Type: "weighted"}},
		"filter in a filter": {Type: "filter", Filter: "replica.queue_depth < 9", Params: first,
			Use: &Spec{Type: "filter", Filter: "replica.kv_util < 1", Use: &Spec{Type: "least-loaded"}}},
		"tree": {Type: "tree", Params: first, Root: &Node{If: "req.input_tokens > 100",
			Then: &Node{Use: &Spec{Type: "least-loaded"}}, Else: &Node{Use: &Spec{Type: "round-robin"}}}},
	} {
		r := routerOf(t, s, tieEnv(1))
		for range 20 {
			if c := r.Route(v); c.Candidate != 1 || c.Tied != 0 {
				t.Fatalf("%s: %+v", name, c)
			}
		}
	}
	for use, want := range map[*Spec]string{
		{Type: "least-loaded"}: "",
		{Type: "round-robin"}:  "round-robin has no ties",
		{Type: "least-loaded", Params: map[string]any{"tie": "random"}}: `use.params.tie is "random"`,
	} {
		b := &Bundle{Routing: Spec{Type: "filter", Filter: "replica.kv_util < 1", Params: first, Use: use}}
		b.Complete()
		p, err := Build(b, tieEnv(1))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(p.Unused) > 0 {
			got = p.Unused[0].Path + ": " + p.Unused[0].Reason
		}
		if want != "" {
			want = "routing.params.tie: " + want
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", use, got, want)
		}
	}
}
