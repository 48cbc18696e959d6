package kv

// MemoryImage is a snapshot of which blocks a memory below a cache has, as of the last Refresh. Like an Image it logs
// the changes since then.
type MemoryImage struct {
	tree   *Tree
	log    []change
	blocks map[Node][]extent // as in an Image
}

// NewMemoryImage returns the image of an empty memory. It must be a watcher of the memory, all blocks of which are
// group 0, and every block keeps its node alive while the memory has it.
func NewMemoryImage(tree *Tree) *MemoryImage {
	return &MemoryImage{tree: tree, blocks: map[Node][]extent{}}
}

// Inserted is called by the memory.
func (m *MemoryImage) Inserted(_ int, n Node, lo, hi int32) { m.logChange(change{n, lo, hi, 0, true}) }

// Evicted is called by the memory.
func (m *MemoryImage) Evicted(_ int, n Node, lo, hi int32) { m.logChange(change{n, lo, hi, 0, false}) }

func (m *MemoryImage) logChange(c change) {
	m.tree.ref(c.node)
	m.log = append(m.log, c)
}

// Refresh updates the image to the present.
func (m *MemoryImage) Refresh() {
	for _, c := range m.log {
		c.apply(m.blocks)
		m.tree.unref(c.node)
	}
	m.log = m.log[:0]
}

// Has returns how many of blocks lo to hi of a path, of this many tokens each, the memory had at the last Refresh, up
// to the first that it lacked.
func (m *MemoryImage) Has(path Path, blockSize, lo, hi int32) int32 {
	at := lo
	for _, span := range path {
		end := min(span.End/blockSize, hi)
		for _, e := range m.blocks[span.Node] {
			if e.lo <= at && at < e.hi {
				at = max(at, min(e.hi, end))
			}
		}
		if at < end {
			break
		}
	}
	return at - lo
}
