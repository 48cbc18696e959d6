package attribution

import "hash/maphash"

// pendingRequests are requests without outcome, by id. It is an open hash table of what requests have anyway, which
// takes half the time of a map with copies of the ids. Only its memory depends on the seed.
type pendingRequests struct {
	seed  maphash.Seed
	slots []pendingSlot // a power of two of them, at most half of them used
	used  int
}

// pendingSlot is free if request is nil. Else it is at the first free slot from that of its hash on, as far as those
// before it were taken.
type pendingSlot struct {
	hash    uint64
	request *request
}

func newPendingRequests() pendingRequests {
	return pendingRequests{seed: maphash.MakeSeed(), slots: make([]pendingSlot, 64)}
}

// find returns the slot of the request with an id, or the free one in which it would be, and its hash.
func (p *pendingRequests) find(id string) (slot int, hash uint64) {
	hash = maphash.String(p.seed, id)
	mask := len(p.slots) - 1
	for slot = int(hash) & mask; ; slot = (slot + 1) & mask {
		if s := &p.slots[slot]; s.request == nil || s.hash == hash && s.request.id() == id {
			return slot, hash
		}
	}
}

// get returns the request with an id, nil if it is not there.
func (p *pendingRequests) get(id string) *request {
	slot, _ := p.find(id)
	return p.slots[slot].request
}

// add adds a request that is not there.
func (p *pendingRequests) add(r *request) {
	if 2*p.used >= len(p.slots) {
		old := p.slots
		p.slots = make([]pendingSlot, 2*len(old))
		for _, s := range old {
			if s.request != nil {
				slot, _ := p.find(s.request.id())
				p.slots[slot] = s
			}
		}
	}
	slot, hash := p.find(r.id())
	p.slots[slot] = pendingSlot{hash, r}
	p.used++
}

// take removes the request with an id and returns it, nil if it is not there. Those behind it that would no longer be
// found move up.
func (p *pendingRequests) take(id string) *request {
	free, _ := p.find(id)
	taken := p.slots[free].request
	if taken == nil {
		return nil
	}
	p.used--
	mask := len(p.slots) - 1
	for next := (free + 1) & mask; p.slots[next].request != nil; next = (next + 1) & mask {
		// How far it is from the slot of its hash, and from the free one.
		if (next-int(p.slots[next].hash))&mask >= (next-free)&mask {
			p.slots[free] = p.slots[next]
			free = next
		}
	}
	p.slots[free] = pendingSlot{}
	return taken
}
