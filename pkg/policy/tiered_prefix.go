package policy

// tieredPrefix is the scorer that also counts the blocks in KV tiers.
const tieredPrefix = "tiered-prefix"

// tierWeights are parameters of the weighted router for tieredPrefix. A block of the cache has weight 1. Those of the
// tiers gpu and cpu are the defaults of llm-d's index (kvCacheBackendConfigs in docs/configuration.md of
// llm-d-kv-cache).
var tierWeights = []Param{
	{Name: "tiered_prefix_cpu", Kind: Number, Max: 1, Search: [2]float64{0, 1}, Default: 0.8,
		Doc: "weight of a block in the KV tier cpu for the scorer tiered-prefix"},
	{Name: "tiered_prefix_storage", Kind: Number, Max: 1, Search: [2]float64{0, 1}, Default: 0.3,
		Doc: "weight of a block in the KV tier storage for the scorer tiered-prefix"},
}

// tieredScore is the share of the prompt's full blocks that a replica would find, weighted by where it would: in its
// cache, or behind those in its tiers.
type tieredScore struct{ cpu, storage float64 }

func newTieredScore(v values) scorer {
	return &tieredScore{v.number(tierWeights[0].Name), v.number(tierWeights[1].Name)}
}

func (*tieredScore) Needs() Needs    { return NeedCache | NeedTierBlocks }
func (t *tieredScore) clone() scorer { return t }
func (t *tieredScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		scores[i] = 0
		if n := r.Cached + r.Stats.Tiers.CPU + r.Stats.Tiers.Storage; n > 0 {
			sum := float64(r.Cached) + float64(t.cpu*float64(r.Stats.Tiers.CPU))
			sum += float64(t.storage * float64(r.Stats.Tiers.Storage))
			scores[i] = sum / float64(r.Blocks)
		}
	}
}
