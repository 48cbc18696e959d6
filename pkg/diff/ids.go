package diff

import (
	"hash/maphash"
	"strings"
)

// pageLength is the number of values of a page.
const pageLength = 4096

// pages is a list that grows without copying its values.
type pages[T any] struct {
	of  []*[pageLength]T
	len int
}

func (p *pages[T]) at(i int32) *T { return &p.of[i/pageLength][i%pageLength] }

// add appends a value and returns its place in the list.
func (p *pages[T]) add(v T) *T {
	if p.len%pageLength == 0 {
		p.of = append(p.of, new([pageLength]T))
	}
	p.len++
	at := p.at(int32(p.len - 1))
	*at = v
	return at
}

// ids numbers the ids of requests in order of appearance. It holds no pointer for each of
// them, so that the garbage collector has little to do.
type ids struct {
	seed maphash.Seed
	// slots is a hash table with linear probing; its length is a power of two.
	slots []idSlot
	names pages[idName]
	texts []*strings.Builder // never more than their first capacity
}

// idSlot has the number of an id plus 1, 0 if the slot is empty.
type idSlot struct {
	hash   uint32
	number int32
}

// idName is the place of an id in a text.
type idName struct{ text, from, to int32 }

// idText is the capacity of a text, and longer for a longer id.
const idText = 1 << 16

func (t *ids) len() int32 { return int32(t.names.len) }

// name returns the id with that number.
func (t *ids) name(n int32) string {
	at := t.names.at(n)
	return t.texts[at.text].String()[at.from:at.to]
}

// find returns the number of an id.
func (t *ids) find(id string) (n int32, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	slot := t.slot(id, uint32(maphash.String(t.seed, id)))
	return max(slot.number-1, 0), slot.number > 0
}

// slot returns the slot of an id, an empty one if it has none.
func (t *ids) slot(id string, hash uint32) *idSlot {
	last := uint32(len(t.slots) - 1)
	for i := hash & last; ; i = (i + 1) & last {
		if s := &t.slots[i]; s.number == 0 || s.hash == hash && t.name(s.number-1) == id {
			return s
		}
	}
}

// number returns the number of an id, the next one if it is new.
func (t *ids) number(id string) int32 {
	if 4*t.names.len >= 3*len(t.slots) {
		t.grow()
	}
	hash := uint32(maphash.String(t.seed, id))
	slot := t.slot(id, hash)
	if slot.number == 0 {
		if k := len(t.texts) - 1; k < 0 || t.texts[k].Cap()-t.texts[k].Len() < len(id) {
			t.texts = append(t.texts, &strings.Builder{})
			t.texts[k+1].Grow(max(idText, len(id)))
		}
		text := t.texts[len(t.texts)-1]
		from := text.Len()
		text.WriteString(id)
		t.names.add(idName{int32(len(t.texts) - 1), int32(from), int32(text.Len())})
		*slot = idSlot{hash, int32(t.names.len)}
	}
	return slot.number - 1
}

// numberNear is number for an id that has probably a certain number, unless that is negative, or is new.
func (t *ids) numberNear(id string, probably int32) int32 {
	if probably >= 0 && probably < t.len() && t.name(probably) == id {
		return probably
	}
	return t.number(id)
}

// grow doubles the number of slots.
func (t *ids) grow() {
	if len(t.slots) == 0 {
		t.seed = maphash.MakeSeed()
	}
	old := t.slots
	t.slots = make([]idSlot, max(1024, 2*len(old)))
	last := uint32(len(t.slots) - 1)
	for _, s := range old {
		if s.number == 0 {
			continue
		}
		i := s.hash & last
		for t.slots[i].number != 0 {
			i = (i + 1) & last
		}
		t.slots[i] = s
	}
}
