package tier

import "slices"

// User is the use that a request makes of a store. The zero value has used nothing.
type User struct {
	// Priority of the request, for eviction by priority.
	Priority float64
	number   int64 // of its rank; 0: none yet
	rank     int32 // the rank with this number that it used last, if that still exists
	// seen are the blocks that it stored, loaded or offered. The others are for arc: inserted are those that it stored,
	// reused those that others had stored, missing those that it offered and the store lacked.
	seen, inserted, reused, missing ranges
}

// Clone returns an independent copy of u.
func (u User) Clone() User {
	for _, r := range []*ranges{&u.seen, &u.inserted, &u.reused, &u.missing} {
		*r = slices.Clone(*r)
	}
	return u
}

// Used reports whether u has used blocks.
func (u *User) Used() bool { return len(u.seen) > 0 }

// numberOf gives u a rank above all others, unless it has one.
func (s *Store) numberOf(u *User) {
	if u.number == 0 {
		u.number = s.nextNumber()
	}
}

// ranges are disjoint ranges of blocks, from the first one on and without the second one, in order.
type ranges [][2]int32

// add adds blocks lo to hi.
func (all *ranges) add(lo, hi int32) {
	first := 0
	for first < len(*all) && (*all)[first][1] < lo {
		first++
	}
	i := first
	for ; i < len(*all) && (*all)[i][0] <= hi; i++ {
		lo, hi = min(lo, (*all)[i][0]), max(hi, (*all)[i][1])
	}
	*all = slices.Replace(*all, first, i, [2]int32{lo, hi})
}

// without calls f for those of blocks lo to hi that are not in the ranges, range by range.
func (all ranges) without(lo, hi int32, f func(lo, hi int32)) {
	for _, r := range all {
		if r[1] <= lo || hi <= r[0] {
			continue
		}
		if r[0] > lo {
			f(lo, r[0])
		}
		lo = r[1]
	}
	if lo < hi {
		f(lo, hi)
	}
}
