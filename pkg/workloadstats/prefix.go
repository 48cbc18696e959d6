package workloadstats

import "blis/pkg/stream"

// BlockSize is the tokens of the blocks in which hits are counted: that of the
// default cluster, and of vLLM.
const BlockSize = 16

// history is the prompts and answers of calls, as a tree: from each place in it
// segments lead on. A place is known by a digest of the way there, so that it
// takes two numbers: among a million places two coincide with a probability of
// 3 in 100 million.
type history struct {
	// longest is the most tokens of the segment that were seen in this place.
	longest map[uint64]int64
	// tokens of the prompts that were counted, of which hit were there before and
	// blocks in whole blocks; named have a name.
	tokens, identified, cached, cachedInBlocks int64
}

// root is where prompts begin.
const root uint64 = 14695981039346656037 // FNV-1a's offset

// hit is how many leading tokens of a prompt were there before, and how many have
// a name.
type hit struct{ cached, identified int64 }

// blocks is the hit in whole blocks, of a prompt of so many tokens.
func (h hit) blocks(input int64) int64 { return min(h.cached, input-1) / BlockSize * BlockSize }

// add says how much of the prompt of a call was there before, from a place on,
// and adds it, with the answer if the prompt has names to its end.
func (h *history) add(from uint64, prompt []stream.Segment, id string, input, output int64) hit {
	if h.longest == nil {
		h.longest = map[uint64]int64{}
	}
	var found hit
	place, matching := from, true
	for _, s := range prompt {
		edge := child(place, s.ID)
		seen := h.longest[edge]
		if matching {
			found.cached += min(seen, s.Tokens)
			matching = seen >= s.Tokens
		}
		if s.Tokens > seen {
			h.longest[edge] = s.Tokens
		}
		found.identified += s.Tokens
		place = mix(edge, uint64(s.Tokens))
	}
	if answer := output - 1; found.identified == input && answer > 0 {
		h.longest[child(place, id+".out")] = answer
	}
	return found
}

// count counts the hit of a prompt of so many tokens.
func (h *history) count(of hit, input int64) {
	h.tokens += input
	h.identified += of.identified
	h.cached += of.cached
	h.cachedInBlocks += of.blocks(input)
}

// hitRatio is the share of the tokens that were there before, in whole blocks.
func (h *history) hitRatio() *float64 {
	if h.tokens == 0 {
		return nil
	}
	r := float64(h.cachedInBlocks) / float64(h.tokens)
	return &r
}

// prefix is what there is to say of all; nil without prompts.
func (h *history) prefix() *Prefix {
	if h.tokens == 0 {
		return nil
	}
	of := float64(h.tokens)
	return &Prefix{Identified: float64(h.identified) / of, Hit: float64(h.cached) / of, BlockHit: float64(h.cachedInBlocks) / of, BlockSize: BlockSize}
}

// child is the digest of the segment called id in a place.
func child(place uint64, id string) uint64 {
	for i := range len(id) {
		place = (place ^ uint64(id[i])) * 1099511628211 // FNV-1a
	}
	return mix(place, uint64(len(id)))
}

// mix mixes n into a digest (the finisher of Steele, Lea and Flood's
// SplitMix64, OOPSLA 2014), after which all bits depend on all.
func mix(place, n uint64) uint64 {
	x := place + (n+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
