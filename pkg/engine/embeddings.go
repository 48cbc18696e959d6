package engine

import (
	"fmt"
	"maps"
	"slices"
)

// With encode replicas the embeddings of items come from there. The rules are those of the EC connectors of vLLM 0.33
// for a consumer: Scheduler._ec_transfer_pending and _try_schedule_encoder_inputs in vllm/v1/core/sched/scheduler.py,
// ensure_cache_available in vllm/distributed/ec_transfer/ec_connector/mooncake/scheduler.py. A request that has not
// computed an item whose embeddings are neither in the encoder cache nor received gets no tokens, and those behind it
// go on. What is received enters the encoder cache by the rules for items to encode, but takes nothing of the budget.

// Embedding is asked for by a replica: the embeddings of an item of the request Tag.
type Embedding struct {
	Tag     int32
	Tokens  int32
	Content uint64
}

// remote is what a replica knows of embeddings that come from encode replicas.
type remote struct {
	// needed counts the requests here with a content. received are those of them whose embeddings are in the memory of
	// the host, and underWay the contents that were asked for and have not come.
	needed             map[uint64]int
	received, underWay map[uint64]bool
	asked              []Embedding // since Asked was called
	lacking            bool        // a request of the batch being formed waits for embeddings
}

func newRemote() *remote {
	return &remote{needed: map[uint64]int{}, received: map[uint64]bool{}, underWay: map[uint64]bool{}}
}

func (r *remote) clone() *remote {
	if r == nil {
		return nil
	}
	return &remote{needed: maps.Clone(r.needed), received: maps.Clone(r.received), underWay: maps.Clone(r.underWay),
		asked: slices.Clone(r.asked), lacking: r.lacking}
}

// firstOf reports whether item i is the first of its content.
func (u *itemUse) firstOf(i int) bool {
	return slices.IndexFunc(u.items, func(x Item) bool { return x.Content == u.items[i].Content }) == i
}

// expect notes the contents of a new sequence.
func (x *encoder) expect(s int32) {
	for i, item := range x.uses[s].items {
		if x.uses[s].firstOf(i) {
			x.remote.needed[item.Content]++
		}
	}
}

// forget drops what only s, which has left, needed.
func (x *encoder) forget(s int32) {
	u := &x.uses[s]
	for i, item := range u.items {
		if !u.firstOf(i) {
			continue
		}
		if x.remote.needed[item.Content]--; x.remote.needed[item.Content] == 0 {
			delete(x.remote.needed, item.Content)
			delete(x.remote.received, item.Content)
		}
	}
	u.items = u.items[:0]
}

// lost reports whether embeddings that were in the encoder cache when a request was tried are so no more, since those
// of an item before them have got their room. vLLM would encode such an item itself; here they are asked for again.
func (x *encoder) lost(content uint64) bool { return x.remote != nil && !x.remote.received[content] }

// awaitsItems reports whether s, which has computed this many tokens, must wait for embeddings, and asks for them.
func (e *Engine) awaitsItems(s int32, computed int) bool {
	x, lacks := e.encoder, false
	if x.remote == nil || !x.hasItems(s, int32(computed)) {
		return false
	}
	for _, item := range x.uses[s].items {
		if _, cached := x.cached[item.Content]; int(item.end()) <= computed || cached ||
			x.remote.received[item.Content] {
			continue
		}
		lacks = true
		if !x.remote.underWay[item.Content] {
			x.remote.underWay[item.Content] = true
			x.remote.asked = append(x.remote.asked, Embedding{e.seqs[s].tag, item.Tokens, item.Content})
		}
	}
	x.remote.lacking = x.remote.lacking || lacks
	return lacks
}

// AskedEmbeddings returns the embeddings that the replica has asked for since the last call. It is valid until a step
// starts.
func (e *Engine) AskedEmbeddings() []Embedding {
	asked := e.encoder.remote.asked
	e.encoder.remote.asked = asked[:0]
	return asked
}

// Receive hands over embeddings that were asked for. It returns the requests with them that have never been in a batch.
func (e *Engine) Receive(content uint64) (tags []int32) {
	x := e.encoder
	delete(x.remote.underWay, content)
	if x.remote.needed[content] == 0 {
		return nil
	}
	x.remote.received[content] = true
	for s := range x.uses {
		if has := func(i Item) bool { return i.Content == content }; slices.ContainsFunc(x.uses[s].items, has) &&
			!e.seqs[s].admitted && !e.seqs[s].aborted {
			tags = append(tags, e.seqs[s].tag)
		}
	}
	return tags
}

// ReceivesEmbeddings returns how many contents were asked for and have not come.
func (e *Engine) ReceivesEmbeddings() int {
	if e.encoder == nil || e.encoder.remote == nil {
		return 0
	}
	return len(e.encoder.remote.underWay)
}

// lacksEmbeddings reports whether a request waited for embeddings when a batch was formed last.
func (e *Engine) lacksEmbeddings() bool {
	return e.encoder != nil && e.encoder.remote != nil && e.encoder.remote.lacking
}

// checkRemote counts the requests with each content again.
func (e *Engine) checkRemote() error {
	x := e.encoder
	if x.remote == nil {
		return nil
	}
	needed := map[uint64]int{}
	for s := range x.uses {
		for i, item := range x.uses[s].items {
			if x.uses[s].firstOf(i) {
				needed[item.Content]++
			}
		}
	}
	if !maps.Equal(needed, x.remote.needed) {
		return fmt.Errorf("engine: %d contents are needed, the running totals have %d", len(needed),
			len(x.remote.needed))
	}
	for content := range x.remote.received { // only comparisons
		if needed[content] == 0 || x.remote.underWay[content] {
			return fmt.Errorf("engine: embeddings are kept that no request needs, or that were asked for again")
		}
	}
	if e.stats.EncodedItems > 0 {
		return fmt.Errorf("engine: %d items were encoded where embeddings come from encode replicas",
			e.stats.EncodedItems)
	}
	return nil
}
