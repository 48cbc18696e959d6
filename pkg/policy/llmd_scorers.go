package policy

import "slices"

// The scorers of llm-d-router v0.10.0 (pkg/epp/framework/plugins/scheduling/scorer) whose rules are
// not those of a scorer of the weighted router. Scorers without state are their own clones.

// idleScore is active-request-scorer (activerequest/active_request.go): 1 for a replica with at most
// idle requests in flight, for others maxBusy for the lowest number, falling to 0 for the highest.
type idleScore struct {
	idle    int32
	maxBusy float64
}

func newIdleScore(_ *builder, v values) any {
	return idleScore{int32(v.number("idleThreshold")), v.number("maxBusyScore")}
}

func (idleScore) Needs() Needs    { return 0 }
func (s idleScore) clone() scorer { return s }
func (s idleScore) score(v *View, scores []float64) {
	highest := int32(0)
	for i := range v.Replicas {
		highest = max(highest, v.Replicas[i].Inflight)
	}
	for i := range v.Replicas {
		scores[i] = 1
		if x := v.Replicas[i].Inflight; x > s.idle {
			scores[i] = float64(highest-x) / float64(highest) * s.maxBusy
		}
	}
}

// queueLimitScore is load-aware-scorer (loadaware/load_aware.go): 0.5 for an empty queue, falling to
// 0 for threshold waiting requests.
type queueLimitScore struct{ threshold float64 }

func newQueueLimitScore(_ *builder, v values) any { return queueLimitScore{v.number("threshold")} }

func (queueLimitScore) Needs() Needs    { return NeedQueueDepth }
func (s queueLimitScore) clone() scorer { return s }
func (s queueLimitScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		w := min(float64(v.Replicas[i].QueueDepth), s.threshold)
		scores[i] = 0.5 * (1 - w/s.threshold)
	}
}

// tokenLoadScore is token-load-scorer (tokenload/token_load.go): 1 for no tokens to compute, falling
// to 0 for threshold. Tokens to compute are those of prompts sent there without a first token, and
// those of this prompt, all without what was expected to be cached.
type tokenLoadScore struct{ threshold float64 }

func newTokenLoadScore(_ *builder, v values) any {
	return tokenLoadScore{v.number("queueThresholdTokens")}
}

func (tokenLoadScore) Needs() Needs    { return NeedRequest | NeedBlockIndex | NeedPrefillTokens }
func (s tokenLoadScore) clone() scorer { return s }
func (s tokenLoadScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		stats := v.Replicas[i].Stats
		load := float64(stats.PrefillTokens + stats.Prefix.Uncached(v.Request.InputTokens))
		scores[i] = 1 - min(load, s.threshold)/s.threshold
	}
}

// blockShareScore is prefix-cache-scorer (prefix/plugin.go): the share of the prompt's blocks that
// the router's index has of the replica, mixed with the square of their tokens relative to scale.
type blockShareScore struct{ lengthWeight, scale float64 }

func newBlockShareScore(_ *builder, v values) any {
	return blockShareScore{v.number("matchLengthWeight"), v.number("matchLengthScaleTokens")}
}

func (blockShareScore) Needs() Needs    { return NeedBlockIndex }
func (s blockShareScore) clone() scorer { return s }
func (s blockShareScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		m := &v.Replicas[i].Stats.Prefix
		if scores[i] = 0; m.Blocks == 0 {
			continue
		}
		share := float64(m.Matched) / float64(m.Blocks)
		length := 0.0
		if s.lengthWeight > 0 {
			length = min(1, float64(m.Matched)*float64(m.BlockTokens)/s.scale)
			length *= length
		}
		scores[i] = float64(s.lengthWeight*length) + float64((1-s.lengthWeight)*share)
	}
}

// coldScore is no-hit-lru-scorer (nohitlru/no_hit_lru.go). For a prompt without a known cached prefix
// it prefers replicas that never got such a prompt, then the one that got one least recently. Of the
// former, the first candidates have the higher scores. Other prompts give 0.5.
type coldScore struct {
	size int
	// order has the replicas that got such a prompt, the least recent first.
	order  []int32
	isCold bool // the last prompt scored
}

func newColdScore(_ *builder, v values) any { return &coldScore{size: int(v.number("lruSize"))} }

func (*coldScore) Needs() Needs { return NeedBlockIndex }
func (s *coldScore) clone() scorer {
	return &coldScore{s.size, slices.Clone(s.order), s.isCold}
}

func (s *coldScore) score(v *View, scores []float64) {
	s.isCold = true
	unused := 0
	for i := range v.Replicas {
		s.isCold = s.isCold && v.Replicas[i].Stats.Prefix.Matched == 0
		if !slices.Contains(s.order, v.Replicas[i].Index) {
			unused++
		}
	}
	rank := 0 // of a replica without such a prompt
	for i := range v.Replicas {
		switch at := slices.Index(s.order, v.Replicas[i].Index); {
		case !s.isCold:
			scores[i] = 0.5
		case len(scores) == 1:
			scores[i] = 1
		case at < 0:
			scores[i] = 1 - float64(rank)/float64(len(scores)-1)
			rank++
		default: // at counts other replicas too, also those that are no candidates
			scores[i] = max(0, 1-float64(unused+at)/float64(len(scores)-1))
		}
	}
}

func (s *coldScore) recordChoice(v *View, c int) {
	if !s.isCold {
		return
	}
	r := v.Replicas[c].Index
	if at := slices.Index(s.order, r); at >= 0 {
		s.order = slices.Delete(s.order, at, at+1)
	} else if len(s.order) == s.size {
		s.order = slices.Delete(s.order, 0, 1)
	}
	s.order = append(s.order, r)
}

// adapterScore is lora-affinity-scorer: 1 for a replica with requests of the adapter, 0.8 for others that have fewer
// adapters than half of those that they serve at a time, else 0. llm-d adds the adapters that run to those that wait
// (loraaffinity/lora_affinity.go), and vLLM 0.33 lists each in both (LoRARequestStates in vllm/v1/metrics/stats.py).
type adapterScore struct{}

func (adapterScore) Needs() Needs    { return NeedAdapter | NeedQueueDepth }
func (s adapterScore) clone() scorer { return s }
func (adapterScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		switch a := v.Replicas[i].Stats.Adapter; {
		case a.Active:
			scores[i] = 1
		case 2*a.Count < a.Max:
			scores[i] = 0.8
		default:
			scores[i] = 0
		}
	}
}
