package sim

import (
	"blis/pkg/des"
	"blis/pkg/kv"
	"blis/pkg/stream"
)

// Requests live in slots from when they are read until nobody refers to them
// any more.

// pull takes the next request or session of the workload.
func (s *simulation) pull() error {
	in, position, err := s.arrivals.next()
	if in == nil || err != nil {
		return err
	}
	if des.Time(*in.At()) > s.horizon {
		s.counts.BeyondHorizon, err = s.arrivals.skip()
		return err
	}
	if in.IsSession {
		s.register(in, position)
		return nil
	}
	s.place(&in.Request, position)
	return nil
}

// place puts a request into a slot, which it returns, until it arrives.
func (s *simulation) place(in *stream.Request, position int64) int32 {
	slot := s.newSlot()
	s.open++
	r := &s.slots[slot]
	r.position, r.deadline = position, des.Time(in.DeadlineUS)
	r.replica, r.seq, r.final, r.of = nowhere, nowhere, false, nowhere
	r.held, r.delayed, r.patience = false, false, des.Time(stream.Never)
	r.model = s.modelOf(in.Model)
	r.out = stream.Outcome{ID: in.ID, ArrivalUS: in.ArrivalUS, AdmittedUS: stream.Never, RoutedUS: stream.Never,
		EnqueuedUS: stream.Never, ScheduledUS: stream.Never, FirstTokenUS: stream.Never, CompletedUS: stream.Never, EndedUS: stream.Never,
		Replica: stream.Nowhere, Session: in.Session, Tenant: in.Tenant, SLOClass: in.SLOClass, Model: in.Model,
		InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, ITLMaxUS: stream.Never}
	r.refusal = s.impossible(r)
	s.know(r, in)
	if r.refusal == "" {
		r.path = s.identify(r.path[:0], in)
	}
	s.queue.Push(des.NewEvent(des.Time(in.ArrivalUS), arrival, r.position, slot))
	return slot
}

// identify gives a prompt's tokens their identity.
func (s *simulation) identify(path kv.Path, in *stream.Request) kv.Path {
	segments := s.segments[:0]
	for _, p := range in.Prompt {
		segments = append(segments, kv.Segment{ID: p.ID, Tokens: int(p.Tokens)})
	}
	s.segments = segments
	return s.tree.Resolve(path, segments, int(in.InputTokens), in.ID)
}

func (s *simulation) newSlot() int32 {
	if last := len(s.spare) - 1; last >= 0 {
		slot := s.spare[last]
		s.spare = s.spare[:last]
		return slot
	}
	s.slots = append(s.slots, request{})
	return int32(len(s.slots) - 1)
}

// release frees the slot of a request that is final and has left its replica.
func (s *simulation) release(slot int32) {
	r := &s.slots[slot]
	if len(r.path) > 0 {
		s.tree.Drop(r.path)
		r.path = r.path[:0]
	}
	r.position = -1
	s.spare = append(s.spare, slot)
	stale := 0
	for _, pending := range [...]des.Time{r.deadline, r.patience} {
		if pending >= s.now {
			stale++
		}
	}
	s.forsake(stale)
}

// forsake notes that n more events of requests that are gone are pending, all that
// there are by now, and clears the queue of such where they are the most of it.
func (s *simulation) forsake(n int) {
	if s.stale += n; s.stale > 1024 && s.stale > s.queue.Len()/2 {
		s.queue.Keep(func(e des.Event) bool {
			return e.Kind() == stepEnd || e.Kind() == drain || e.Kind() == begin || s.slots[e.Slot].position == e.Seq()
		})
		s.stale = 0
	}
}
