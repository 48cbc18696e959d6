package policy

import (
	"math"
	"slices"

	"blis/pkg/portable"
)

// dynamoKV is the KV router of Dynamo 1.6.1 for a pool that both prefills and decodes
// (dynamo-kv-router 1.6.1, scheduling/selector/reference.rs). The cost of a replica, in blocks, is
//
//	prefillScale x max(0, prefill - credit x cached) + decode + perRequest x requests in flight
//
// prefill are the tokens of prompts sent there without a first token, less those that were cached,
// and of this prompt; cached are this prompt's blocks in the replica's cache; decode are the prompt
// blocks of the requests in flight there and of this one, each block once. With decay, the credit falls
// with the prefill tokens above those of the least loaded candidate, in multiples of this prompt.
// Without prefills the cost is max(0, decode - credit x cached) + perRequest x requests in flight.
//
// The lowest cost wins. With a temperature a replica is drawn by the softmax of the negative costs,
// scaled to a range of 1, divided by the temperature.
type dynamoKV struct {
	needs
	credit, decay, prefillScale, perRequest, temperature float64
	trackPrefill, trackActive                            bool
	draws                                                draws
	ties                                                 ties
	costs, weights                                       []float64
}

var dynamoParams = []Param{
	{Name: "overlap_score_credit", Kind: Number, Max: 1e6, Search: [2]float64{0, 2}, Default: 1.0,
		Doc: "blocks of prefill that a cached block saves"},
	{Name: "overlap_score_credit_decay", Kind: Number, Max: 1e6, Search: [2]float64{0, 2}, Default: 0.0,
		Doc: "how fast the credit falls with the load of prefills; 1 halves it at the length of the prompt"},
	{Name: "prefill_load_scale", Kind: Number, Max: 1e6, Search: [2]float64{0, 4}, Default: 1.0,
		Doc: "weight of the blocks of prefill"},
	{Name: "decode_active_request_weight", Kind: Number, Unit: "blocks", Max: 1e6, Search: [2]float64{0, 100},
		Default: 0.0, Doc: "cost of a request in flight"},
	{Name: "router_temperature", Kind: Number, Max: 1e6, Search: [2]float64{0, 1}, Default: 0.0,
		Doc: "0 picks the lowest cost; higher values draw more evenly"},
	{Name: "router_track_prefill_tokens", Kind: Flag, Default: true, Doc: "whether prefills are part of the cost"},
	{Name: "router_track_active_blocks", Kind: Flag, Default: true,
		Doc: "whether the blocks of requests in flight are part of the cost"},
	tieParam,
}

func newDynamoKV(b *builder, s *Spec) Router {
	v := b.params(s, dynamoParams)
	d := &dynamoKV{needs: needs(NeedRequest | NeedActiveBlocks | NeedCache),
		credit: v.number("overlap_score_credit"), decay: v.number("overlap_score_credit_decay"),
		prefillScale: v.number("prefill_load_scale"), perRequest: v.number("decode_active_request_weight"),
		temperature: v.number("router_temperature"), trackPrefill: v.flag("router_track_prefill_tokens"),
		trackActive: v.flag("router_track_active_blocks"), draws: b.draws(), ties: b.ties(v)}
	if d.trackPrefill {
		d.needs |= needs(NeedPrefillTokens)
	} else {
		b.markUnusedNamed(v, dynamoParams, "prefills are not part of the cost",
			"overlap_score_credit_decay", "prefill_load_scale")
	}
	if d.temperature > 0 {
		b.markUnused(v, tieParam, "router_temperature draws among all candidates")
	}
	d.costs, d.weights = make([]float64, b.env.Candidates), make([]float64, b.env.Candidates)
	return d
}

func (d *dynamoKV) Route(v *View) Choice {
	costs := d.costs[:len(v.Replicas)]
	idle := int64(math.MaxInt64) // the fewest prefill tokens
	if d.trackPrefill {
		for i := range v.Replicas {
			idle = min(idle, v.Replicas[i].Stats.PrefillTokens)
		}
	}
	for i := range v.Replicas {
		costs[i] = d.cost(v.Request.InputTokens, &v.Replicas[i], idle)
		v.Trace.RecordLoad(i, costs[i])
	}
	if d.temperature > 0 {
		i := d.sample(v, costs)
		return Choice{Candidate: i, Score: costs[i], Reason: "at random by cost"}
	}
	lowest, n := slices.Min(costs), 0
	for _, c := range costs {
		if c == lowest {
			n++
		}
	}
	c := Choice{Candidate: slices.Index(costs, lowest), Score: lowest, Reason: "lowest cost"}
	d.ties.settle(&c, v, n, func(i int) bool { return costs[i] == lowest })
	return c
}

// cost returns the cost of sending a prompt to a replica.
func (d *dynamoKV) cost(input int64, r *Replica, idle int64) float64 {
	a := &r.Stats.Active
	size := float64(a.BlockTokens)
	decode, perRequest := 0.0, float64(d.perRequest*float64(r.Inflight))
	if d.trackActive {
		decode = float64(a.Blocks + int(input)/a.BlockTokens - a.Shared)
	}
	if !d.trackPrefill {
		return max(0, decode-float64(d.credit*float64(r.Cached))) + perRequest
	}
	credit := d.credit
	if d.decay > 0 {
		blocks := max(1, (input+int64(a.BlockTokens)-1)/int64(a.BlockTokens))
		excess := float64(r.Stats.PrefillTokens-idle) / size / float64(blocks)
		credit *= 1 / (1 + float64(d.decay*excess))
	}
	prefill := float64(r.Stats.PrefillTokens+input) / size
	return float64(d.prefillScale*max(0, prefill-float64(credit*float64(r.Cached)))) + decode + perRequest
}

// sample draws a candidate with the probabilities of the softmax.
func (d *dynamoKV) sample(v *View, costs []float64) int {
	r := d.draws.of(v.Draw)
	left := float64(r.float() * d.softmax(costs))
	for i, w := range d.weights[:len(costs)-1] {
		if left < w {
			return i
		}
		left -= w
	}
	return len(costs) - 1
}

// softmax sets the weights, which are proportional to the probabilities, and returns their sum.
func (d *dynamoKV) softmax(costs []float64) (sum float64) {
	low, high := slices.Min(costs), slices.Max(costs)
	for i, c := range costs {
		d.weights[i] = 1
		if high > low {
			d.weights[i] = portable.Exp((low - c) / ((high - low) * d.temperature))
		}
		sum += d.weights[i]
	}
	return sum
}

func (d *dynamoKV) Clone() Router {
	c := *d
	c.costs, c.weights = make([]float64, len(d.costs)), make([]float64, len(d.weights))
	return &c
}
