package kv

// nodeTable maps nodes to indices: to the first run of their list, or to their hashed blocks. It is an
// open-addressed hash table of small integers, which costs a fraction of a built-in map.
type nodeTable struct {
	slots []slot // their number is a power of two
	used  int
}

// slot is empty if its node is noNode.
type slot struct {
	node  Node
	index int32
}

func newNodeTable() nodeTable { return nodeTable{slots: emptySlots(16)} }

func emptySlots(n int) []slot {
	s := make([]slot, n)
	for i := range s {
		s[i].node = noNode
	}
	return s
}

// home returns the slot where the search for n starts: Fibonacci hashing of its number.
func (t *nodeTable) home(n Node) int {
	return int(uint32(n)*2654435769>>7) & (len(t.slots) - 1)
}

// get returns the index of n, or none.
func (t *nodeTable) get(n Node) int32 {
	for i := t.home(n); ; i = (i + 1) & (len(t.slots) - 1) {
		switch t.slots[i].node {
		case n:
			return t.slots[i].index
		case noNode:
			return none
		}
	}
}

// set makes index the index of n.
func (t *nodeTable) set(n Node, index int32) {
	if 4*(t.used+1) > 3*len(t.slots) {
		t.grow()
	}
	for i := t.home(n); ; i = (i + 1) & (len(t.slots) - 1) {
		switch t.slots[i].node {
		case n:
			t.slots[i].index = index
			return
		case noNode:
			t.slots[i] = slot{n, index}
			t.used++
			return
		}
	}
}

// remove deletes n. It moves later slots forward, so that no search ends at the emptied slot too early.
func (t *nodeTable) remove(n Node) {
	mask := len(t.slots) - 1
	i := t.home(n)
	for t.slots[i].node != n {
		if t.slots[i].node == noNode {
			return
		}
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; t.slots[j].node != noNode; j = (j + 1) & mask {
		if home := t.home(t.slots[j].node); (j-home)&mask >= (j-i)&mask { // the search for j's node passes i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i].node = noNode
}

// grow doubles the number of slots.
func (t *nodeTable) grow() {
	old := t.slots
	t.slots = emptySlots(2 * len(old))
	t.used = 0
	for _, s := range old {
		if s.node != noNode {
			t.set(s.node, s.index)
		}
	}
}
