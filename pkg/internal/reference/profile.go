package reference

import (
	"math"
	"slices"
)

// Plugin is a filter or a scorer of an llm-d profile. Numbers and Words are its parameters, which are all given.
// Of utilization-filter, Numbers are the conditions.
type Plugin struct {
	Name    string
	Weight  float64 // of a scorer
	Numbers map[string]float64
	Words   map[string]string
	// Seed starts its random numbers.
	Seed uint64
}

func (p Plugin) says(word, value string) bool { return p.Words[word] == value }

// profileState is what the plugins of a profile remember, by their position in it.
type profileState struct {
	pins map[int]map[string]pin
	cold map[int][]int // the replicas that got prompts without a prefix, the most recent one last
}

// pin is where a session was sent, and when.
type pin struct {
	replica int
	at      int64
}

// llmdChoice is one choice by a profile.
type llmdChoice struct {
	*router
	q       *request
	hashes  []string
	size    int
	matches []int // by replica, as are the following
	prefill []int // prompt tokens without a first token
	cached  []int // leading blocks of the prompt in the cache, as last read
	// isCold and sticky are what each plugin has seen: a prompt without a prefix, the session's replica.
	isCold, sticky map[int]bool
}

// uncached is how many tokens llm-d expects a replica to compute for the prompt.
func (d *llmdChoice) uncached(replica int) int {
	return max(len(d.hashes)*d.size, d.q.Input) - d.matches[replica]*d.size
}

// fraction is which part of the prompt's blocks a replica was sent.
func (d *llmdChoice) fraction(replica int) float64 {
	return float64(d.matches[replica]) / float64(len(d.hashes))
}

// isFilter reports whether the plugin drops replicas.
func (p Plugin) isFilter() bool { return slices.Contains(filters, p.Name) }

// readsIndex reports whether the plugin looks at the router's index of prompts.
func (p Plugin) readsIndex() bool {
	return slices.Contains([]string{"prefix-cache-scorer", "token-load-scorer", "no-hit-lru-scorer",
		"prefix-cache-affinity-filter"}, p.Name) ||
		p.Name == "concurrency-detector" && !p.says("concurrencyMode", "requests")
}

// profile chooses by the plugins of the profile and returns the tokens that the router expects to be cached.
func (r *router) profile(q *request, replicas []*replica) (chosen, expected int) {
	d := &llmdChoice{router: r, q: q, isCold: map[int]bool{}, sticky: map[int]bool{}}
	d.hashes, d.size = r.promptBlocks(q)
	d.matches = r.indexMatches(d.hashes)
	var all []int
	for i, x := range replicas {
		all = append(all, i)
		prefill, _ := r.load(i, x)
		d.prefill, d.cached = append(d.prefill, prefill), append(d.cached, r.cachedBlocks(q, i))
	}
	kept := slices.Clone(all)
	for k, p := range r.config.Profile {
		if len(kept) > 0 && p.isFilter() {
			kept = d.keep(k, p, kept)
		}
	}
	if len(kept) == 0 {
		kept = all
	}
	scores := make([]float64, len(kept))
	for k, p := range r.config.Profile {
		if p.isFilter() {
			continue
		}
		for i, replica := range kept {
			scores[i] += float64(p.Weight * max(0, min(1, d.score(k, p, kept, replica))))
		}
	}
	chosen = r.pickKept(kept, scores)
	for k, p := range r.config.Profile {
		d.remember(k, p, chosen)
	}
	return chosen, d.send(chosen)
}

// pickKept picks among some of the replicas.
func (r *router) pickKept(kept []int, scores []float64) int {
	if r.config.Picker != "max-score" {
		return kept[r.pick(scores)]
	}
	values := make([]float64, len(r.inflight))
	for i := range values {
		if values[i] = math.Inf(-1); slices.Contains(kept, i) {
			values[i] = scores[slices.Index(kept, i)]
		}
	}
	return r.best(values)
}

// send records that the prompt goes to a replica and returns the tokens that are expected to be cached there.
func (d *llmdChoice) send(chosen int) int {
	switch {
	case slices.ContainsFunc(d.config.Profile, Plugin.readsIndex):
		d.q.uncached = d.uncached(chosen)
		d.learn(chosen, d.hashes)
		return d.matches[chosen] * d.size
	case slices.ContainsFunc(d.config.Profile, func(p Plugin) bool { return p.Name == "precise-prefix-cache-scorer" }):
		return d.cached[chosen] * d.config.BlockSize
	}
	return 0
}

// pinned is the replica of the session, -1 if it has none.
func (d *llmdChoice) pinned(k int, p Plugin) int {
	at, found := d.state.pins[k][d.q.Session]
	if !found || d.q.Session == "" {
		return Never
	}
	sweep := d.now / seconds(p, "evictionSweepSeconds") * seconds(p, "evictionSweepSeconds")
	if p.says("strategy", "session_id") && sweep-at.at > seconds(p, "evictionTtlSeconds") {
		return Never
	}
	return at.replica
}

func seconds(p Plugin, name string) int64 { return int64(p.Numbers[name] * 1e6) }

// remember updates what a plugin remembers.
func (d *llmdChoice) remember(k int, p Plugin, chosen int) {
	switch p.Name {
	case "session-affinity-filter", "session-affinity-scorer":
		if home := d.pinned(k, p); d.q.Session == "" ||
			p.says("strategy", "session_id") && d.sticky[k] && home != chosen {
			return
		}
		if d.state.pins[k] == nil {
			d.state.pins[k] = map[string]pin{}
		}
		d.state.pins[k][d.q.Session] = pin{chosen, d.now}
	case "no-hit-lru-scorer":
		if !d.isCold[k] {
			return
		}
		order := slices.DeleteFunc(d.state.cold[k], func(i int) bool { return i == chosen })
		order = append(order, chosen)
		d.state.cold[k] = order[max(0, len(order)-int(p.Numbers["lruSize"])):]
	}
}
