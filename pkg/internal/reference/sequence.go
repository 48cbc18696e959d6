package reference

import (
	"strconv"
	"strings"
)

// sequence identifies all tokens that a request may have, prompt then output, as text. Two sequences
// share their first n tokens if and only if their texts of n tokens are equal. So the text serves as
// the hash of a block and all blocks before it.
type sequence struct {
	text string
	end  []int // end[n] is the length of the text of the first n tokens
}

// newSequence writes every token as the quoted name of its origin and its position in it. Segment
// names are prefixed, so unique tokens never match a segment. Requests with different adapters share nothing.
func newSequence(r Request) sequence {
	var text strings.Builder
	end := []int{0}
	write := func(name string, tokens int) {
		quoted := strconv.Quote(name)
		if r.Adapter != "" {
			quoted += strconv.Quote(r.Adapter)
		}
		for offset := range tokens {
			text.WriteString(quoted + strconv.Itoa(offset) + " ")
			end = append(end, text.Len())
		}
	}
	unique := r.Input
	for _, s := range r.Prompt {
		write("segment "+s.ID, s.Tokens)
		unique -= s.Tokens
	}
	write("unique "+r.ID, unique)
	write("segment "+r.ID+".out", r.Output)
	return sequence{text.String(), end}
}

// hash identifies the first n tokens.
func (s sequence) hash(n int) string { return s.text[:s.end[n]] }

// blockHash identifies the block of a group that ends with the first n tokens.
func (s sequence) blockHash(group, n int) string { return strconv.Itoa(group) + ": " + s.hash(n) }
