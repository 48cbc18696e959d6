package workloadstats

import "blis/pkg/stream"

// BlockSize is the tokens per block in which hits are counted: the default of clusters and of vLLM.
const BlockSize = 16

// history is a tree of all prompts and outputs: from each place, segments lead to others. A place
// is identified by a digest of its path, so it takes two numbers. Among a million places the
// probability of a collision is 3 in 100 million.
type history struct {
	// longest is the maximum length of the segment seen at this place.
	longest map[uint64]int64
	// Sums over the prompts counted: tokens, identified tokens (with a segment), cached tokens and
	// cached tokens in whole blocks.
	tokens, identified, cached, cachedInBlocks int64
}

func newHistory() history { return history{longest: map[uint64]int64{}} }

// root is where prompts begin.
const root uint64 = 14695981039346656037 // FNV-1a's offset

// hit holds how many leading tokens of a prompt were there before, and how many have a segment.
type hit struct{ cached, identified int64 }

// blocks is the hit in whole blocks, for a prompt of input tokens.
func (h hit) blocks(input int64) int64 { return min(h.cached, input-1) / BlockSize * BlockSize }

// add returns how much of a prompt was there before, starting at a place, and adds the prompt and
// its hit to the sums. It also adds the output if the prompt is fully identified.
func (h *history) add(from uint64, prompt []stream.Segment, id string, input, output int64) hit {
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
	if generated := output - 1; found.identified == input && generated > 0 {
		h.longest[child(place, id+".out")] = generated
	}
	h.tokens += input
	h.identified += found.identified
	h.cached += found.cached
	h.cachedInBlocks += found.blocks(input)
	return found
}

// hitRatio is the share of tokens that were there before, in whole blocks.
func (h *history) hitRatio() *float64 {
	if h.tokens == 0 {
		return nil
	}
	return new(float64(h.cachedInBlocks) / float64(h.tokens))
}

// prefix summarizes the sums; nil without prompts.
func (h *history) prefix() *Prefix {
	if h.tokens == 0 {
		return nil
	}
	of := float64(h.tokens)
	return &Prefix{Identified: float64(h.identified) / of, Hit: float64(h.cached) / of,
		BlockHit: float64(h.cachedInBlocks) / of, BlockSize: BlockSize}
}

// child is the digest of the segment called id at a place.
func child(place uint64, id string) uint64 {
	for i := range len(id) {
		place = (place ^ uint64(id[i])) * 1099511628211 // FNV-1a
	}
	return mix(place, uint64(len(id)))
}

// mix mixes n into a digest with the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(place, n uint64) uint64 {
	x := place + (n+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
