package sim

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"blis/pkg/spill"
	"blis/pkg/stat"
)

// idSet is a set of ids. Those that count up from the first one take no memory. The others
// are stored as 64-bit hashes: 8 bytes each plus the slack of an open-addressing table. Among a million ids a
// collision has probability 3·10⁻⁸, among 60 million 10⁻⁴.
//
// Memory is bounded: when the table is full, later ids go to sorted runs in a temporary file. A duplicate of an id in
// the table is found at once, one of a later id by finish.
type idSet struct {
	counted sequence
	hashes  hashSet
	late    lateIDs
	line    int // of the ids that are added
	// limit is the maximum of hashes in the table; 0 is maxHashes.
	limit int
}

// maxHashes fill a table of 8 MiB.
const maxHashes = 3 << 18

// add reports whether the id is new, as far as that is known at once.
func (s *idSet) add(id string) bool {
	if s.late.samples == nil && s.counted.extend(id) {
		return !s.hashes.has(id)
	}
	return !s.counted.has(id) && s.addHash(id)
}

// addStep is add for the id of a step: that of its session, a slash and its own.
func (s *idSet) addStep(session, step string) bool {
	return s.addHash(session, "/", step) // no id of a sequence has a slash
}

func (s *idSet) addHash(parts ...string) bool {
	h := hashID(parts...)
	if s.hashes.used < cmp.Or(s.limit, maxHashes) {
		return s.hashes.add(h)
	}
	if s.hashes.slots[s.hashes.find(h)] != 0 {
		return false
	}
	s.late.add(h, s.line, min(spill.Run, cmp.Or(s.limit, spill.Run)))
	return true
}

// finish returns the line of the first duplicate that add did not report, 0 without any. Nothing is added after it.
func (s *idSet) finish() (line int, err error) {
	if s.late.samples == nil {
		return 0, nil
	}
	s.late.spill()
	if s.late.err != nil {
		return 0, s.late.err
	}
	first, last := uint32(0), stat.Keyed{} // hashes are never 0
	err = s.late.runs.Merge(func(sorted []stat.Keyed) {
		for _, x := range sorted {
			if x.Key == last.Key {
				if second := max(x.Tag, last.Tag); first == 0 || second < first {
					first = second
				}
				x.Tag = min(x.Tag, last.Tag)
			}
			last = x
		}
	})
	return int(first), err
}

// lateIDs are hashes of ids with the lines of their records: those in memory and sorted runs of the others.
type lateIDs struct {
	samples, scratch []stat.Keyed
	runs             spill.Runs
	err              error
}

// add adds a hash. Before, it moves those in memory to the file if there are limit of them.
func (l *lateIDs) add(h uint64, line, limit int) {
	if l.samples == nil {
		l.samples, l.scratch = make([]stat.Keyed, 0, limit), make([]stat.Keyed, limit)
	} else if len(l.samples) == limit {
		l.spill()
	}
	l.samples = append(l.samples, stat.Keyed{Key: h, Tag: uint32(min(line, math.MaxUint32))})
}

// spill moves the hashes in memory to the file.
func (l *lateIDs) spill() {
	sorted := stat.SortKeyed(l.samples, l.scratch[:len(l.samples)])
	if l.err == nil {
		l.err = l.runs.Append(sorted)
	}
	l.samples = l.samples[:0]
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

// add adds a hash and reports whether it is new.
func (s *hashSet) add(h uint64) bool {
	if 4*(s.used+1) > 3*len(s.slots) {
		old := s.slots
		s.slots = make([]uint64, max(64, 2*len(old)))
		for _, h := range old {
			if h != 0 {
				s.slots[s.find(h)] = h
			}
		}
	}
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
