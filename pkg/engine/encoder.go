package engine

import (
	"slices"

	"blis/pkg/des"
	"blis/pkg/latency"
)

// Encoder computes the embeddings of images, audio and video, as in vLLM 0.33: which items a step encodes is
// Scheduler._try_schedule_encoder_inputs in vllm/v1/core/sched/scheduler.py, and what is kept EncoderCacheManager in
// vllm/v1/core/encoder_cache_manager.py. Each token of an item has one embedding.
type Encoder struct {
	// Budget is the maximum number of tokens that a step encodes, CacheTokens the number of which the embeddings are
	// kept. Both are at least the tokens of any item.
	Budget, CacheTokens int64
	// WholeItems computes no part of an item in a step unless a later one begins within it (disable_chunked_mm_input).
	WholeItems bool
	// Cost is how long the encoder takes, before the model computes the step.
	Cost latency.Encoder
	// Remote: encode replicas compute the embeddings, and this one asks for them.
	Remote bool
}

// Item is an image, an audio clip or a video in a prompt.
type Item struct {
	// Offset is the position of its first token in the prompt.
	Offset, Tokens int32
	// Content is equal for items of the same content, which have the same tokens.
	Content uint64
}

func (x *Item) end() int32 { return x.Offset + x.Tokens }

// encoder is the state of the encoder of a replica and of its cache.
type encoder struct {
	*Encoder
	cached map[uint64]embeddings
	// unused are the cached contents that no request has a reference to, the first to be evicted first.
	unused []uint64
	// free is the unused size of the cache, available that with the size of unused contents.
	free, available int64
	uses            []itemUse // by sequence
	// live are the running sequences with items that they have not all computed or still have references to, in order
	// of admission. references counts the items for which requests have them.
	live       []int32
	references int
	// left is the budget of the batch being formed.
	left   int64
	plan   encoding
	remote *remote // nil unless Remote
}

// embeddings are those of a content in the cache, with the number of requests that refer to them.
type embeddings struct {
	tokens int64
	users  int
}

// itemUse are the items of a sequence in order of their offsets. Those marked held refer to embeddings.
type itemUse struct {
	items []Item
	held  []bool
	holds int
}

// encoding is what a step encodes for one sequence, and the items with the same contents.
type encoding struct {
	items, duplicates []int
	// hits counts the items found in the cache to which the sequence did not refer.
	hits         int64
	tokens, left int64 // left: of the budget
}

func (p *encoding) clear() { p.items, p.duplicates, p.hits = p.items[:0], p.duplicates[:0], 0 }

// encoded is an item that a batch encodes.
type encoded struct {
	seq  int32
	item int
}

func newEncoder(cfg *Encoder) *encoder {
	if cfg == nil {
		return nil
	}
	x := &encoder{Encoder: cfg, cached: map[uint64]embeddings{}, free: cfg.CacheTokens, available: cfg.CacheTokens}
	if cfg.Remote {
		x.remote = newRemote()
	}
	return x
}

// try plans the encoding of the items of s among n tokens after computed ones, and returns how many of these can be
// computed. The embeddings found in the cache are referred to at once.
func (x *encoder) try(s int32, computed, n int) int {
	u := &x.uses[s]
	p := &x.plan
	p.tokens, p.left, p.hits = 0, x.left, 0
	for i, first := range u.items {
		start, tokens := int(first.Offset), int64(first.Tokens)
		switch end := int(first.end()); {
		case n == 0 || end <= computed:
			continue
		case start >= computed+n:
			return n
		case x.WholeItems && computed <= start && computed+n < end:
			return max(0, start-computed)
		}
		same := func(k int) bool { return u.items[k].Content == first.Content }
		if slices.ContainsFunc(p.items, same) {
			p.duplicates = append(p.duplicates, i)
			continue
		}
		if _, ok := x.cached[first.Content]; ok {
			if !u.held[i] {
				p.hits++
			}
			x.refer(s, i)
			continue
		}
		if x.lost(first.Content) || tokens > p.left || !x.fits(tokens, p.tokens) {
			return min(n, max(0, start-computed))
		}
		p.items = append(p.items, i)
		if p.tokens += tokens; x.remote == nil {
			p.left -= tokens
		}
	}
	return n
}

// encode makes b encode what was planned for s, which b has.
func (e *Engine) encode(b *batch, s int32) {
	x := e.encoder
	p, u := &x.plan, &x.uses[s]
	if len(p.items) > 0 {
		x.left = p.left
	}
	for _, i := range p.items {
		x.insert(s, i)
		if x.remote == nil {
			b.encoded = append(b.encoded, encoded{s, i})
			continue
		}
		e.stats.LoadedItems++
		e.stats.LoadedTokens += int64(u.items[i].Tokens)
	}
	for _, i := range p.duplicates {
		x.refer(s, i)
	}
	e.stats.EncoderHits += p.hits + int64(len(p.duplicates))
	p.clear()
}

// hasItems reports whether s has items that it has not computed.
func (x *encoder) hasItems(s int32, computed int32) bool {
	items := x.uses[s].items
	return len(items) > 0 && items[len(items)-1].end() > computed
}

// encodes reports whether a running sequence may need the encoder.
func (e *Engine) encodes() bool {
	return slices.ContainsFunc(e.encoder.live, func(s int32) bool {
		return e.seqs[s].state == individual && e.encoder.hasItems(s, e.seqs[s].computed)
	})
}

// cutAtItem returns how many of n tokens of the sequence s can be computed after computed ones.
func (e *Engine) cutAtItem(s int32, computed, n int) int {
	x := e.encoder
	x.plan.clear()
	if n == 0 || !x.hasItems(s, int32(computed)) {
		return n
	}
	m := x.try(s, computed, n)
	if m < n {
		e.stats.EncoderCuts++
	}
	return m
}

// withdrawItems takes back what b encodes for s, which does not have it any more. The embeddings count as computed
// all the same, as those of vLLM do.
func (e *Engine) withdrawItems(b *batch, s int32) {
	x := e.encoder
	b.encoded = slices.DeleteFunc(b.encoded, func(n encoded) bool {
		if n.seq != s {
			return false
		}
		x.left += int64(x.uses[s].items[n.item].Tokens)
		return true
	})
}

// countItems counts what b encodes, whose sequences are not advanced yet, and notes those that may then release items.
func (e *Engine) countItems(b *batch) {
	x := e.encoder
	tokens := int64(0)
	cost := 0.0
	for _, n := range b.encoded {
		t := int64(x.uses[n.seq].items[n.item].Tokens)
		tokens += t
		cost += x.Cost.Item(t)
	}
	b.EncodedItems, b.EncodedTokens, b.EncoderUS = len(b.encoded), tokens, des.Micros(cost)
	e.stats.EncodedItems += int64(b.EncodedItems)
	e.stats.EncodedTokens += tokens
	e.stats.EncoderUS += b.EncoderUS
	live := x.live[:0]
	for _, s := range x.live {
		q := &e.seqs[s]
		if q.state == individual && q.lastBatch == b.number || q.state == decoding && b.ticked {
			b.withItems = append(b.withItems, s)
		}
		if x.uses[s].holds > 0 || q.state == individual && x.hasItems(s, q.computed) {
			live = append(live, s)
		}
	}
	x.live = live
}

// enterItems makes s, which found the tokens before computed in the cache, run, and b encode what was planned for it.
func (e *Engine) enterItems(b *batch, s int32, computed int) {
	x := e.encoder
	u := &x.uses[s]
	if len(u.items) == 0 {
		return
	}
	if !e.seqs[s].admitted {
		for i := range u.items {
			if int(u.items[i].end()) <= computed {
				e.stats.PrefixItems++
			}
		}
	}
	x.live = append(x.live, s)
	e.encode(b, s)
}

// leaveItems ends all references of s, which no longer runs.
func (e *Engine) leaveItems(s int32) {
	e.encoder.releaseAll(s)
	e.encoder.live = slices.DeleteFunc(e.encoder.live, func(t int32) bool { return t == s })
}

// finishItems releases, in the order of the batch, the items whose tokens are computed when b ends. With asynchronous
// scheduling tokens of the next batch count as computed, but not those whose output is not known
// (Scheduler._free_encoder_inputs).
func (e *Engine) finishItems(b *batch) {
	x := e.encoder
	for _, s := range b.withItems {
		q, u := &e.seqs[s], &x.uses[s]
		if u.holds == 0 {
			continue
		}
		known := q.computed
		if e.cfg.AsyncScheduling && q.emitted == 0 && q.generated > 0 {
			known = q.input - 1
		}
		for i := range u.items {
			if u.held[i] && u.items[i].end() <= known {
				x.release(s, i)
			}
		}
		if q.output == 1 && slices.Contains(b.individual, s) { // it ends before others release theirs
			x.releaseAll(s)
		}
	}
	b.withItems = b.withItems[:0]
}

// forgetItems removes s, which is no more, from b.
func (b *batch) forgetItems(s int32) {
	b.withItems = slices.DeleteFunc(b.withItems, func(t int32) bool { return t == s })
}
