package sim

import (
	"blis/pkg/kv"
	"blis/pkg/record"
)

// arrivals reads a workload one request at a time.
type arrivals struct {
	reader *record.Reader
	// position counts requests: that of the one read last.
	position int64
	last     record.Micros
	seen     idSet
	request  record.Request
	segments []kv.Segment // scratch
	// pending: the reader stands on a record not looked at yet.
	pending bool
}

// openArrivals reads up to the first request. The header is nil where the
// workload is bare.
func openArrivals(reader *record.Reader) (*arrivals, *record.Header, error) {
	reader.Expect(record.StreamWorkload)
	a := &arrivals{reader: reader, position: -1}
	if !reader.Next() {
		return nil, nil, reader.Err()
	}
	h := reader.Header()
	a.pending = h == nil
	return a, h, nil
}

// next returns the next request, valid until the call after, or nil at the end
// of the stream.
func (a *arrivals) next() (*record.Request, error) {
	for a.pending || a.reader.Next() {
		a.pending = false
		switch kind := a.reader.Kind(); kind {
		case record.KindRequest:
			return &a.request, a.read()
		case record.KindEnd:
		default:
			return nil, a.reader.Errorf("kind must be request, is %q", kind)
		}
	}
	return nil, a.reader.Err()
}

func (a *arrivals) read() error {
	q := &a.request
	if err := a.reader.Request(q); err != nil {
		return err
	}
	a.position++
	if q.ArrivalUS < a.last {
		return a.reader.Errorf("arrival_us %d is before that of the request above, %d; requests must be sorted by arrival", q.ArrivalUS, a.last)
	}
	a.last = q.ArrivalUS
	if !a.seen.add(q.ID) {
		return a.reader.Errorf("id %q was used before; ids must be unique", q.ID)
	}
	return nil
}

// skip reads the rest of the stream, beginning with the request read last, and
// returns how many requests it has.
func (a *arrivals) skip() (n int64, err error) {
	for q := &a.request; q != nil && err == nil; n++ {
		q, err = a.next()
	}
	return n, err
}

// idSet remembers names by a 64-bit hash: 8 bytes each and the slack of an open
// table. Of a million names two share a hash with probability 3·10⁻⁸.
type idSet struct {
	slots []uint64
	used  int
}

// add reports whether id is new.
func (s *idSet) add(id string) bool {
	if 4*(s.used+1) > 3*len(s.slots) {
		old := s.slots
		s.slots, s.used = make([]uint64, max(64, 2*len(old))), 0
		for _, h := range old {
			if h != 0 {
				s.insert(h)
			}
		}
	}
	return s.insert(hashID(id))
}

func (s *idSet) insert(h uint64) bool {
	mask := uint64(len(s.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		switch s.slots[i] {
		case h:
			return false
		case 0:
			s.slots[i] = h
			s.used++
			return true
		}
	}
}

// hashID is FNV-1a with a finishing mix, never 0.
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
