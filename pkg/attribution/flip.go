package attribution

import (
	"math"
	"slices"

	"blis/pkg/stream"
)

// queueScorer is the scorer of the policy weighted that compares queues.
const queueScorer = "queue-depth"

// flipShare is the share of the losing decisions that a proposed weight would have flipped.
const flipShare = 0.9

// flipWeight is the weight of queue-depth above which another candidate in the record, with a shorter queue, would have
// had the highest score, the smallest such weight; 0 where there is none, or where the policy has no such scorer.
func (a *Analyzer) flipWeight(d *stream.Decision) (weight float64) {
	k := slices.Index(d.Scorers, queueScorer)
	now := a.queueWeight
	chosen := slices.IndexFunc(d.Considered, func(c stream.Candidate) bool {
		return c.Deployment == d.Deployment && c.Replica == d.Replica
	})
	if k < 0 || chosen < 0 || now == 0 {
		return 0
	}
	c := &d.Considered[chosen]
	for i := range d.Considered {
		x := &d.Considered[i]
		if i == chosen || x.Filtered || len(x.Terms) <= k || len(c.Terms) <= k || !(x.Terms[k] > c.Terms[k]) {
			continue
		}
		// Without the queue term the choice leads by this much.
		lead := float64(c.Score) - float64(x.Score) - float64(now*(c.Terms[k]-x.Terms[k]))
		if w := lead / (x.Terms[k] - c.Terms[k]); w > 0 && (weight == 0 || w < weight) {
			weight = w
		}
	}
	return weight
}

// flipQueues proposes the weight of queues at which most of the losing decisions would have gone to a shorter queue.
func (x *proposal) flipQueues() []Change {
	var weights []float64
	for _, r := range x.p.losing {
		if r.seen().flipWeight > 0 {
			weights = append(weights, r.seen().flipWeight)
		}
	}
	if 2*len(weights) < len(x.p.losing) || len(weights) == 0 {
		return x.readQueues()
	}
	slices.Sort(weights)
	w := weights[min(len(weights)-1, int(flipShare*float64(len(weights))))]
	scale := math.Pow(10, 1-math.Floor(math.Log10(w))) // two digits
	w = math.Ceil(float64(w*scale)+1e-9) / scale
	if w <= x.queueWeight {
		return x.readQueues()
	}
	return []Change{x.set("policies.routing.params."+queueScorer, w)}
}
