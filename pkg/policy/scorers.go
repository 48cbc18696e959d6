package policy

import (
	"slices"

	"blis/pkg/registry"
)

// scorer puts a score between 0 and 1 for each candidate into scores; what is
// beyond is cut. One that wants to know what was chosen is a mover too.
type scorer interface {
	Needs() Needs
	score(v *View, scores []float64)
	clone() scorer
}

// mover is told which candidate the request went to.
type mover interface{ moved(v *View, c int) }

// Scorers are the terms that weighted knows, in the order in which they are
// summed.
var Scorers = registry.Table[func() scorer]{
	{Name: "prefix-affinity", Doc: "share of the prompt's full blocks that the router sent there before", Value: func() scorer { return prefixScore{} }},
	{Name: "precise-prefix", Doc: "share of the prompt's full blocks in the replica's cache as last seen", Value: func() scorer { return preciseScore{} }},
	{Name: "queue-depth", Doc: "1 for the shortest wait queue, 0 for the longest", Value: func() scorer { return queueScore{} }},
	{Name: "running-requests", Doc: "1 for the fewest running sequences, 0 for the most", Value: func() scorer { return runningScore{} }},
	{Name: "kv-utilization", Doc: "free share of the block cache", Value: func() scorer { return kvScore{} }},
	{Name: "active-requests", Doc: "1 - requests in flight/the most of any candidate", Value: func() scorer { return activeScore{} }},
	{Name: "load-aware", Doc: "0.5 for an empty queue, falling to 0 for 128 waiting", Value: func() scorer { return loadScore{} }},
	{Name: "session-affinity", Doc: "1 for the replica of the session's last request", Value: func() scorer { return &sessionScore{} }},
	{Name: "no-hit-lru", Doc: "for a prompt that nobody has: the longer no such prompt went there the more; else 0.5", Value: func() scorer { return &noHitLRU{} }},
}

// prefixScore and the next ones have no state: they are their own clones.
type prefixScore struct{}

func (prefixScore) Needs() Needs    { return NeedShadow }
func (s prefixScore) clone() scorer { return s }
func (prefixScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		scores[i] = v.Replicas[i].share()
	}
}

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
	spread(v, scores, func(r *Replica) int32 { return r.QueueDepth })
}

type runningScore struct{}

func (runningScore) Needs() Needs    { return NeedRunning }
func (s runningScore) clone() scorer { return s }
func (runningScore) score(v *View, scores []float64) {
	spread(v, scores, func(r *Replica) int32 { return r.Running })
}

// spread scores the least 1 and the most 0, all 1 where they are equal.
func spread(v *View, scores []float64, of func(*Replica) int32) {
	low, high := of(&v.Replicas[0]), of(&v.Replicas[0])
	for i := range v.Replicas {
		x := of(&v.Replicas[i])
		low, high = min(low, x), max(high, x)
	}
	for i := range v.Replicas {
		scores[i] = 1
		if high > low {
			scores[i] = float64(high-of(&v.Replicas[i])) / float64(high-low)
		}
	}
}

type kvScore struct{}

func (kvScore) Needs() Needs    { return NeedKVUtil }
func (s kvScore) clone() scorer { return s }
func (kvScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		scores[i] = 1 - v.Replicas[i].KVUtil
	}
}

type activeScore struct{}

func (activeScore) Needs() Needs    { return 0 }
func (s activeScore) clone() scorer { return s }
func (activeScore) score(v *View, scores []float64) {
	most := int32(0)
	for i := range v.Replicas {
		most = max(most, v.Replicas[i].Inflight)
	}
	for i := range v.Replicas {
		scores[i] = 1
		if most > 0 {
			scores[i] = 1 - float64(v.Replicas[i].Inflight)/float64(most)
		}
	}
}

// loadScore is llm-d's load-aware scorer: its threshold is 128 waiting requests.
type loadScore struct{}

func (loadScore) Needs() Needs    { return NeedQueueDepth }
func (s loadScore) clone() scorer { return s }
func (loadScore) score(v *View, scores []float64) {
	for i := range v.Replicas {
		w := float64(min(v.Replicas[i].QueueDepth, 128))
		scores[i] = 0.5 * (1 - w/128)
	}
}

type sessionScore struct{ homes homes }

func (*sessionScore) Needs() Needs    { return NeedSession | NeedRequest }
func (s *sessionScore) clone() scorer { return &sessionScore{slices.Clone(s.homes)} }
func (s *sessionScore) score(v *View, scores []float64) {
	clear(scores)
	if home := s.homes.of(v); home >= 0 {
		scores[home] = 1
	}
}
func (s *sessionScore) moved(v *View, c int) { s.homes.moved(v, c) }

// noHitLRU is llm-d's scorer of that name: prompts that the router knows from
// nowhere go around, to the replica that has not had one for longest.
type noHitLRU struct {
	// last is the number of each replica's last cold request, 0 for none.
	last []int64
	cold int64
}

func (*noHitLRU) Needs() Needs    { return NeedShadow }
func (s *noHitLRU) clone() scorer { return &noHitLRU{slices.Clone(s.last), s.cold} }

func (s *noHitLRU) score(v *View, scores []float64) {
	n := len(v.Replicas)
	if isKnown(v) || n == 1 {
		for i := range scores {
			scores[i] = 0.5
		}
		return
	}
	for i := range v.Replicas {
		earlier := 0 // candidates that come before it
		for k := range v.Replicas {
			if a, b := s.at(&v.Replicas[k]), s.at(&v.Replicas[i]); a < b || a == b && k < i {
				earlier++
			}
		}
		scores[i] = 1 - float64(earlier)/float64(n-1)
	}
}

func (s *noHitLRU) at(r *Replica) int64 {
	if int(r.Index) < len(s.last) {
		return s.last[r.Index]
	}
	return 0
}

func (s *noHitLRU) moved(v *View, c int) {
	if isKnown(v) {
		return
	}
	r := v.Replicas[c].Index
	for len(s.last) <= int(r) {
		s.last = append(s.last, 0)
	}
	s.cold++
	s.last[r] = s.cold
}

// isKnown reports whether the router believes any of the prompt to be anywhere.
func isKnown(v *View) bool {
	return slices.ContainsFunc(v.Replicas, func(r Replica) bool { return r.Matched > 0 })
}
