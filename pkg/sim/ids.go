package sim

import (
	"fmt"
	"strings"

	"blis/pkg/stream"
)

// usedIDs are the ids of the requests and sessions so far. The calls of a session have ids, too: that of the
// session, a slash and that of the step.
type usedIDs struct {
	all idSet
	// sessions are those of sessions, steps those of the steps of one.
	sessions idSet
	steps    map[string]struct{}
	// others is true if all has ids that a step of a session could have.
	others bool
}

// check adds the ids of an arrival. It returns an error if one is taken.
func (u *usedIDs) check(q *stream.Arrival) error {
	if !q.IsSession {
		return u.addRequest(*q.ID())
	}
	if !u.all.add(q.Session.ID) {
		return duplicate(q.Session.ID)
	}
	return u.checkSteps(&q.Session)
}

func duplicate(id string) error { return fmt.Errorf("id %q is a duplicate", id) }

// addRequest adds the id of a request outside of sessions, or one that those of other sessions could equal.
func (u *usedIDs) addRequest(id string) error {
	if !u.all.add(id) {
		return duplicate(id)
	}
	u.others = true
	for i := range len(id) {
		if id[i] == '/' && u.sessions.has(id[:i]) {
			return fmt.Errorf("id %q can be that of a step of the session %q", id, id[:i])
		}
	}
	return nil
}

// checkSteps is check for the calls of a session. Their ids are not kept, except those whose step has a slash.
func (u *usedIDs) checkSteps(s *stream.Session) error {
	if u.steps == nil {
		u.steps = map[string]struct{}{}
	}
	clear(u.steps)
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Tool != "" {
			continue
		}
		if strings.Contains(step.ID, "/") {
			if err := u.addRequest(step.RequestID(s.ID)); err != nil {
				return err
			}
			continue
		}
		if _, taken := u.steps[step.ID]; taken || u.others && u.all.has(s.ID+"/"+step.ID) {
			return duplicate(step.RequestID(s.ID))
		}
		u.steps[step.ID] = struct{}{}
	}
	u.sessions.add(s.ID)
	return nil
}

// idSet is a set of ids. Ids that end with the number after the one before, as blis-gen has them, take no memory.
// The others are stored as 64-bit hashes: 8 bytes each plus the slack of an open-addressing table. Among a million
// ids a collision has probability 3·10⁻⁸.
type idSet struct {
	// sequences are by what precedes the number.
	sequences map[string]*sequence
	hashes    hashSet
}

// sequence is the numbers from first to before next.
type sequence struct{ first, next uint64 }

// maxSequences bounds the memory of ids with one number each.
const maxSequences = 1 << 12

// add reports whether the id is new.
func (s *idSet) add(id string) bool {
	prefix, n, ok := splitNumber(id)
	if !ok {
		return s.hashes.add(hashID(id))
	}
	q := s.sequences[prefix]
	switch {
	case q == nil && len(s.sequences) < maxSequences:
		if s.sequences == nil {
			s.sequences = map[string]*sequence{}
		}
		s.sequences[strings.Clone(prefix)] = &sequence{n, n + 1}
		return true
	case q == nil || n > q.next:
		return s.hashes.add(hashID(id))
	case n == q.next:
		q.next++
		return !s.hashes.has(hashID(id)) // it may have come before its turn
	}
	return n < q.first && s.hashes.add(hashID(id))
}

// has reports whether the id was added.
func (s *idSet) has(id string) bool {
	if prefix, n, ok := splitNumber(id); ok {
		if q := s.sequences[prefix]; q != nil && q.first <= n && n < q.next {
			return true
		}
	}
	return s.hashes.has(hashID(id))
}

// splitNumber splits an id before the number that it ends with: one without leading zeros and of at most 18
// digits.
func splitNumber(id string) (prefix string, n uint64, ok bool) {
	at := len(id)
	for i := len(id) - 1; i >= 0 && '0' <= id[i] && id[i] <= '9' && len(id)-i <= 18; i-- {
		if id[i] != '0' || i == len(id)-1 {
			at = i
		}
	}
	for _, digit := range []byte(id[at:]) {
		n = 10*n + uint64(digit-'0')
	}
	return id[:at], n, at < len(id)
}

// hashSet is a set of hashes, which are not 0.
type hashSet struct {
	slots []uint64
	used  int
}

// add reports whether the hash is new.
func (s *hashSet) add(hash uint64) bool {
	if 4*(s.used+1) > 3*len(s.slots) {
		old := s.slots
		s.slots, s.used = make([]uint64, max(64, 2*len(old))), 0
		for _, h := range old {
			if h != 0 {
				s.insert(h)
			}
		}
	}
	return s.insert(hash)
}

func (s *hashSet) insert(h uint64) bool {
	i, found := s.find(h)
	if !found {
		s.slots[i] = h
		s.used++
	}
	return !found
}

// has reports whether the hash was added.
func (s *hashSet) has(h uint64) bool {
	if s.used == 0 {
		return false
	}
	_, found := s.find(h)
	return found
}

// find returns the slot of a hash, or the free one where it would be.
func (s *hashSet) find(h uint64) (slot uint64, found bool) {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		if s.slots[i] == h || s.slots[i] == 0 {
			return i, s.slots[i] == h
		}
	}
}

// hashID is the FNV-1a hash of an id with a final mix, never 0.
func hashID(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return max(h, 1)
}
