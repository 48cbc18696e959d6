// Package kv is the paged block cache of one replica, and the identity of what
// is in it.
//
// Nothing here hashes tokens. A Tree gives every token sequence that prompts
// name a Node, so that two prompts share exactly the leading blocks that lie
// on a common path; a Cache keeps, for one replica, which blocks of which
// nodes it holds. It holds them as runs of consecutive blocks with one
// history, not one by one: what it yields is the same as that of a cache that
// moves single blocks through a least-recently-used list (the rules are vLLM
// V1's, vllm/v1/core/block_pool.py and kv_cache_manager.py).
package kv

import "strings"

// Node is a token sequence in its context: the tokens of one segment behind
// one particular prefix. Its blocks are those whose last token lies in it.
type Node int32

// None is no node: blocks that nothing can be found in.
const None Node = -1

// Segment is a named token sequence of a prompt, cut to Tokens.
type Segment struct {
	ID     string
	Tokens int
}

// Span is the use of a node by a sequence: up to, not including, token End.
type Span struct {
	Node Node
	End  int32
}

// Path is a whole sequence: the spans of its named segments and, last, the
// tail, without end, which holds what follows them.
type Path []Span

// unbounded is the End of a tail.
const unbounded = 1<<31 - 1

// nodeKey is the identity of a node. Equal segments behind equal prefixes are
// equal tokens; a shorter use of a segment ends elsewhere, so what follows it
// has another start and thereby another identity.
type nodeKey struct {
	parent Node
	start  int32
	id     string
}

type node struct {
	key nodeKey
	// refs counts children, paths that end here, runs in any cache, and what was
	// told of it that somebody keeps.
	refs int32
	// named: others can name this node's tokens and so find its blocks.
	named bool
	// output: the tokens are what a request generates, perhaps still does.
	output bool
}

// Tree gives token sequences their identity. A node lives as long as a path, a
// child or a cached block needs it. One Tree serves all caches of a simulation.
type Tree struct {
	nodes []node
	free  []Node
	index map[nodeKey]Node
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{index: map[nodeKey]Node{}} }

// Resolve appends to path the spans of request id, the first of whose input
// prompt tokens the segments name. If they name all of them, what follows can be
// named too, as the segment id.out, else it is the request's own. The path must
// be given back with Drop.
func (t *Tree) Resolve(path Path, segments []Segment, input int, id string) Path {
	parent, start := None, 0
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

// Drop gives a path back.
func (t *Tree) Drop(path Path) { t.unref(path[len(path)-1].Node) }

// Len returns how many nodes are alive.
func (t *Tree) Len() int { return len(t.nodes) - len(t.free) }

func (t *Tree) intern(key nodeKey) Node {
	if n, ok := t.index[key]; ok {
		return n
	}
	n := t.add(node{key: key, named: true, output: isOutput(key.id)})
	t.index[key] = n
	return n
}

func (t *Tree) add(nd node) Node {
	if nd.key.parent != None {
		t.nodes[nd.key.parent].refs++
	}
	if last := len(t.free) - 1; last >= 0 {
		n := t.free[last]
		t.free = t.free[:last]
		t.nodes[n] = nd
		return n
	}
	t.nodes = append(t.nodes, nd)
	return Node(len(t.nodes) - 1)
}

// Ref keeps node n, and those that it lies behind, alive until Unref, for somebody
// who keeps its number.
func (t *Tree) Ref(n Node) { t.ref(n) }

// Unref gives back what Ref was called for.
func (t *Tree) Unref(n Node) { t.unref(n) }

func (t *Tree) ref(n Node) { t.nodes[n].refs++ }

func (t *Tree) unref(n Node) {
	for n != None {
		nd := &t.nodes[n]
		if nd.refs--; nd.refs > 0 {
			return
		}
		if nd.named {
			delete(t.index, nd.key)
		}
		parent := nd.key.parent
		*nd = node{}
		t.free = append(t.free, n)
		n = parent
	}
}

// outputSuffix ends the id of the segment that a request generates.
const outputSuffix = ".out"

func isOutput(id string) bool { return strings.HasSuffix(id, outputSuffix) }
