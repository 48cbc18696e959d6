package kv

// MemoryImage is an Image of a memory below a cache.
type MemoryImage struct{ changeLog }

// NewMemoryImage returns the image of an empty memory. It must be a watcher of the memory, all blocks of which are
// group 0, and every block keeps its node alive while the memory has it.
func NewMemoryImage(tree *Tree) *MemoryImage { return &MemoryImage{newChangeLog(tree, 1)} }

// Has returns how many of blocks lo to hi of a path, of this many tokens each, the memory had at the last Refresh, up
// to the first that it lacked.
func (m *MemoryImage) Has(path Path, blockSize, lo, hi int32) int32 {
	at := lo
	for _, span := range path {
		end := min(span.End/blockSize, hi)
		for _, e := range m.blocks[0][span.Node] {
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
