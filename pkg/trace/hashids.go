package trace

import (
	"bytes"
	"fmt"
	"strconv"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// hashID identifies a block.
type hashID int64

// hashIDs are the ids of a prompt, which are most of the data in such traces.
type hashIDs []hashID

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
		*h = append(*h, hashID(n))
	}
	return nil
}

// blocks converts hash ids to prompts.
type blocks struct {
	// size is the number of tokens per id.
	size int64
	// read counts prompts, uncovered those whose ids do not cover one or more whole blocks.
	read, uncovered int64
}

// prompt sets the segments of r. An id identifies a block together with all blocks before it, so
// ids are segment ids. The last block is partial; if partial is false it is left out and therefore
// unique. Tokens after the last id are unique to the request.
func (b *blocks) prompt(p *textio.Position, r *stream.Request, ids []hashID, partial bool) error {
	b.read++
	left := r.InputTokens
	for i, id := range ids {
		if left <= 0 {
			return p.Errorf("hash_ids has %d ids, but %d blocks of %d tokens cover the input of %d tokens "+
				"(--block-size)",
				len(ids), i, b.size, r.InputTokens)
		}
		tokens := min(left, b.size)
		if left -= tokens; tokens == b.size || partial {
			r.Prompt = append(r.Prompt, stream.Segment{ID: strconv.FormatInt(int64(id), 10), Tokens: tokens})
		}
	}
	if len(ids) > 0 && left >= b.size {
		b.uncovered++
	}
	return nil
}

// warnings reports likely mistakes in the options.
func (b *blocks) warnings(p *textio.Position) []string {
	if b.uncovered == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: the hash_ids of %d of %d prompts do not cover whole blocks of %d tokens, which "+
		"are treated as unique; check --block-size",
		p.Name, b.uncovered, b.read, b.size)}
}
