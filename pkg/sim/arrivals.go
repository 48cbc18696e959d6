package sim

import "blis/pkg/stream"

// feed hands out a workload.
type feed interface {
	// next returns the next arrival, valid until the call after and not to be
	// changed but for its session's memory, and its position in the stream: that of
	// its first step, where the others follow. It is nil at the end.
	next() (a *stream.Arrival, position int64, err error)
	// skip reads the rest, beginning with what next gave last, and returns how much
	// it is.
	skip() (int64, error)
}

// arrivals reads a workload, one request or session at a time.
type arrivals struct {
	reader *stream.Reader
	// position is that of what was read last, next what follows it: a session has
	// one for each of its steps.
	position, following int64
	last                stream.Micros
	seen                idSet
	arrival             stream.Arrival
	// pending: the reader stands on a record not looked at yet.
	pending bool
}

// openArrivals reads up to the first arrival. The header is nil where the
// workload is bare.
func openArrivals(reader *stream.Reader) (*arrivals, *stream.Header, error) {
	reader.Expect(stream.StreamWorkload)
	a := &arrivals{reader: reader}
	if !reader.Next() {
		return nil, nil, reader.Err()
	}
	h := reader.Header()
	a.pending = h == nil
	return a, h, nil
}

func (a *arrivals) next() (*stream.Arrival, int64, error) {
	for a.pending || a.reader.Next() {
		a.pending = false
		switch kind := a.reader.Kind(); kind {
		case stream.KindRequest, stream.KindSession:
			err := a.read()
			return &a.arrival, a.position, err
		case stream.KindEnd:
		default:
			return nil, 0, a.reader.Errorf("kind must be request or session, is %q", kind)
		}
	}
	return nil, 0, a.reader.Err()
}

func (a *arrivals) read() error {
	q := &a.arrival
	if err := a.reader.Arrival(q); err != nil {
		return err
	}
	a.position = a.following
	a.following++
	if at := *q.At(); at < a.last {
		return a.reader.Errorf("arrival_us %d is before that of the request above, %d; requests must be sorted by arrival", at, a.last)
	}
	a.last = *q.At()
	if id := *q.ID(); !a.seen.add(hashID(id)) {
		return a.reader.Errorf("id %q was used before; ids must be unique", id)
	}
	if q.IsSession {
		return a.readSteps(&q.Session)
	}
	return nil
}

// readSteps takes the places and the ids of a session's calls.
func (a *arrivals) readSteps(s *stream.Session) error {
	a.following += int64(len(s.Steps)) - 1
	for i := range s.Steps {
		if step := &s.Steps[i]; step.Tool == "" && !a.seen.add(hashID(s.ID, "/", step.ID)) {
			return a.reader.Errorf("id %q was used before; ids must be unique", step.RequestID(s.ID))
		}
	}
	return nil
}

func (a *arrivals) skip() (n int64, err error) {
	for q := &a.arrival; q != nil && err == nil; n++ {
		q, _, err = a.next()
	}
	return n, err
}

// idSet remembers names by a 64-bit hash: 8 bytes each and the slack of an open
// table. Of a million names two share a hash with probability 3·10⁻⁸.
type idSet struct {
	slots []uint64
	used  int
}

// add reports whether the name of this hash is new.
func (s *idSet) add(hash uint64) bool {
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

// hashID is FNV-1a, of the parts of a name one after the other, with a finishing
// mix, never 0.
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
