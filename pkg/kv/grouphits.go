package kv

// hashedBlocks knows which blocks are hashed for which group.
type hashedBlocks interface {
	has(group int, n Node, j int32) bool
}

// hitLayout is how groups are looked up: those with equal blocks together, full attention first.
type hitLayout struct {
	kinds []hitKind
	// alignment is the least common multiple of the block sizes. Hits are multiples of it.
	alignment int32
}

// hitKind is groups that are equal.
type hitKind struct {
	Group
	members []int
}

func newHitLayout(groups []Group) hitLayout {
	l := hitLayout{alignment: 1}
	for _, first := range [...]bool{true, false} {
		for i, g := range groups {
			if (g.Kind == FullAttention) != first {
				continue
			}
			l.add(i, g)
		}
	}
	return l
}

func (l *hitLayout) add(i int, g Group) {
	for k := range l.kinds {
		if l.kinds[k].Group == g {
			l.kinds[k].members = append(l.kinds[k].members, i)
			return
		}
	}
	l.kinds = append(l.kinds, hitKind{g, []int{i}})
	size := int32(g.BlockSize)
	l.alignment = l.alignment / greatestDivisor(l.alignment, size) * size
}

func greatestDivisor(a, b int32) int32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// longestHit returns how many of the first n tokens of path are a hit, and how many the kind with most has. Each
// kind shortens the hit of the kinds before it, until all have it
// (HybridKVCacheCoordinator.find_longest_cache_hit).
func (l *hitLayout) longestHit(h hashedBlocks, path Path, n int32) (hit, longest int32) {
	hit = n
	for first := true; ; first = false {
		before := hit
		for k := range l.kinds {
			kind := &l.kinds[k]
			switch {
			case kind.Kind == SlidingWindow || kind.Kind == RecurrentState:
				hit = l.windowHit(h, kind, path, hit)
			case kind.Kind == LocalChunks:
				hit = l.prefixHit(h, kind, path, kind.skipped(hit)*int32(kind.BlockSize), hit)
			case first: // a shorter prefix needs no other look
				hit = l.prefixHit(h, kind, path, 0, hit)
			default:
				continue
			}
			longest = max(longest, hit)
		}
		if hit == before {
			return hit, longest
		}
	}
}

// prefixHit returns how many of the first n tokens of path are a hit, if the first tokens need none: up to the
// first block that not all members have (find_longest_cache_hit of FullAttentionManager and
// ChunkedLocalAttentionManager).
func (l *hitLayout) prefixHit(h hashedBlocks, kind *hitKind, path Path, tokens, n int32) int32 {
	size, span := int32(kind.BlockSize), 0
	for tokens+size <= n {
		for path[span].End < tokens+size {
			span++
		}
		if !kind.all(h, path[span].Node, tokens/size) {
			break
		}
		tokens += size
	}
	return tokens - tokens%l.alignment
}

// windowHit returns the most of the first n tokens of path that end with as many blocks as a token needs, or
// that are all in blocks that all members have (SlidingWindowManager.find_longest_cache_hit).
func (l *hitLayout) windowHit(h hashedBlocks, kind *hitKind, path Path, n int32) int32 {
	size, tail, found := int32(kind.BlockSize), kind.tail(), int32(0)
	span := len(path) - 1
	for j := n/size - 1; j >= 0; j-- {
		for span > 0 && path[span-1].End >= (j+1)*size {
			span--
		}
		switch {
		case !kind.all(h, path[span].Node, j):
			found = 0
		case found == 0 && (j+1)*size%l.alignment != 0: // a hit cannot end here
		default:
			if found++; found == tail {
				return (j + found) * size
			}
		}
	}
	tokens := found * size
	return tokens - tokens%l.alignment
}

// all reports whether all members have block j of node n.
func (k *hitKind) all(h hashedBlocks, n Node, j int32) bool {
	for _, g := range k.members {
		if !h.has(g, n, j) {
			return false
		}
	}
	return true
}
