package engine

import (
	"fmt"
	"slices"

	"blis/pkg/des"
)

// EncodeReplica is an instance that only encodes items, the producer of an EC connector of vLLM 0.33
// (vllm/v1/worker/mm_encoder_model_runner.py). It runs no language model. Each item is a request of its own, which has
// all its tokens in the batch that encodes the item. Of the limits of a batch it has MaxNumSeqs and the budget of the
// encoder; items in its cache take nothing of this. A batch is formed when the one before it has ended.
type EncodeReplica struct {
	maxSeqs int
	encoder *encoder
	spare   []int32
	tasks   []EncodeTask // by the number of their sequences
	waiting []int32      // in order of arrival
	batch   []int32      // being encoded
	end     des.Time     // of the batch
	busy    bool
	stats   EncodeStats
}

// EncodeTask is an item to encode for the request Tag, which came at Since.
type EncodeTask struct {
	Tag   int32
	Since des.Time
	Item
}

// EncodeStats are totals over the life of an EncodeReplica. Hits are the items that were in its cache.
type EncodeStats struct {
	Items, Tokens, Hits, Steps int64
	BusyUS                     des.Time
	PeakWaiting                int
}

// NewEncodeReplica returns an idle replica with an empty cache. The embeddings of any item fit there.
func NewEncodeReplica(cfg *Encoder, maxSeqs int) *EncodeReplica {
	return &EncodeReplica{maxSeqs: maxSeqs, encoder: newEncoder(cfg)}
}

// Add adds an item to the queue.
func (r *EncodeReplica) Add(t EncodeTask) {
	t.Offset = 0
	n := int32(len(r.tasks))
	if last := len(r.spare) - 1; last >= 0 {
		n = r.spare[last]
		r.spare = r.spare[:last]
		r.tasks[n] = t
	} else {
		r.tasks = append(r.tasks, t)
	}
	r.encoder.open(n, []Item{t.Item})
	r.waiting = append(r.waiting, n)
	r.stats.PeakWaiting = max(r.stats.PeakWaiting, len(r.waiting))
}

// Remove takes the items of a request, which has ended, from the queue. Those in a batch are encoded, with the tag -1.
func (r *EncodeReplica) Remove(tag int32) {
	r.waiting = slices.DeleteFunc(r.waiting, func(s int32) bool {
		if r.tasks[s].Tag != tag {
			return false
		}
		r.spare = append(r.spare, s)
		return true
	})
	for _, s := range r.batch {
		if r.tasks[s].Tag == tag {
			r.tasks[s].Tag = noTag
		}
	}
}

// Busy reports whether a batch is being encoded.
func (r *EncodeReplica) Busy() bool { return r.busy }

// Load is how many items wait or are being encoded.
func (r *EncodeReplica) Load() int { return len(r.waiting) + len(r.batch) }

// Start begins with a batch at now, when none is being encoded, and returns when it ends and its items; ok is false if
// nothing waits. An item for which the budget or the cache has no room is passed.
func (r *EncodeReplica) Start(now des.Time) (end des.Time, ok bool) {
	x, us := r.encoder, 0.0
	left := x.Budget
	r.waiting = slices.DeleteFunc(r.waiting, func(s int32) bool {
		t := &r.tasks[s]
		tokens := int64(t.Tokens)
		switch _, cached := x.cached[t.Content]; {
		case len(r.batch) == r.maxSeqs:
			return false
		case cached:
			x.refer(s, 0)
			r.stats.Hits++
		case tokens > left || !x.fits(tokens, 0):
			return false
		default:
			x.insert(s, 0)
			left -= tokens
			us += x.Cost.Item(tokens)
			r.stats.Items++
			r.stats.Tokens += tokens
		}
		r.batch = append(r.batch, s)
		return true
	})
	if len(r.batch) == 0 {
		return 0, false
	}
	r.busy, r.end = true, now+des.Micros(us)
	r.stats.Steps++
	r.stats.BusyUS += r.end - now
	return r.end, true
}

// Batch calls f for each item of the batch that is being encoded, in the order in which they came.
func (r *EncodeReplica) Batch(f func(t *EncodeTask)) {
	for _, s := range r.batch {
		f(&r.tasks[s])
	}
}

// Finish ends the batch and returns its items in the order in which they came. They are valid until Add is called.
func (r *EncodeReplica) Finish() (done []EncodeTask) {
	for _, s := range r.batch {
		r.encoder.releaseAll(s)
		done = append(done, r.tasks[s])
	}
	r.spare = append(r.spare, r.batch...)
	r.batch, r.busy = r.batch[:0], false
	return done
}

// Stats returns the totals until now, in which the part of a batch after that does not count.
func (r *EncodeReplica) Stats(now des.Time) EncodeStats {
	s := r.stats
	if r.busy && r.end > now {
		s.BusyUS -= r.end - now
	}
	return s
}

// Waits reports whether items wait.
func (r *EncodeReplica) Waits() bool { return len(r.waiting) > 0 }

// Check recomputes the totals of the cache and returns the first mismatch.
func (r *EncodeReplica) Check() error {
	x := r.encoder
	free, available := x.CacheTokens, x.CacheTokens
	for _, c := range x.cached { // only sums
		free -= c.tokens
		if c.users > 0 {
			available -= c.tokens
		}
	}
	switch {
	case free != x.free || available != x.available || free < 0:
		return fmt.Errorf("engine: the cache of an encode replica has %d free and %d available tokens, the running "+
			"totals say %d and %d", free, available, x.free, x.available)
	case x.references != len(r.batch) || len(r.batch) > r.maxSeqs:
		return fmt.Errorf("engine: an encode replica encodes %d items of at most %d, with %d references",
			len(r.batch), r.maxSeqs, x.references)
	case r.busy != (len(r.batch) > 0):
		return fmt.Errorf("engine: an encode replica without items is busy")
	}
	return nil
}
