package kv

import (
	"hash/maphash"
	"slices"
)

// nameTable maps keys to the named nodes of a tree. It is an open-addressed hash table like nodeTable, but of nodes
// only, since their keys are in the tree. A built-in map would keep each key twice and hash it field by field.
type nameTable struct {
	slots []nameSlot // their number is a power of two
	used  int
}

// nameSlot is a node and the hash of its key. It is empty if the node is noNode.
type nameSlot struct {
	hash uint32
	node Node
}

func newNameTable() nameTable { return nameTable{slots: emptyNameSlots(16)} }

func emptyNameSlots(n int) []nameSlot {
	s := make([]nameSlot, n)
	for i := range s {
		s[i].node = noNode
	}
	return s
}

// nameSeed differs from process to process, as do the places of nodes in a table. Nothing else depends on these.
var nameSeed = maphash.MakeSeed()

// hash returns the hash of a key.
func (k *nodeKey) hash() uint32 {
	h := maphash.String(nameSeed, k.id) ^ uint64(uint32(k.parent))<<32 ^ uint64(uint32(k.start))
	return uint32(h * 0x9e3779b97f4a7c15 >> 32) // Fibonacci hashing
}

// find returns the slot of the node with this key and hash, or the empty one where it would be.
func (t *Tree) find(key *nodeKey, hash uint32) *nameSlot {
	slots := t.named.slots
	for i := int(hash) & (len(slots) - 1); ; i = (i + 1) & (len(slots) - 1) {
		x := &slots[i]
		if x.node == noNode || x.hash == hash && t.nodes[x.node].key == *key {
			return x
		}
	}
}

// add makes the empty slot that find returned last that of a node.
func (t *nameTable) add(x *nameSlot, hash uint32, n Node) {
	*x = nameSlot{hash, n}
	if t.used++; 4*t.used <= 3*len(t.slots) {
		return
	}
	old := t.slots
	t.slots = emptyNameSlots(2 * len(old))
	for _, y := range old {
		if y.node != noNode {
			i := int(y.hash) & (len(t.slots) - 1)
			for t.slots[i].node != noNode {
				i = (i + 1) & (len(t.slots) - 1)
			}
			t.slots[i] = y
		}
	}
}

// remove removes node n, whose key has this hash. It moves later slots forward, so that no search ends too early.
func (t *nameTable) remove(n Node, hash uint32) {
	mask := len(t.slots) - 1
	i := int(hash) & mask
	for t.slots[i].node != n {
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; t.slots[j].node != noNode; j = (j + 1) & mask {
		if home := int(t.slots[j].hash) & mask; (j-home)&mask >= (j-i)&mask { // the search for j's node passes i
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i].node = noNode
}

func (t *nameTable) clone() nameTable { return nameTable{slices.Clone(t.slots), t.used} }
