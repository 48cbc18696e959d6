package policy

import (
	"slices"

	"blis/pkg/registry"
)

// scorer writes a score between 0 and 1 for each candidate into scores; values outside are clamped.
// A scorer that also needs the choice implements choiceRecorder.
type scorer interface {
	Needs() Needs
	score(v *View, scores []float64)
	clone() scorer
}

// simpleScorer is a scorer without state whose score of a replica follows from the replica and the extremes of all
// candidates. The score does not rise with any load.
type simpleScorer interface {
	of(r *Replica, all *extreme) float64
}

// choiceRecorder receives the candidate that was chosen.
type choiceRecorder interface{ recordChoice(v *View, c int) }

// Scorers are the terms of the weighted router, in the order in which they are summed.
var Scorers = registry.Table[func(values) scorer]{
	{Name: "prefix-affinity", Doc: "share of the prompt's full blocks that the router sent there before",
		Value: func(values) scorer { return prefixScore{} }},
	{Name: "precise-prefix", Doc: "share of the prompt's full blocks in the replica's cache, as of the last snapshot",
		Value: func(values) scorer { return preciseScore{} }},
	{Name: tieredPrefix,
		Doc: "share of the prompt's full blocks in the replica's cache and behind those in its KV tiers, each block " +
			"with the weight of its tier, as of the last snapshot",
		Value: newTieredScore},
	{Name: "queue-depth", Doc: "1 for the shortest wait queue, 0 for the longest",
		Value: func(values) scorer { return queueScore{} }},
	{Name: "running-requests", Doc: "1 for the fewest running sequences, 0 for the most",
		Value: func(values) scorer { return runningScore{} }},
	{Name: "kv-utilization", Doc: "free share of the block cache", Value: func(values) scorer { return kvScore{} }},
	{Name: "active-requests", Doc: "1 - requests in flight / maximum of all candidates",
		Value: func(values) scorer { return activeScore{} }},
	{Name: "load-aware", Doc: "0.5 for an empty queue, falling to 0 for 128 waiting",
		Value: func(values) scorer { return loadScore{} }},
	{Name: "session-affinity", Doc: "1 for the replica of the session's last request",
		Value: func(values) scorer { return &sessionScore{} }},
	{Name: "no-hit-lru",
		Doc: "for a prompt without a cached prefix: highest for the replica that got such a prompt " +
			"least recently; else 0.5",
		Value: func(values) scorer { return &noHitLRU{} }},
}

// Scorers without state are their own clones.
type prefixScore struct{}

func (prefixScore) Needs() Needs    { return NeedShadow }
func (s prefixScore) clone() scorer { return s }
func (prefixScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		scores[i] = v.Replicas[i].matchShare()
	}
}
func (prefixScore) of(r *Replica, _ *extreme) float64 { return r.matchShare() }

type preciseScore struct{}

func (preciseScore) Needs() Needs    { return NeedCache }
func (s preciseScore) clone() scorer { return s }
func (preciseScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		r := &v.Replicas[i]
		scores[i] = 0
		if r.Cached > 0 {
			scores[i] = float64(r.Cached) / float64(r.Blocks)
		}
	}
}

type queueScore struct{}

func (queueScore) Needs() Needs    { return NeedQueueDepth }
func (s queueScore) clone() scorer { return s }
func (queueScore) score(v *View, scores []float64) {
	scoreLowest(v, scores, func(r *Replica) int32 { return r.QueueDepth })
}
func (queueScore) of(r *Replica, all *extreme) float64 {
	return scoreBetween(r.QueueDepth, all.low.QueueDepth, all.high.QueueDepth)
}

type runningScore struct{}

func (runningScore) Needs() Needs    { return NeedRunning }
func (s runningScore) clone() scorer { return s }
func (runningScore) score(v *View, scores []float64) {
	scoreLowest(v, scores, func(r *Replica) int32 { return r.Running })
}
func (runningScore) of(r *Replica, all *extreme) float64 {
	return scoreBetween(r.Running, all.low.Running, all.high.Running)
}

// scoreLowest scores the lowest value 1 and the highest 0, linearly between; all 1 if they are
// equal.
func scoreLowest(v *View, scores []float64, of func(*Replica) int32) {
	low, high := of(&v.Replicas[0]), of(&v.Replicas[0])
	for i := range scores {
		x := of(&v.Replicas[i])
		low, high = min(low, x), max(high, x)
		scores[i] = float64(x)
	}
	for i, x := range scores {
		scores[i] = scoreBetween(int32(x), low, high)
	}
}

func scoreBetween(x, low, high int32) float64 {
	if high == low {
		return 1
	}
	return float64(high-x) / float64(high-low)
}

type kvScore struct{}

func (kvScore) Needs() Needs    { return needKVUtil }
func (s kvScore) clone() scorer { return s }
func (kvScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		scores[i] = kvScore{}.of(&v.Replicas[i], nil)
	}
}
func (kvScore) of(r *Replica, _ *extreme) float64 { return 1 - r.KVUtil }

type activeScore struct{}

func (activeScore) Needs() Needs    { return 0 }
func (s activeScore) clone() scorer { return s }
func (activeScore) score(v *View, scores []float64) {
	highest := int32(0)
	for i := range v.Replicas {
		highest = max(highest, v.Replicas[i].Inflight)
	}
	for i := range v.Replicas {
		scores[i] = scoreBelow(v.Replicas[i].Inflight, highest)
	}
}
func (activeScore) of(r *Replica, all *extreme) float64 {
	return scoreBelow(r.Inflight, all.high.Inflight)
}

func scoreBelow(x, highest int32) float64 {
	if highest == 0 {
		return 1
	}
	return 1 - float64(x)/float64(highest)
}

// loadScore is llm-d's load-aware scorer, with its threshold of 128 waiting requests.
type loadScore struct{}

func (loadScore) Needs() Needs    { return NeedQueueDepth }
func (s loadScore) clone() scorer { return s }
func (loadScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		w := float64(min(v.Replicas[i].QueueDepth, 128))
		scores[i] = 0.5 * (1 - float64(w/128))
	}
}

type sessionScore struct{ home sessionHome }

func (*sessionScore) Needs() Needs    { return NeedSession | NeedRequest }
func (s *sessionScore) clone() scorer { return &sessionScore{slices.Clone(s.home)} }
func (s *sessionScore) score(v *View, scores []float64) {
	clear(scores)
	if home := s.home.find(v); home >= 0 {
		scores[home] = 1
	}
}
func (s *sessionScore) recordChoice(v *View, c int) { s.home.recordChoice(v, c) }

// noHitLRU is llm-d's scorer of that name: it spreads prompts without a known cached prefix,
// preferring the replica that has gone longest without one.
type noHitLRU struct {
	// lastColdOf is the number of each replica's last cold request, 0 for none.
	lastColdOf []int64
	cold       int64
}

func (*noHitLRU) Needs() Needs    { return NeedShadow }
func (s *noHitLRU) clone() scorer { return &noHitLRU{slices.Clone(s.lastColdOf), s.cold} }

func (s *noHitLRU) score(v *View, scores []float64) {
	n := len(v.Replicas)
	if hasPrefixAnywhere(v) || n == 1 {
		for i := range scores {
			scores[i] = 0.5
		}
		return
	}
	for i := range v.Replicas {
		preferred := 0 // candidates ranked before this one
		for k := range v.Replicas {
			if a, b := s.lastCold(&v.Replicas[k]), s.lastCold(&v.Replicas[i]); a < b || a == b && k < i {
				preferred++
			}
		}
		scores[i] = 1 - float64(preferred)/float64(n-1)
	}
}

func (s *noHitLRU) lastCold(r *Replica) int64 {
	if int(r.Index) < len(s.lastColdOf) {
		return s.lastColdOf[r.Index]
	}
	return 0
}

func (s *noHitLRU) recordChoice(v *View, c int) {
	if hasPrefixAnywhere(v) {
		return
	}
	r := v.Replicas[c].Index
	for len(s.lastColdOf) <= int(r) {
		s.lastColdOf = append(s.lastColdOf, 0)
	}
	s.cold++
	s.lastColdOf[r] = s.cold
}

// hasPrefixAnywhere reports whether the router expects any part of the prompt to be cached on any
// candidate.
func hasPrefixAnywhere(v *View) bool {
	return slices.ContainsFunc(v.Replicas, func(r Replica) bool { return r.Matched > 0 })
}
