package tier

import (
	"slices"

	"blis/pkg/kv"
)

// ends are the first and the last run of a node, or none; grower is the id of the user that grows there, or none.
type ends struct {
	node                kv.Node
	first, last, grower int32
}

// nodes has the ends of the nodes that have any. It is an open-addressed hash table: a store has few of the nodes of a
// tree.
type nodes struct {
	slots []ends // their number is a power of two; an empty one has no node
	used  int
}

const noNode kv.Node = -1

var noEnds = ends{noNode, none, none, none}

func newNodes(slots int) nodes {
	t := nodes{slots: make([]ends, slots)}
	for i := range t.slots {
		t.slots[i] = noEnds
	}
	return t
}

func (t *nodes) clone() nodes { return nodes{slices.Clone(t.slots), t.used} }

// home returns the slot where the search for n begins: Fibonacci hashing of its number.
func (t *nodes) home(n kv.Node) int { return int(uint32(n)*2654435769>>7) & (len(t.slots) - 1) }

// find returns the slot of n, or the empty one where it would be.
func (t *nodes) find(n kv.Node) *ends {
	for i := t.home(n); ; i = (i + 1) & (len(t.slots) - 1) {
		if s := &t.slots[i]; s.node == n || s.node == noNode {
			return s
		}
	}
}

// add returns the slot of n, which has one then. It is valid until the next call.
func (t *nodes) add(n kv.Node) *ends {
	s := t.find(n)
	if s.node == n {
		return s
	}
	if t.used++; 4*t.used > 3*len(t.slots) {
		old := t.slots
		*t = nodes{newNodes(2 * len(old)).slots, t.used}
		for _, x := range old {
			if x.node != noNode {
				*t.find(x.node) = x
			}
		}
		s = t.find(n)
	}
	s.node = n
	return s
}

// drop removes the node of a slot if it has neither runs nor a grower. It moves later slots forward, so that no search
// ends too early.
func (t *nodes) drop(x *ends) {
	if x.node == noNode || x.first != none || x.grower != none {
		return
	}
	mask := len(t.slots) - 1
	i := t.home(x.node)
	for t.slots[i].node != x.node {
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; t.slots[j].node != noNode; j = (j + 1) & mask {
		if home := t.home(t.slots[j].node); (j-home)&mask >= (j-i)&mask { // the search for j's node passes i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = noEnds
}
