package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blis/pkg/kv"
)

// llmdCandidates returns a view of replicas 0, 1, … that set fills in.
func llmdCandidates(n int, set func(i int, r *Replica)) *View {
	v := &View{Request: &Request{SessionID: -1}}
	for i := range n {
		r := Replica{Index: int32(i), Stats: &Stats{}}
		set(i, &r)
		v.Replicas = append(v.Replicas, r)
	}
	return v
}

// route sends the request in v through a profile of the given plugins, and returns the choice and the
// trace: the terms of the scorers, or - for a candidate that the filters dropped.
func route(t *testing.T, p *Plane, v *View) (int, string) {
	t.Helper()
	v.Trace = new(Trace)
	v.Trace.Reset(len(v.Replicas))
	c := p.Routing.Route(v)
	var terms []string
	n := len(v.Replicas)
	for i := range n {
		if v.Trace.Filtered[i] {
			terms = append(terms, "-")
			continue
		}
		var all []string
		for k := range v.Trace.Scorers {
			all = append(all, fmt.Sprintf("%.4g", v.Trace.Terms[k*n+i]))
		}
		terms = append(terms, strings.Join(all, "/"))
	}
	return c.Candidate, strings.Join(terms, " ")
}

func llmdPlane(t *testing.T, plugins ...Spec) *Plane {
	t.Helper()
	p, err := planeWith("routing", Spec{Type: "llm-d", Of: plugins})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLLMDRules checks rules of plugins that scripts/llmd-oracle cannot compare. Cases marked (llm-d)
// are those of llm-d-router's own tests.
func TestLLMDRules(t *testing.T) {
	inflight := func(n ...int32) func(int, *Replica) { return func(i int, r *Replica) { r.Inflight = n[i] } }
	queue := func(n ...int32) func(int, *Replica) { return func(i int, r *Replica) { r.QueueDepth = n[i] } }
	matched := func(n ...int32) func(int, *Replica) {
		return func(i int, r *Replica) { r.Stats.Prefix = PrefixMatch{n[i], 10, 64} }
	}
	tokens := func(n ...int64) func(int, *Replica) {
		return func(i int, r *Replica) { r.Stats.PrefillTokens = n[i] }
	}
	both := func(a, b func(int, *Replica)) func(int, *Replica) {
		return func(i int, r *Replica) { a(i, r); b(i, r) }
	}
	for _, c := range []struct {
		name   string
		plugin Spec
		state  func(int, *Replica)
		want   string
	}{
		{"different counts (llm-d)", Spec{Type: "active-request-scorer"}, inflight(3, 0, 6), "0.5 1 0"},
		{"others (llm-d)", Spec{Type: "active-request-scorer"}, inflight(4, 0, 1), "0 1 0.75"},
		{"idle threshold and gap", Spec{Type: "active-request-scorer", Params: map[string]any{"idleThreshold": 2.0,
			"maxBusyScore": 0.5}}, inflight(2, 5, 10), "1 0.25 0"},
		{"queue", Spec{Type: "load-aware-scorer", Params: map[string]any{"threshold": 10.0}},
			queue(0, 2, 15), "0.5 0.4 0"},
		{"cold, none used (llm-d)", Spec{Type: "no-hit-lru-scorer"}, matched(0, 0, 0), "1 0.5 0"},
		{"warm (llm-d)", Spec{Type: "no-hit-lru-scorer"}, matched(1, 0, 0), "0.5 0.5 0.5"},
		{"share and length", Spec{Type: "prefix-cache-scorer", Params: map[string]any{"matchLengthWeight": 0.5,
			"matchLengthScaleTokens": 640.0}}, matched(10, 5, 0), "1 0.375 0"},
		{"lower is better", Spec{Type: "endpoint-attribute-scorer"}, queue(4, 0, 1), "0 1 0.75"},
		{"higher is better, fixed range", Spec{Type: "endpoint-attribute-scorer", Params: map[string]any{
			"algorithm": "linear_higher_is_better", "normalization": "fixedRange", "max": 2.0}},
			queue(4, 0, 1), "1 0 0.5"},
		{"limits", Spec{Type: "utilization-filter", Params: map[string]any{"conditions": map[string]any{
			"waiting-queue": 2.0, "active-requests": 3.0}}}, both(queue(2, 3, 0), inflight(3, 0, 4)), "1 - -"},
		{"none passes", Spec{Type: "utilization-filter", Params: map[string]any{"conditions": map[string]any{
			"waiting-queue": 2.0}}}, queue(3, 3, 4), "1 1 1"},
		{"attribute", Spec{Type: "endpoint-attribute-filter", Params: map[string]any{"operator": "GreaterThan",
			"value": 2.0}}, queue(3, 2, 1), "1 - -"},
		{"sticky", Spec{Type: "prefix-cache-affinity-filter"}, matched(8, 7, 10), "1 - 1"},
		{"none is sticky", Spec{Type: "prefix-cache-affinity-filter"}, matched(7, 0, 0), "1 1 1"},
		{"sticky and 18.8 s late: 300,000 tokens", Spec{Type: "prefix-cache-affinity-filter"},
			both(matched(8, 0, 0), tokens(300000, 500, 0)), "1 1 1"},
		{"sticky and 17.6 s late", Spec{Type: "prefix-cache-affinity-filter"},
			both(matched(8, 0, 0), tokens(280000, 500, 0)), "1 - -"},
		{"tokens and requests", Spec{Type: "concurrency-detector", Params: map[string]any{"concurrencyMode": "hybrid",
			"maxConcurrency": 4.0, "maxTokenConcurrency": 100.0, "headroom": 0.25}},
			both(inflight(4, 5, 4), tokens(124, 0, 125)), "1 - -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plugins := []Spec{c.plugin}
			if strings.HasSuffix(c.plugin.Type, "filter") || strings.HasSuffix(c.plugin.Type, "detector") {
				plugins = append(plugins, Spec{Type: "kv-cache-utilization-scorer"}) // 1 for all
			}
			if _, have := route(t, llmdPlane(t, plugins...), llmdCandidates(3, c.state)); have != c.want {
				t.Errorf("have %s, want %s", have, c.want)
			}
		})
	}
}

// TestLLMDColdPrompts: each cold prompt goes to the replica that got one least recently.
func TestLLMDColdPrompts(t *testing.T) {
	p := llmdPlane(t, Spec{Type: "no-hit-lru-scorer"})
	cold := llmdCandidates(3, func(int, *Replica) {})
	warm := llmdCandidates(3, func(i int, r *Replica) { r.Stats.Prefix.Matched = 1 })
	var chosen []int
	for range 4 {
		c, _ := route(t, p, cold)
		chosen = append(chosen, c)
		route(t, p, warm) // no matter where it goes
	}
	if want := []int{0, 1, 2, 0}; !slices.Equal(chosen, want) {
		t.Errorf("chose %v, want %v", chosen, want)
	}
	if _, scores := route(t, p, cold); scores != "0 1 0.5" {
		t.Errorf("scores %s: the first replica was last", scores)
	}
	cold.Replicas = cold.Replicas[1:2]
	if _, scores := route(t, p, cold); scores != "1" {
		t.Errorf("the only candidate scores %s", scores)
	}
}

// TestLLMDSessions: a session with session_id stays bound while its replica is a candidate, even if a
// request goes elsewhere, until it was idle for the TTL.
func TestLLMDSessions(t *testing.T) {
	at := func(s int64, of ...int) *View {
		v := &View{NowUS: s * 1e6, Request: &Request{SessionID: 1}}
		for _, i := range of {
			v.Replicas = append(v.Replicas, Replica{Index: int32(i), Stats: &Stats{}, Inflight: int32(i)})
		}
		return v
	}
	inflight := Spec{Type: "active-request-scorer", Params: map[string]any{"weight": 5.0}}
	pin := Spec{Type: "session-affinity-scorer", Params: map[string]any{"strategy": "session_id",
		"evictionTtlSeconds": 25.0}}
	p := llmdPlane(t, pin, inflight)
	for _, step := range []struct {
		view   *View
		choice int32
		scores string
	}{
		{at(0, 3), 3, "0/0"},             // binds it to replica 3
		{at(1, 1, 3), 1, "0/0.6667 1/0"}, // load wins, the binding stays
		{at(2, 1, 3), 1, "0/0.6667 1/0"},
		{at(3, 1, 2), 1, "0/0.5 0/0"}, // replica 3 is no candidate: bound to 1
		{at(4, 1, 3), 1, "1/0.6667 0/0"},
		{at(29, 2, 1), 1, "0/0 1/0.5"}, // idle for 25 s; swept at 30 s at the earliest
		{at(59, 2, 1), 1, "0/0 1/0.5"}, // idle for 21 s at the sweep of 50 s
		{at(90, 2), 2, "0/0"},          // idle for 31 s: forgotten and bound to 2
		{at(91, 2, 1), 1, "1/0 0/0.5"}, // load wins
	} {
		c, scores := route(t, p, step.view)
		if got := step.view.Replicas[c].Index; got != step.choice || scores != step.scores {
			t.Errorf("at %d s: replica %d, scores %s; want %d, %s", step.view.NowUS/1e6, got, scores, step.choice,
				step.scores)
		}
	}
}

// TestBlockIndex: blocks of 64 tokens, the last one partly full; the oldest are forgotten first, and a
// replica also matches blocks after one that only others have.
func TestBlockIndex(t *testing.T) {
	tree := kv.NewTree()
	prompt := func(id string, segments ...kv.Segment) (kv.Path, int) {
		n := 0
		for _, s := range segments {
			n += s.Tokens
		}
		return tree.Resolve(nil, segments, n, id), n
	}
	x := NewBlockIndex(tree, defaultBlockIndex(), []int{16, 16}, []int{4, 100})
	stats := make([]Stats, 2)
	both := []Replica{{Index: 0, Stats: &stats[0]}, {Index: 1, Stats: &stats[1]}}
	check := func(what string, p kv.Path, n int, blocks int32, matched ...int32) {
		t.Helper()
		x.Match(p, n, both)
		for i, m := range matched {
			if want := (PrefixMatch{m, blocks, 64}); stats[i].Prefix != want {
				t.Errorf("%s: replica %d has %+v, want %+v", what, i, stats[i].Prefix, want)
			}
		}
	}
	document := kv.Segment{ID: "document", Tokens: 130}
	first, n := prompt("a", document)
	check("nothing sent", first, n, 3, 0, 0)
	x.RecordRouting(&both[0], first, n)
	check("sent to 0", first, n, 3, 3, 0)
	longer, m := prompt("b", document, kv.Segment{ID: "question", Tokens: 100})
	check("another end of the third block", longer, m, 4, 2, 0)
	x.RecordRouting(&both[0], longer, m) // 5 blocks, of which the third of a is the oldest
	check("its partial block is forgotten", first, n, 3, 2, 0)
	x.Match(first, n, both)
	x.RecordRouting(&both[1], first, n)
	check("sent to 1", first, n, 3, 2, 3)
	other, k := prompt("c", kv.Segment{ID: "other", Tokens: 64})
	x.Match(other, k, both)
	x.RecordRouting(&both[0], other, k) // the first block of a is the oldest now
	check("0 matches only what follows", first, n, 3, 1, 3)
	if want := int64(64 + 64); stats[0].Prefix.Uncached(130) != want {
		t.Errorf("%d uncached tokens, want %d", stats[0].Prefix.Uncached(130), want)
	}
	for _, p := range []kv.Path{first, longer, other} {
		tree.Drop(p)
	}
	clone := x.Clone(tree)
	x.RecordRouting(&both[0], other, k)
	if len(clone.entries) != len(x.entries) || &clone.keys[0] == &x.keys[0] {
		t.Error("the clone shares memory")
	}
	for range 70 { // more than a word of bits
		x.AddReplica(16, 100)
	}
	check("others are added", first, n, 3, 1, 3)
	added := []Replica{{Index: 71, Stats: new(Stats)}}
	x.Match(first, n, added)
	x.RecordRouting(&added[0], first, n)
	if x.Match(first, n, added); added[0].Stats.Prefix != (PrefixMatch{3, 3, 64}) {
		t.Errorf("an added replica has %+v", added[0].Stats.Prefix)
	}
}

// TestProbabilisticAdmitter: with the saturation 0.2 and the defaults a sheddable request is rejected
// with the probability 300 x 0.2^5 = 0.096.
func TestProbabilisticAdmitter(t *testing.T) {
	p, err := planeWith("admission", Spec{Type: "probabilistic-admitter"})
	if err != nil {
		t.Fatal(err)
	}
	v := llmdCandidates(2, func(i int, r *Replica) { r.QueueDepth, r.KVUtil = int32(i), 0.16*float64(1-i) })
	rejected := map[string]int{}
	for _, v.Request.Tier = range []string{Standard, Sheddable} {
		for v.Draw.Request = range int64(10000) {
			if p.Admission.Admit(v).Action == Reject {
				rejected[v.Request.Tier]++
			}
		}
	}
	if n := rejected[Sheddable]; rejected[Standard] != 0 || n < 860 || n > 1060 { // 960, within 3.4 deviations
		t.Errorf("rejected %v", rejected)
	}
}

// TestActiveRequestScorerIsLeastLoaded: with its defaults, the highest score of active-request-scorer is that of the
// replica that least-loaded chooses. Exports of least-loaded rely on it.
func TestActiveRequestScorerIsLeastLoaded(t *testing.T) {
	scorer := llmdPlane(t, Spec{Type: "active-request-scorer"}, Spec{Type: "max-score-picker"})
	least, err := planeWith("routing", Spec{Type: "least-loaded"})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range [][]int32{{3, 2, 9}, {0, 1}, {7, 0, 3}, {1000, 999, 998}, {5}, {2, 1, 4, 3}} {
		v := llmdCandidates(len(n), func(i int, r *Replica) { r.Inflight = n[i] })
		a, _ := route(t, scorer, v)
		if b := least.Routing.Route(v).Candidate; a != b || n[a] != slices.Min(n) {
			t.Errorf("requests in flight %v: the scorer chooses %d, least-loaded %d", n, a, b)
		}
	}
}
