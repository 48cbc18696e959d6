package sim

import (
	"blis/pkg/des"
	"blis/pkg/engine"
	"blis/pkg/kv"
	"blis/pkg/stream"
)

// Requests live in slots from the time they are read until nothing refers to them.

// requestTable holds the requests that have been read and have not left.
type requestTable struct {
	batches  []*[requestBatch]request // a larger table copies no requests
	count    int32                    // slots so far
	free     []int32                  // slots
	open     int                      // requests and sessions that were read and are not final
	segments []kv.Segment
}

const requestBatch = 32

func (t *requestTable) at(slot int32) *request {
	return &t.batches[uint32(slot)/requestBatch][uint32(slot)%requestBatch]
}

// request returns the request in a slot. Other requests do not move it.
func (s *simulation) request(slot int32) *request { return s.requests.at(slot) }

// readNext reads the next request or session of the workload.
func (s *simulation) readNext() error {
	in, position, err := s.feed.next()
	if in == nil || err != nil {
		return err
	}
	if des.Time(*in.At()) > s.horizon {
		s.counts.BeyondHorizon, err = s.feed.skip()
		return err
	}
	if in.IsSession {
		s.sessions.add(s, in, position)
		return nil
	}
	s.addRequest(&in.Request, position)
	return nil
}

// addRequest puts a request into a slot, which it returns, and schedules its arrival.
func (s *simulation) addRequest(in *stream.Request, position int64) int32 {
	slot := s.requests.newSlot()
	r := s.request(slot)
	r.items = appendItems(r.items[:0], in.Prompt)
	s.fill(slot, in, position)
	if r.rejectReason == "" {
		r.path = s.requests.resolvePrompt(s.tree, r.path[:0], in, s.meetsItself())
	}
	return slot
}

// appendItems appends the images and other media of a prompt to list.
func appendItems(list []engine.Item, prompt []stream.Segment) []engine.Item {
	at := int64(0)
	for i := range prompt {
		p := &prompt[i]
		if p.Media != "" {
			list = append(list, engine.Item{Offset: int32(at), Tokens: int32(p.Tokens), Content: contentOf(p)})
		}
		at += p.Tokens
	}
	return list
}

// contentOf identifies the content of an item: FNV-1a of its id and its length.
func contentOf(p *stream.Segment) uint64 {
	h := fnv1a(fnvBegin, p.ID)
	for n := uint64(p.Tokens); n > 0; n >>= 8 {
		h = (h ^ n&0xff) * fnvPrime
	}
	return h
}

// fill makes a slot that of a request, but for its path and its items, and schedules the arrival.
func (s *simulation) fill(slot int32, in *stream.Request, position int64) {
	s.requests.open++
	r := s.request(slot)
	r.retry = newRetryPlan(in)
	r.position, r.deadline = position, des.Time(in.DeadlineUS)
	r.replica, r.engineSeq, r.isFinal, r.sessionSlot = missing, missing, false, missing
	r.encoded = nil
	r.moved, r.handoff, r.heldBack = nil, handoff{leaseEnd: never}, heldBack{since: never}
	r.atServer, r.queuedTokens = false, 0
	r.inFlowQueue, r.admissionDelayed, r.flowTimeout = false, false, never
	r.grammar = grammarUse{id: s.router.names.grammar(in.Grammar), ready: never, pending: never}
	r.prefillTokens, r.eos = 0, in.Stop == stream.StopEOS
	if r.draftAcceptance = -1; in.DraftAcceptance != nil {
		r.draftAcceptance = *in.DraftAcceptance
	}
	r.model, r.adapter = s.modelIndex(in.Model), s.router.names.adapter(in.Adapter)
	r.out = stream.Outcome{ID: in.ID, ArrivalUS: in.ArrivalUS, AdmittedUS: stream.Never, RoutedUS: stream.Never,
		EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never,
		EndedUS: stream.Never,
		Replica: stream.NoIndex, Session: in.Session, Tenant: in.Tenant, SLOClass: in.SLOClass, Model: in.Model,
		Adapter:     in.Adapter,
		Grammar:     in.Grammar,
		InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, ITLMaxUS: stream.Never}
	r.out.ClearPrefill()
	r.rejectReason = s.infeasible(r)
	s.router.enrich(r, in)
	s.events.queue.Push(des.NewEvent(des.Time(in.ArrivalUS), arrival, r.position, slot))
}

// meetsItself reports whether a request may come again to a replica that has computed its prompt.
func (s *simulation) meetsItself() bool {
	return s.failures != nil || s.fleet != nil && len(s.transfers.pools()) > 0
}

// uniquePrefix precedes the id of a request in the name of the unique part of its prompt. Ids do not begin with it.
const uniquePrefix = "\x00"

// adapterPrefix is before and behind the name of an adapter, before the id of the first segment of a prompt.
const adapterPrefix = "\x01"

// resolvePrompt maps the tokens of a prompt to nodes of the prefix tree. again: the request may be routed again, and
// further attempts at it have the same tokens, too.
func (t *requestTable) resolvePrompt(tree *kv.Tree, path kv.Path, in *stream.Request, again bool) kv.Path {
	segments := t.segments[:0]
	unique := int(in.InputTokens)
	for _, p := range in.Prompt {
		segments = append(segments, kv.Segment{ID: p.ID, Tokens: int(p.Tokens)})
		unique -= int(p.Tokens)
	}
	if (again || in.Retry != nil) && unique > 0 {
		segments = append(segments, kv.Segment{ID: uniquePrefix + in.ID, Tokens: unique})
	}
	if in.Adapter != "" && len(segments) > 0 { // prompts of different adapters share nothing
		segments[0].ID = adapterPrefix + in.Adapter + adapterPrefix + segments[0].ID
	}
	t.segments = segments
	return tree.Resolve(path, segments, int(in.InputTokens), in.ID)
}

func (t *requestTable) newSlot() int32 {
	if last := len(t.free) - 1; last >= 0 {
		slot := t.free[last]
		t.free = t.free[:last]
		return slot
	}
	if t.count%requestBatch == 0 {
		t.batches = append(t.batches, new([requestBatch]request))
	}
	t.count++
	return t.count - 1
}

// release frees the slot of a request that is final and has left its replica.
func (s *simulation) release(slot int32) {
	r := s.request(slot)
	if len(r.path) > 0 {
		s.tree.Drop(r.path)
		r.path = r.path[:0]
	}
	r.position = -1
	s.requests.free = append(s.requests.free, slot)
	stale := 0
	for _, pending := range [...]des.Time{r.deadline, r.flowTimeout, r.handoff.leaseEnd, r.grammar.pending} {
		if pending >= s.now {
			stale++
		}
	}
	s.countStale(stale)
}

// countStale records that n more events of departed requests are pending. It removes all such events
// from the queue when they are the majority.
func (s *simulation) countStale(n int) {
	if s.events.stale += n; s.events.stale > 1024 && s.events.stale > s.events.queue.Len()/2 {
		s.events.queue.Keep(func(e des.Event) bool {
			return e.Kind() >= failure || e.Kind() == sessionStart || e.Kind() == transferEnd ||
				e.Kind() == linkChange ||
				s.request(e.Slot).position == e.Seq()
		})
		s.events.stale = 0
	}
}
