package kv

import (
	"slices"
	"strings"
)

// Node is the number of a node in a Tree. A node is the tokens of a segment after a particular prefix, or
// the tail of a sequence. Its blocks are those whose last token is in it.
type Node int32

// noNode is the null node. Its blocks are never hashed.
const noNode Node = -1

// Segment is a part of a prompt: the first Tokens tokens of the text that ID names.
type Segment struct {
	ID     string
	Tokens int
}

// Span is the tokens of a sequence that are in one node: from the End of the span before to End.
type Span struct {
	Node Node
	End  int32
}

// Path has the spans of a sequence in order: one for each segment, then the tail. The tail has all further
// tokens and no end.
type Path []Span

// unbounded is the End of a tail.
const unbounded = 1<<31 - 1

// nodeKey identifies a node. Prompts that have the same segment after the same prefix have the same node,
// even if they cut the segment at different lengths: then the nodes after it differ in start.
type nodeKey struct {
	parent Node
	start  int32 // the number of tokens before the node
	id     string
}

type node struct {
	key nodeKey
	// refs counts the children, the paths that end in the node, its runs in all caches, and calls of
	// Ref. If it is 0, the node is removed.
	refs int32
	// named: later prompts can have this node. Only a tail can be unnamed.
	named bool
	// output: the tokens are the output of a request, which may be running.
	output bool
	// dropped: the path that ends here was dropped.
	dropped bool
	// tiered: a tier had blocks of it.
	tiered bool
}

// Tree maps segments to nodes. A node lives as long as a path, a child, a hashed block or a caller of Ref
// needs it. One Tree serves all caches of a simulation.
type Tree struct {
	nodes []node
	spare []Node // the numbers of removed nodes
	named nameTable
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{named: newNameTable()} }

// Resolve appends to path the spans of the request with this id, whose prompt has input tokens and begins
// with segments. If these are the whole prompt, the tail is the output, which later prompts can have as the
// segment id.out. Otherwise the tail is the rest of the prompt and the output, and no other request has it.
// The caller must Drop the path.
func (t *Tree) Resolve(path Path, segments []Segment, input int, id string) Path {
	parent, start := noNode, 0
	for _, s := range segments {
		n := t.intern(nodeKey{parent, int32(start), s.ID})
		start += s.Tokens
		path = append(path, Span{n, int32(start)})
		parent = n
	}
	var tail Node
	if len(segments) > 0 && start == input {
		tail = t.intern(nodeKey{parent, int32(start), id + outputSuffix})
	} else {
		tail = t.add(node{key: nodeKey{parent, int32(start), ""}})
	}
	t.nodes[tail].refs++
	return append(path, Span{tail, unbounded})
}

// Drop releases a path that Resolve returned.
func (t *Tree) Drop(path Path) {
	tail := path[len(path)-1].Node
	t.nodes[tail].dropped = true
	t.unref(tail)
}

// Named reports whether later prompts can have node n.
func (t *Tree) Named(n Node) bool { return t.nodes[n].named }

// haveOutput reports whether one of some spans is the output of a request.
func (t *Tree) haveOutput(spans Path) bool {
	return slices.ContainsFunc(spans, func(x Span) bool { return t.nodes[x.Node].output })
}

// Unreachable reports whether no prompt can have node n any more.
func (t *Tree) Unreachable(n Node) bool { return t.nodes[n].dropped && !t.nodes[n].named }

// NoteTiered notes that a tier has blocks of node n.
func (t *Tree) NoteTiered(n Node) { t.nodes[n].tiered = true }

// Tiered reports whether a tier had blocks of node n.
func (t *Tree) Tiered(n Node) bool { return t.nodes[n].tiered }

// Len returns how many nodes there are.
func (t *Tree) Len() int { return len(t.nodes) - len(t.spare) }

// intern returns the named node with this key, which it adds if there is none.
func (t *Tree) intern(key nodeKey) Node {
	hash := key.hash()
	x := t.find(&key, hash)
	n := x.node
	if n == noNode {
		n = t.add(node{key: key, named: true, output: IsOutput(key.id)})
		t.named.add(x, hash, n)
	}
	return n
}

// add stores a node under an unused number.
func (t *Tree) add(nd node) Node {
	if nd.key.parent != noNode {
		t.nodes[nd.key.parent].refs++
	}
	if last := len(t.spare) - 1; last >= 0 {
		n := t.spare[last]
		t.spare = t.spare[:last]
		t.nodes[n] = nd
		return n
	}
	t.nodes = append(t.nodes, nd)
	return Node(len(t.nodes) - 1)
}

// Ref keeps node n and the nodes before it alive until Unref, for callers that store its number.
func (t *Tree) Ref(n Node) { t.ref(n) }

// Unref undoes one Ref.
func (t *Tree) Unref(n Node) { t.unref(n) }

func (t *Tree) ref(n Node) { t.nodes[n].refs++ }

func (t *Tree) unref(n Node) {
	for n != noNode {
		nd := &t.nodes[n]
		if nd.refs--; nd.refs > 0 {
			return
		}
		if nd.named {
			t.named.remove(n, nd.key.hash())
		}
		parent := nd.key.parent
		*nd = node{}
		t.spare = append(t.spare, n)
		n = parent
	}
}

// outputSuffix is the end of the ID of a segment that is the output of a request.
const outputSuffix = ".out"

// IsOutput reports whether the ID of a segment is that of the output of a request.
func IsOutput(id string) bool { return strings.HasSuffix(id, outputSuffix) }
