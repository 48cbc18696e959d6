// Package kv is the paged block cache of one replica, and the identity of its content.
//
// Nothing here hashes tokens. A Tree gives every token sequence that prompts name a Node, so that
// two prompts share exactly the leading blocks on their common path. A Cache tracks, for one
// replica, which blocks of which nodes it holds. It stores them as runs of consecutive blocks with
// one history, not one by one. The result equals that of a cache that moves single blocks through a
// least-recently-used list, with the rules of vLLM V1 (vllm/v1/core/block_pool.py and
// kv_cache_manager.py).
package kv

import "strings"

// Node is a token sequence in its context: the tokens of one segment after one particular prefix.
// Its blocks are those whose last token lies in it.
type Node int32

// noNode is the null node: its blocks cannot be found.
const noNode Node = -1

// Segment is a named token sequence of a prompt, cut to Tokens.
type Segment struct {
	ID     string
	Tokens int
}

// Span is the use of a node by a sequence, up to token End, exclusive.
type Span struct {
	Node Node
	End  int32
}

// Path is a sequence: the spans of its named segments and last, without an end, the tail that holds
// all tokens after them.
type Path []Span

// unbounded is the End of a tail.
const unbounded = 1<<31 - 1

// nodeKey identifies a node. Equal segments after equal prefixes are equal tokens. A shorter use of
// a segment ends elsewhere, so that what follows it has another start and another identity.
type nodeKey struct {
	parent Node
	start  int32
	id     string
}

type node struct {
	key nodeKey
	// refs counts children, paths that end here, runs in any cache, and notifications that a watcher
	// stores.
	refs int32
	// named: other prompts can name this node's tokens and find its blocks.
	named bool
	// output: the tokens are the output of a request, possibly one that is still running.
	output bool
}

// Tree gives token sequences their identity. A node lives as long as a path, a child or a cached
// block needs it. One Tree serves all caches of a simulation.
type Tree struct {
	nodes []node
	free  []Node
	index map[nodeKey]Node
}

// NewTree returns an empty tree.
func NewTree() *Tree { return &Tree{index: map[nodeKey]Node{}} }

// Resolve appends to path the spans of request id, whose first input tokens are its prompt, named
// from the start by segments. If segments name the whole prompt, the output is the segment id.out;
// otherwise it has no name. The path must be released with Drop.
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

// Drop releases a path.
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
	if nd.key.parent != noNode {
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

// Ref keeps node n and its prefix alive until Unref, for callers that store its number.
func (t *Tree) Ref(n Node) { t.ref(n) }

// Unref undoes Ref.
func (t *Tree) Unref(n Node) { t.unref(n) }

func (t *Tree) ref(n Node) { t.nodes[n].refs++ }

func (t *Tree) unref(n Node) {
	for n != noNode {
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

// outputSuffix ends the id of a segment that a request generates.
const outputSuffix = ".out"

func isOutput(id string) bool { return strings.HasSuffix(id, outputSuffix) }
