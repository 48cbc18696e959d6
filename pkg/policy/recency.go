package policy

import (
	"maps"
	"slices"
)

// recency is a set of numbers in the order of their last use.
type recency struct {
	at     map[int32]int32 // position in links of each member
	links  []link          // link 0 is the ring's anchor: its next is the oldest, its previous the newest
	unused []int32
}

type link struct{ previous, next, member int32 }

func (r *recency) len() int { return len(r.at) }

// touch makes a number the newest, and reports whether it was not a member before.
func (r *recency) touch(member int32) bool {
	if r.at == nil {
		r.at, r.links = map[int32]int32{}, []link{{}}
	}
	i, known := r.at[member]
	if known {
		r.unlink(i)
	} else if last := len(r.unused) - 1; last >= 0 {
		i = r.unused[last]
		r.unused = r.unused[:last]
	} else {
		i = int32(len(r.links))
		r.links = append(r.links, link{})
	}
	newest := r.links[0].previous
	r.links[i] = link{newest, 0, member}
	r.links[newest].next, r.links[0].previous = i, i
	r.at[member] = i
	return !known
}

// dropOldest removes the oldest member and returns it.
func (r *recency) dropOldest() int32 {
	i := r.links[0].next
	member := r.links[i].member
	r.unlink(i)
	r.unused = append(r.unused, i)
	delete(r.at, member)
	return member
}

func (r *recency) unlink(i int32) {
	l := r.links[i]
	r.links[l.previous].next, r.links[l.next].previous = l.next, l.previous
}

func (r *recency) clone() recency {
	return recency{maps.Clone(r.at), slices.Clone(r.links), slices.Clone(r.unused)}
}
