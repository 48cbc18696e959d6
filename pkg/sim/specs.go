package sim

import (
	"fmt"
	"math"
	"math/rand/v2"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/latency"
)

// replicaSpec is what a deployment's model determines for the step times of its replicas.
// Jitter is drawn from streams named by the seed and the deployment's id.
type replicaSpec struct {
	model  latency.Model
	jitter float64
	power  power
	id     string
	seed   uint64
}

// replicaSpecs returns the specs of all deployments of c.
func replicaSpecs(c *cluster.Config, jitterSeed uint64) ([]replicaSpec, error) {
	var all []replicaSpec
	for _, d := range c.Pools() {
		model, err := d.LatencyModel()
		if err != nil {
			return nil, err
		}
		p, err := newPower(d)
		if err != nil {
			return nil, err
		}
		if d.Engine.SeparateRanks() {
			model, p = latency.OneRank(model), p.oneRank()
		}
		all = append(all, replicaSpec{model: model, jitter: d.Latency.Jitter.CV, power: p, id: d.ID, seed: jitterSeed})
	}
	return all, nil
}

// jitter is the noise on the step times of one replica and its source.
type jitter struct {
	cv     float64
	stream *rand.PCG
}

// newJitter returns the jitter of replica k.
func (s *replicaSpec) newJitter(k int) jitter {
	return jitter{s.jitter, dist.NewSource(s.seed, fmt.Sprintf("jitter/%s/%d", s.id, k))}
}

// wrap returns m with jitter.
func (j jitter) wrap(m latency.Model) latency.Model {
	return latency.Jitter(m, j.cv, rand.New(j.stream).NormFloat64)
}

// clone returns a jitter that draws the same numbers from here on.
func (j jitter) clone() jitter {
	stream := *j.stream
	return jitter{j.cv, &stream}
}

// cacheConfig converts the cache of a deployment. If its data-parallel ranks are merged, a replica has the blocks of
// all.
func cacheConfig(d *cluster.Deployment) kv.Config {
	e := &d.Engine
	return kv.Config{Blocks: d.UsableBlocks() * e.MergedRanks(), BlockSize: d.HitSize(),
		Caching: e.EnablePrefixCaching, UnhashedFirst: e.FreeOrder == cluster.UnhashedFirst,
		HashLookahead: e.SpeculativeConfig.HashLookahead(), DropLastHit: e.SpeculativeConfig.DropLastHit(),
		Groups: d.KVGroups(), Rules: d.KVRules()}
}

// engineConfig converts the limits of a deployment. If its data-parallel ranks are merged, a replica is one engine with
// the capacity of all.
func engineConfig(d *cluster.Deployment) engine.Config {
	e := &d.Engine
	cores := e.MergedRanks()
	c := engine.Config{MaxNumSeqs: e.ActiveSeqs() * cores, MaxNumBatchedTokens: e.MaxNumBatchedTokens * cores,
		ChunkedPrefill:            e.EnableChunkedPrefill,
		LongPrefillTokenThreshold: max(e.LongPrefillTokenThreshold, e.ChunkSize),
		ThresholdSparesLone:       !e.LongPrefillTokenThresholdLone,
		AdaptiveThreshold:         e.LongPrefillTokenThresholdAdaptive,
		PrefillInterval:           e.PrefillScheduleInterval,
		JointSteps:                d.Lockstep(),
		AsyncScheduling:           e.AsyncScheduling, ReserveFullSequence: e.ReserveFullSequence,
		WatermarkBlocks:             cores * int(math.Floor(e.Watermark*float64(d.Computed.KVBlocks))),
		StateBlock:                  d.StateBlock(),
		StateChunks:                 e.StateChunks(),
		StateCheckpoints:            e.NumPrefillCheckpointBlocks,
		Window:                      d.Computed.WindowTokens,
		ContinueAfterSelfPreemption: e.AfterSelfPreemption == cluster.ContinueScheduling,
		IdleVictimSkipsNext:         e.IdleVictimSkipsNext,
		Speculation:                 speculation(e), LoRA: lora(e), Grammars: grammarsOf(e), Encoder: encoder(e),
		Pipeline: pipeline(d)}
	if cores > 1 {
		c.MaxSequenceTokens = e.MaxNumBatchedTokens // a sequence has the budget of one core
	}
	return c
}

// speculation converts speculative decoding; nil if there is none.
func speculation(e *cluster.Engine) *engine.Speculation {
	s := e.SpeculativeConfig
	if s == nil {
		return nil
	}
	return &engine.Speculation{Tokens: s.NumSpeculativeTokens, Schedule: s.Schedule(e.MaxNumSeqs),
		Lookahead: s.Lookahead(), BudgetSlots: s.BudgetSlots(), HashLookahead: s.HashLookahead(),
		MaxModelLen: e.MaxModelLen, Rates: s.Rates()}
}

// pipeline converts pipeline parallelism; nil for a single stage.
func pipeline(d *cluster.Deployment) *engine.Pipeline {
	e := &d.Engine
	if e.PipelineParallelSize == 1 {
		return nil
	}
	return &engine.Pipeline{Layers: d.Computed.PipelineLayers, Batches: d.Computed.MaxConcurrentBatches,
		EmptyBatches: *e.PipelineEmptyBatches, Cadence: e.BatchCadence(), HopUS: *e.PipelineHopUS,
		HopTokenUS: *e.PipelineHopTokenUS, MaxModelLen: e.MaxModelLen}
}

// lora converts the use of adapters; nil if there are none.
func lora(e *cluster.Engine) *engine.LoRA {
	if e.MaxLoras == 0 {
		return nil
	}
	return &engine.LoRA{MaxLoras: e.MaxLoras, MaxCPULoras: e.MaxCPULoras, LoadUS: des.Micros(*e.LoRA.LoadUS),
		CopyUS: des.Micros(*e.LoRA.CopyUS)}
}

// encoder converts the encoder; nil if there is none.
func encoder(e *cluster.Engine) *engine.Encoder {
	x := &e.Encoder
	if x.MaxTokensPerItem == 0 {
		return nil
	}
	return &engine.Encoder{Budget: int64(x.MaxNumInputTokens), CacheTokens: int64(x.CacheSize),
		WholeItems: x.DisableChunkedInput, Cost: latency.LinearEncoder{ItemUS: x.ItemUS, TokenUS: *x.TokenUS}}
}

// draftSeed is the seed of the drafts of a request that are accepted: FNV-1a of its id, begun with the seed of the run.
func draftSeed(seed uint64, id string) uint64 { return fnv1a(fnvBegin^seed*0x9e3779b97f4a7c15, id) }

// The numbers of FNV-1a.
const fnvBegin, fnvPrime uint64 = 0xcbf29ce484222325, 0x100000001b3

// fnv1a continues a hash with the bytes of text.
func fnv1a(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * fnvPrime
	}
	return h
}
