package reference

import (
	"strconv"
	"strings"
)

// A sequence is the identity of all tokens a request may come to have, prompt
// then output, written out as text: two sequences share their first n tokens if
// and only if their texts of n tokens are equal. So that text serves as the
// hash of a block and of all before it.
type sequence struct {
	text string
	end  []int // end[n] is where the text of the first n tokens ends
}

// newSequence writes every token as the quoted name of what it belongs to and
// its place in it. Unique tokens belong to a name that no segment has, for
// segments are marked.
func newSequence(r Request) sequence {
	var text strings.Builder
	end := []int{0}
	write := func(name string, tokens int) {
		quoted := strconv.Quote(name)
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
