package tier

import "slices"

// User is the use that a request makes of a store. The zero value has used nothing.
type User struct {
	// Priority of the request, for eviction by priority.
	Priority float64
	number   int64    // of its rank; 0: none yet
	seen     ranges   // the blocks that it stored, loaded or offered, without its tail
	rank     int32    // the rank with this number that it used last, if that still exists; for lru it does
	special  *special // nil until there are any
}

// special are blocks of a user: promoted those that came from a tier below for it; and for arc inserted those that it
// stored, reused those that others had stored, missing those that it offered and the store lacked.
type special struct{ promoted, inserted, reused, missing ranges }

// Clone returns an independent copy of u.
func (u User) Clone() User {
	u.seen = u.seen.clone()
	if x := u.special; x != nil {
		u.special = &special{x.promoted.clone(), x.inserted.clone(), x.reused.clone(), x.missing.clone()}
	}
	return u
}

// specials returns the special blocks of u.
func (u *User) specials() *special {
	if u.special == nil {
		u.special = &special{}
	}
	return u.special
}

// Used reports whether u has used blocks.
func (u *User) Used() bool { return u.number != 0 }

// numberOf gives u a rank above all others, unless it has one.
func (s *Store) numberOf(u *User) {
	if u.number == 0 {
		u.number = s.nextNumber()
		if s.lru {
			u.rank = s.rankIn(0, u.number, false)
			s.ranks[u.rank].owned = true
		}
	}
}

// ranges are disjoint ranges of blocks in order. Mostly there is one.
type ranges struct {
	first span // empty if there is none
	rest  *[]span
}

// span is blocks lo to hi, without hi.
type span struct{ lo, hi int32 }

func (all *ranges) clone() ranges {
	if all.rest == nil {
		return *all
	}
	rest := slices.Clone(*all.rest)
	return ranges{all.first, &rest}
}

// others returns the ranges but the first.
func (all *ranges) others() []span {
	if all.rest == nil {
		return nil
	}
	return *all.rest
}

// each calls f for the ranges in order.
func (all *ranges) each(f func(lo, hi int32)) {
	if all.first.lo < all.first.hi {
		f(all.first.lo, all.first.hi)
	}
	for _, r := range all.others() {
		f(r.lo, r.hi)
	}
}

// none reports whether there are no blocks.
func (all *ranges) none() bool { return all.first.lo == all.first.hi }

// add adds blocks lo to hi, at least one.
func (all *ranges) add(lo, hi int32) {
	switch f := &all.first; {
	case f.lo == f.hi:
		*f = span{lo, hi}
	case len(all.others()) == 0 && f.lo <= hi && lo <= f.hi:
		*f = span{min(lo, f.lo), max(hi, f.hi)}
	default:
		all.insert(span{lo, hi})
	}
}

// insert adds blocks to ranges of which there is one.
func (all *ranges) insert(x span) {
	list := append([]span{all.first}, all.others()...)
	first := 0
	for first < len(list) && list[first].hi < x.lo {
		first++
	}
	i := first
	for ; i < len(list) && list[i].lo <= x.hi; i++ {
		x = span{min(x.lo, list[i].lo), max(x.hi, list[i].hi)}
	}
	list = slices.Replace(list, first, i, x)
	rest := list[1:]
	all.first, all.rest = list[0], &rest
}

// without calls f for those of blocks lo to hi that are not in the ranges, range by range.
func (all *ranges) without(lo, hi int32, f func(lo, hi int32)) {
	all.each(func(a, b int32) {
		if b <= lo || hi <= a {
			return
		}
		if a > lo {
			f(lo, a)
		}
		lo = b
	})
	if lo < hi {
		f(lo, hi)
	}
}
