package trace

import (
	"bytes"
	"fmt"
	"strconv"

	"blis/pkg/stream"
	"blis/pkg/textio"
)

// hashID is the number of a block.
type hashID int64

// hashIDs are those of a prompt, most of what there is to read in a trace that
// has them.
type hashIDs []hashID

// UnmarshalJSON reads a list of whole numbers, into the memory of h.
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
			return fmt.Errorf("hash_ids takes whole numbers, not %.40s", one)
		}
		*h = append(*h, hashID(n))
	}
	return nil
}

// blocks turns hash ids into prompts.
type blocks struct {
	// size is how many tokens an id stands for.
	size int64
	// read counts prompts, uncovered those of which the ids leave a block or more
	// unnamed.
	read, uncovered int64
}

// prompt gives r its ids as segments: a block together with all before it has
// one id, so that they are the prompt's segments. The last block is cut where
// the prompt ends, or left out, so that it is unique, if partial is false.
// Tokens past the last id are the request's own.
func (b *blocks) prompt(p *textio.Position, r *stream.Request, ids []hashID, partial bool) error {
	b.read++
	left := r.InputTokens
	for i, id := range ids {
		if left <= 0 {
			return p.Errorf("hash_ids has %d ids, but %d blocks of %d tokens hold the whole input of %d tokens (--block-size)",
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

// warnings says what is likely to be a mistake in the call.
func (b *blocks) warnings(p *textio.Position) []string {
	if b.uncovered == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: the hash_ids of %d of %d prompts leave whole blocks of %d tokens unnamed, which are taken as unique; is --block-size right?",
		p.Name, b.uncovered, b.read, b.size)}
}
