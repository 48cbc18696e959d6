package kv

// index maps nodes to their first runs. It is an open-addressed hash table of small integers, which
// costs a fraction of a built-in map.
type index struct {
	slots []slot
	used  int
}

type slot struct {
	node Node
	run  int32
}

func newIndex() index { return index{slots: emptySlots(16)} }

func emptySlots(n int) []slot {
	s := make([]slot, n)
	for i := range s {
		s[i].node = noNode
	}
	return s
}

// home is the preferred slot of a node: Fibonacci hashing of its number.
func (x *index) home(n Node) int {
	return int(uint32(n)*2654435769>>7) & (len(x.slots) - 1)
}

// get returns the first run of n, or none.
func (x *index) get(n Node) int32 {
	for i := x.home(n); ; i = (i + 1) & (len(x.slots) - 1) {
		switch x.slots[i].node {
		case n:
			return x.slots[i].run
		case noNode:
			return none
		}
	}
}

// set makes run the first run of n.
func (x *index) set(n Node, run int32) {
	if 4*(x.used+1) > 3*len(x.slots) {
		x.grow()
	}
	for i := x.home(n); ; i = (i + 1) & (len(x.slots) - 1) {
		switch x.slots[i].node {
		case n:
			x.slots[i].run = run
			return
		case noNode:
			x.slots[i] = slot{n, run}
			x.used++
			return
		}
	}
}

// remove deletes n and closes the gap in its probe chain.
func (x *index) remove(n Node) {
	mask := len(x.slots) - 1
	i := x.home(n)
	for x.slots[i].node != n {
		if x.slots[i].node == noNode {
			return
		}
		i = (i + 1) & mask
	}
	x.used--
	for j := (i + 1) & mask; x.slots[j].node != noNode; j = (j + 1) & mask {
		if h := x.home(x.slots[j].node); (j-h)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i].node = noNode
}

func (x *index) grow() {
	old := x.slots
	x.slots = emptySlots(2 * len(old))
	x.used = 0
	for _, s := range old {
		if s.node != noNode {
			x.set(s.node, s.run)
		}
	}
}
