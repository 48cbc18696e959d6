package reference

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"blis/pkg/portable"
)

// NamedRouter has the parameters of the routers llm-d and dynamo-kv.
type NamedRouter struct {
	// Credit, Decay, PrefillScale, RequestCost and Temperature are those of dynamo-kv:
	// overlap_score_credit, overlap_score_credit_decay, prefill_load_scale,
	// decode_active_request_weight and router_temperature.
	Credit, Decay, PrefillScale, RequestCost, Temperature float64
	// NoPrefill and NoBlocks switch off router_track_prefill_tokens and router_track_active_blocks of dynamo-kv.
	NoPrefill, NoBlocks bool
	// Capacity is how many blocks llm-d's index remembers for a replica. BlockTokens is the size of its blocks if it is
	// not that of the engine's, at least 64. MaxTokens, or if that is 0 MaxBlocks, is how much of a prompt is in it;
	// 0 is all.
	Capacity, BlockTokens, MaxTokens, MaxBlocks int
	// Attribute, times Sign, is what the router attribute takes the highest of.
	Attribute string
	Sign      float64
}

// smallestBlock is the smallest block of llm-d's index in tokens.
const smallestBlock = 64

// promptBlocks are the hashes of a prompt's blocks for llm-d's index. The last one may be partly full.
func (r *router) promptBlocks(q *request) (hashes []string, size int) {
	n := r.config.Named
	if size = max(smallestBlock, r.config.BlockSize); n.BlockTokens > 0 {
		size = max(smallestBlock, n.BlockTokens)
	}
	for end := size; end < q.Input; end += size {
		hashes = append(hashes, q.hash(end))
	}
	hashes = append(hashes, q.hash(q.Input))
	switch {
	case n.MaxTokens > 0:
		hashes = hashes[:min(len(hashes), n.MaxTokens/size)]
	case n.MaxBlocks > 0:
		hashes = hashes[:min(len(hashes), n.MaxBlocks)]
	}
	return hashes, size
}

// indexMatches counts, for each replica, those of a prompt's blocks that it was sent. The blocks after
// the first one that no replica was sent do not count.
func (r *router) indexMatches(hashes []string) []int {
	matches := make([]int, len(r.blocks))
	for _, h := range hashes {
		known := false
		for i := range r.blocks {
			if slices.Contains(r.blocks[i], h) {
				matches[i]++
				known = true
			}
		}
		if !known {
			break
		}
	}
	return matches
}

// llmd chooses by llm-d's default profile and returns the tokens that it expects to be cached.
func (r *router) llmd(q *request) (chosen, expected int) {
	hashes, size := r.promptBlocks(q)
	matches := r.indexMatches(hashes)
	var scores []float64
	for i := range matches {
		queue := 2 * queueDepthScore(r.queued, i)
		cache := 2 * (1 - r.usage[i])
		prefix := 3 * (float64(matches[i]) / float64(len(hashes)))
		scores = append(scores, queue+cache+prefix)
	}
	chosen = r.pick(scores)
	r.learn(chosen, hashes)
	return chosen, matches[chosen] * size
}

// learn adds a prompt's blocks to llm-d's index of a replica.
func (r *router) learn(chosen int, hashes []string) {
	index := &r.blocks[chosen]
	for _, h := range hashes { // the most recent block last
		*index = append(slices.DeleteFunc(*index, func(x string) bool { return x == h }), h)
		if len(*index) > r.config.Named.Capacity {
			*index = (*index)[1:]
		}
	}
}

// count notes how much of a prompt with these blocks has to be computed at the replica to which it goes, which was
// sent some of them before, and that it goes there.
func (r *router) count(q *request, hashes []string, matches int) {
	_, size := r.promptBlocks(q)
	q.uncached = max(len(hashes)*size, q.Input) - matches*size
	r.learn(q.outcome.Replica, hashes)
}

// load is what Dynamo's router counts at a replica: the prompt tokens without a first token that were
// not cached when their request was sent, and the full prompt blocks of all requests, each once.
func (r *router) load(replica int, x *replica) (prefill int, blocks []string) {
	for _, q := range r.requests {
		if q.outcome.Replica != replica || q.final() && !slices.Contains(x.running, q) {
			continue
		}
		if q.outcome.Generated == 0 {
			prefill += q.uncached
		}
		blocks = append(blocks, r.hashes(q)...)
	}
	slices.Sort(blocks)
	return prefill, slices.Compact(blocks)
}

// dynamo chooses by Dynamo's cost and returns the tokens that it expects to be cached.
func (r *router) dynamo(q *request, replicas []*replica) (chosen, expected int) {
	n, size := r.config.Named, r.config.BlockSize
	hashes := r.hashes(q)
	var prefills, cached []int
	var held [][]string
	for i, x := range replicas {
		tokens, blocks := r.load(i, x)
		prefills, held = append(prefills, tokens), append(held, blocks)
		cached = append(cached, r.cachedBlocks(q, i))
	}
	var costs []float64
	for i := range replicas {
		shared := 0
		for shared < len(hashes) && slices.Contains(held[i], hashes[shared]) {
			shared++
		}
		credit := n.Credit
		if n.Decay > 0 {
			prompt := float64((q.Input + size - 1) / size)
			excess := float64(prefills[i]-slices.Min(prefills)) / float64(size) / prompt
			credit *= 1 / (1 + float64(n.Decay*excess))
		}
		prefill := max(0, float64(prefills[i]+q.Input)/float64(size)-float64(credit*float64(cached[i])))
		decode, requests := float64(len(held[i])+len(hashes)-shared), float64(n.RequestCost*float64(r.inflight[i]))
		if n.NoBlocks {
			decode = 0
		}
		if n.NoPrefill {
			costs = append(costs, max(0, decode-float64(n.Credit*float64(cached[i])))+requests)
		} else {
			costs = append(costs, float64(n.PrefillScale*prefill)+decode+requests)
		}
	}
	chosen = r.cheapest(costs)
	q.uncached = q.Input - cached[chosen]*size
	return chosen, cached[chosen] * size
}

// cheapest takes the lowest cost or, with a temperature, draws by the softmax of the costs in a range
// of 1.
func (r *router) cheapest(costs []float64) int {
	low, high := slices.Min(costs), slices.Max(costs)
	if r.config.Named.Temperature == 0 {
		negative := make([]float64, len(costs))
		for i, c := range costs {
			negative[i] = -c
		}
		return r.best(negative)
	}
	var weights []float64
	sum := 0.0
	for _, c := range costs {
		w := 1.0
		if high > low {
			w = portable.Exp((low - c) / ((high - low) * r.config.Named.Temperature))
		}
		weights = append(weights, w)
		sum += w
	}
	stream := r.draws.forRequest(r.position)
	left := stream.unit() * sum
	for i, w := range weights {
		if left < w {
			return i
		}
		left -= w
	}
	return len(costs) - 1
}

// variables are what the router stateful remembers: the last replica, a moving average and a counter.
type variables struct{ last, mean, turn float64 }

// stateful explores in three of ten scores, and else prefers few requests in flight and, in two of three
// decisions, the last replica. Then it updates all variables from their old values.
func (r *router) stateful() int {
	v, stream := r.variables, r.draws.forRequest(r.position)
	var scores []float64
	for i, n := range r.inflight {
		switch {
		case stream.unit() < 0.3:
			scores = append(scores, stream.unit()*4)
		case float64(i) == v.last && v.turn > 0:
			scores = append(scores, v.mean-float64(n)+1)
		default:
			scores = append(scores, v.mean-float64(n))
		}
	}
	chosen := r.best(scores)
	x := float64(r.inflight[chosen]) + v.last
	r.variables = variables{last: float64(chosen), mean: v.mean + (x-v.mean)/4, turn: math.Mod(v.turn+1, 3)}
	return chosen
}

// cachedBlocks is how many leading blocks of a prompt a replica's cache had when the router last read it.
func (r *router) cachedBlocks(q *request, replica int) (n int) {
	size := r.config.BlockSize
	for r.config.PrefixCaching && (n+1)*size <= q.Input && r.caches[replica][q.blockHash(0, (n+1)*size)] {
		n++
	}
	return n
}

// hashes are the hashes of all full blocks, also of free ones.
func (c *cache) hashes() map[string]bool {
	all := map[string]bool{}
	for _, b := range c.blocks {
		all[b.hash] = b.hash != ""
	}
	return all
}

// RandomRouters draws a case like Random, on several replicas with llm-d, dynamo-kv or stateful. Prompts, blocks
// and budgets are longer by a factor, so that prompts have several of llm-d's blocks.
func RandomRouters(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x726f7574))}
	c.Replicas, c.Scorers, c.ShadowBlocks = pick(d, 2, 3, 4, 8), nil, 0
	c.Groups, c.Sparse, c.Interval, c.KeepUntilComputed, c.ReserveWindow = nil, false, 0, false, false
	c.Named = NamedRouter{Credit: pick(d, 1, 1, 0.5, 2.0), Decay: pick(d, 0, 0, 1.0), PrefillScale: pick(d, 1, 1, 2.5),
		RequestCost: pick(d, 0, 0, 1.5), Temperature: pick(d, 0, 0, 0.3), Capacity: c.usable()}
	c.Named.NoPrefill, c.Named.NoBlocks = d.percent(20), d.percent(20)
	c.Tie, c.Picker = pick(d, "random", "random", "first", "least-inflight"), ""
	if c.Routing = "dynamo-kv"; d.percent(20) {
		c.Routing = "stateful"
		return c, requests
	}
	if d.percent(50) {
		c.Routing, c.Tie = "llm-d", "random"
		c.Picker = pick(d, "max-score", "max-score", "random", "weighted-random")
		longer(&c, requests, pick(d, 1, 9, 20, 20))
		return c, requests
	}
	return c, requests
}

// longer multiplies the lengths of prompts and what limits them.
func longer(c *Config, requests []Request, factor int) {
	c.BlockSize *= factor
	c.MaxNumBatchedTokens *= factor
	c.MaxModelLen *= factor
	c.LongPrefillThreshold *= factor
	for i := range requests {
		r := &requests[i]
		r.Input *= factor
		r.Prompt = slices.Clone(r.Prompt)
		for k := range r.Prompt {
			r.Prompt[k].Tokens *= factor
		}
	}
}

// RandomFleet draws a case like Random on at least 128 replicas, of which a router need not look at each.
func RandomFleet(seed uint64) (Config, []Request) {
	c, requests := Random(seed)
	d := &generator{Rand: rand.New(rand.NewPCG(seed, 0x666c6565))}
	c.Replicas, c.ShadowBlocks, c.Scorers = d.between(128, 150), 0, nil
	c.Routing = pick(d, "round-robin", "least-loaded", "least-loaded", "least-snapshot", "weighted", "weighted")
	c.Tie, c.Picker = pick(d, "random", "first", "least-inflight"), ""
	if c.Routing == "weighted" {
		c.Picker = "max-score"
		c.Scorers = []Scorer{{"prefix-affinity", pick(d, 0.5, 1, 3)}, {"queue-depth", pick(d, 0.5, 1, 2)}}
	}
	var all []Request // each several times at once, so that replicas get several
	for _, r := range requests {
		for k := range d.between(4, 8) {
			copied := r
			copied.ID = fmt.Sprint(r.ID, "-", k)
			all = append(all, copied)
		}
	}
	return c, all
}
