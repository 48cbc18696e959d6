package sim

import (
	"slices"
	"strings"
)

// idSet is a set of ids. Those that count up from the first one, as blis-gen writes them, take no memory. The others
// are stored as 64-bit hashes: 8 bytes each plus the slack of an open-addressing table. Among a million ids a
// collision has probability 3·10⁻⁸.
type idSet struct {
	counted sequence
	hashes  hashSet
}

// add reports whether the id is new.
func (s *idSet) add(id string) bool {
	if s.counted.extend(id) {
		return !s.hashes.has(id)
	}
	return !s.counted.has(id) && s.hashes.add(id)
}

// addStep is add for the id of a step: that of its session, a slash and its own.
func (s *idSet) addStep(session, step string) bool {
	return s.hashes.add(session, "/", step) // no id of a sequence has a slash
}

// sequence is ids that have the same prefix, without a slash, and count up: "request-9", "request-10". The zero
// sequence begins with the first id that ends with a number.
type sequence struct {
	prefix string
	// first is the first id, next the one after the last. Ids are as long as the first or begin, after the prefix,
	// with a digit that is not 0.
	first string
	next  []byte
}

// extend adds the id if it is the next one and reports whether it is.
func (q *sequence) extend(id string) bool {
	if q.first == "" {
		prefix := strings.TrimRight(id, "0123456789")
		if prefix == id || strings.Contains(prefix, "/") {
			return false
		}
		q.first = strings.Clone(id)
		q.prefix, q.next = q.first[:len(prefix)], []byte(id)
	} else if id != string(q.next) {
		return false
	}
	for at := len(q.next) - 1; at >= len(q.prefix); at-- {
		if q.next[at]++; q.next[at] <= '9' {
			return true
		}
		q.next[at] = '0'
	}
	q.next = slices.Insert(q.next, len(q.prefix), '1')
	return true
}

// has reports whether the id is one of the sequence.
func (q *sequence) has(id string) bool {
	if q.first == "" || len(id) < len(q.first) || len(id) > len(q.next) || !strings.HasPrefix(id, q.prefix) {
		return false
	}
	number := id[len(q.prefix):]
	return strings.Trim(number, "0123456789") == "" &&
		(len(id) > len(q.first) && number[0] != '0' || len(id) == len(q.first) && id >= q.first) &&
		(len(id) < len(q.next) || id < string(q.next))
}

// hashSet is a set of ids by their hashes.
type hashSet struct {
	slots []uint64
	used  int
}

// add adds the concatenated parts and reports whether they are new.
func (s *hashSet) add(parts ...string) bool {
	if 4*(s.used+1) > 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, max(64, 2*len(old)))
		for _, h := range old {
			if h != 0 {
				s.slots[s.find(h)] = h
			}
		}
	}
	h := hashID(parts...)
	slot := &s.slots[s.find(h)]
	if *slot == h {
		return false
	}
	*slot = h
	s.used++
	return true
}

// has reports whether the id was added.
func (s *hashSet) has(id string) bool {
	return s.used > 0 && s.slots[s.find(hashID(id))] != 0
}

// find returns the slot of a hash, or the free one where it would be.
func (s *hashSet) find(h uint64) uint64 {
	mask := uint64(len(s.slots) - 1)
	i := h & mask
	for s.slots[i] != h && s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	return i
}

// hashID is the FNV-1a hash of the concatenated parts with a final mix, never 0.
func hashID(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, part := range parts {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
	}
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return max(h, 1)
}
