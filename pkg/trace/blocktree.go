package trace

import (
	"slices"
	"strconv"

	"blis/pkg/stream"
)

// blockTree holds the prompts of one session as ways from the root: a node is a
// block of tokens after all blocks above it. When all are in it, it is cut into
// runs, of which each is a segment: a node's run goes on through the child that
// most prompts pass through. A shorter use of a segment is a prefix of it, so
// that a prompt that leaves a run in its middle needs no cut there; and because
// of that choice a way of n prompts crosses at most log2 n runs.
type blockTree struct {
	nodes []blockNode // the root first, parents before children
	child map[blockStep]int32
	// last are the ids and nodes of the latest prompt, with which most share a
	// long beginning.
	last      []hashID
	lastNodes []int32
}

type blockNode struct {
	parent int32
	// uses counts the prompts through the node, after cut; before, those that end
	// there.
	uses int32
	// run is the number of its run, place its place there, from 1.
	run, position int32
}

type blockStep struct {
	parent int32
	id     hashID
}

// root is the node above all first blocks.
const root = 0

func newBlockTree() *blockTree {
	return &blockTree{nodes: make([]blockNode, 1), child: map[blockStep]int32{}}
}

// add adds a prompt and returns the node where it ends.
func (t *blockTree) add(ids []hashID) int32 {
	same := 0
	for same < len(ids) && same < len(t.last) && ids[same] == t.last[same] {
		same++
	}
	t.last, t.lastNodes = append(t.last[:0], ids...), t.lastNodes[:same]
	at := int32(root)
	if same > 0 {
		at = t.lastNodes[same-1]
	}
	for _, id := range ids[same:] {
		step := blockStep{at, id}
		next, known := t.child[step]
		if !known {
			next = int32(len(t.nodes))
			t.nodes = append(t.nodes, blockNode{parent: at})
			t.child[step] = next
		}
		at = next
		t.lastNodes = append(t.lastNodes, at)
	}
	t.nodes[at].uses++
	return at
}

// splitRuns divides the tree into runs. No prompt is added after it.
func (t *blockTree) splitRuns() {
	main := make([]int32, len(t.nodes)) // the child that continues a node's run
	for i := len(t.nodes) - 1; i > root; i-- {
		t.nodes[t.nodes[i].parent].uses += t.nodes[i].uses
	}
	for i := 1; i < len(t.nodes); i++ {
		n := &t.nodes[i]
		if best := &main[n.parent]; *best == 0 || n.uses > t.nodes[*best].uses {
			*best = int32(i)
		}
	}
	runs := int32(0)
	for i := 1; i < len(t.nodes); i++ {
		n := &t.nodes[i]
		if n.parent != root && main[n.parent] == int32(i) {
			above := t.nodes[n.parent]
			n.run, n.position = above.run, above.position+1
			continue
		}
		n.run, n.position = runs, 1
		runs++
	}
}

// prompt returns the way to a node as segments, each called after the session
// and its run; a block has so many tokens.
func (t *blockTree) prompt(session string, node int32, block int64) []stream.Segment {
	var segments []stream.Segment
	for node != root {
		n := t.nodes[node]
		segments = append(segments, stream.Segment{ID: session + "#" + strconv.Itoa(int(n.run)), Tokens: int64(n.position) * block})
		for ; t.nodes[node].position > 1; node = t.nodes[node].parent {
		}
		node = t.nodes[node].parent
	}
	slices.Reverse(segments)
	return segments
}
