package trace

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// hashIDs are the ids of a prompt's blocks, which are most of the data in such traces.
type hashIDs []int64

// UnmarshalJSON reads a list of integers into the memory of h.
func (h *hashIDs) UnmarshalJSON(text []byte) error {
	*h = (*h)[:0]
	if string(text) == "null" {
		return nil
	}
	inside, ok := bytes.CutPrefix(text, []byte("["))
	if !ok {
		return fmt.Errorf("hash_ids takes a list, not %.40s", text)
	}
	inside = bytes.TrimSpace(bytes.TrimSuffix(inside, []byte("]")))
	for len(inside) > 0 {
		one, rest, _ := bytes.Cut(inside, []byte(","))
		one, inside = bytes.TrimSpace(one), rest
		n, err := strconv.ParseInt(string(one), 10, 64)
		if err != nil {
			return fmt.Errorf("hash_ids must contain integers, not %.40s", one)
		}
		*h = append(*h, n)
	}
	return nil
}

// hashedLines reads JSON lines whose prompts are hash ids.
type hashedLines struct {
	*textio.Lines
	// size is the number of tokens per id.
	size int64
	// read counts prompts, uncovered those whose ids do not cover one or more whole blocks.
	read, uncovered int64
}

func openHashedLines(in Input, o Options) (hashedLines, error) {
	l, err := textio.OpenLines(in)
	return hashedLines{Lines: l, size: o.BlockSize}, err
}

// prompt sets the segments of r. An id identifies a block together with all blocks before it, so
// ids are segment ids. The last block is partial; if partial is false it is left out and therefore
// unique. Tokens after the last id are unique to the request.
func (b *hashedLines) prompt(r *stream.Request, ids []int64, partial bool) error {
	b.read++
	left := r.InputTokens
	for i, id := range ids {
		if left <= 0 {
			return b.Errorf("hash_ids has %d ids, but %d blocks of %d tokens cover the input of %d tokens "+
				"(--block-size)", len(ids), i, b.size, r.InputTokens)
		}
		tokens := min(left, b.size)
		if left -= tokens; tokens == b.size || partial {
			r.Prompt = append(r.Prompt, stream.Segment{ID: strconv.FormatInt(id, 10), Tokens: tokens})
		}
	}
	if len(ids) > 0 && left >= b.size {
		b.uncovered++
	}
	return nil
}

// Warnings reports likely mistakes in the options.
func (b *hashedLines) Warnings() []string {
	if b.uncovered == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: the hash_ids of %d of %d prompts do not cover whole blocks of %d tokens, which "+
		"are treated as unique; check --block-size", b.Name, b.uncovered, b.read, b.size)}
}

// blockTree holds the prompts of one session as paths from the root; a node is a block of tokens
// after its ancestors. When all prompts are in it, it is split into runs, and each run is a
// segment. A node's run continues through the child that most prompts pass through. A shorter use
// of a segment is a prefix of it, so a prompt that leaves a run in its middle needs no split.
// Because of the choice of child, a path crosses at most log2 n runs of n prompts.
type blockTree struct {
	nodes []blockNode // the root first, parents before children
	child map[blockStep]int32
	// last and lastNodes are the ids and nodes of the latest prompt, with which most prompts share
	// a long prefix.
	last      []int64
	lastNodes []int32
}

type blockNode struct {
	parent int32
	// uses counts the prompts that end at the node, after splitRuns those that pass through it.
	uses int32
	// run is the number of its run, position its position there, from 1.
	run, position int32
}

type blockStep struct {
	parent int32
	id     int64
}

// root is the parent of all first blocks.
const root = 0

func newBlockTree() *blockTree {
	return &blockTree{nodes: make([]blockNode, 1), child: map[blockStep]int32{}}
}

// add adds a prompt and returns its last node.
func (t *blockTree) add(ids []int64) int32 {
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

// prompt returns the path to a node as segments, named after the session and the run; block is the
// tokens per block.
func (t *blockTree) prompt(session string, node int32, block int64) []stream.Segment {
	var segments []stream.Segment
	for node != root {
		n := t.nodes[node]
		segments = append(segments, stream.Segment{ID: session + "#" + strconv.Itoa(int(n.run)),
			Tokens: int64(n.position) * block})
		for ; t.nodes[node].position > 1; node = t.nodes[node].parent {
		}
		node = t.nodes[node].parent
	}
	slices.Reverse(segments)
	return segments
}
