package gen

import (
	"fmt"
	"strings"

	"blis/pkg/stream"
)

// naming keeps names of one input apart from those of the others, and those of
// a pass through it from the passes before. Request R of the second input is
// "2:R", in its third pass "2:R~3".
type naming struct {
	// file is the input, for people.
	file string
	// prefix is "" where there is but one input.
	prefix string
}

// name gives a its final names. position is its place in the input, from 0; it
// names requests that have no name. Segments name contents, which are the same
// in each pass, but for what was generated in it.
func (n naming) name(a *stream.Arrival, position, pass int64) {
	again := ""
	if pass > 0 {
		again = fmt.Sprintf("~%d", pass+1)
	}
	if a.IsSession {
		n.session(&a.Session, again)
		return
	}
	r := &a.Request
	if r.ID == "" {
		r.ID = requestID(position)
	}
	r.ID = n.prefix + r.ID + again
	if r.Session != "" {
		r.Session = n.prefix + r.Session + again
	}
	n.segments(r.Prompt, "", again)
}

func (n naming) session(s *stream.Session, again string) {
	if again != "" || n.prefix != "" {
		for i := range s.Steps {
			n.segments(s.Steps[i].Prompt, s.ID, again)
		}
	}
	s.ID = n.prefix + s.ID + again
}

// segments renames the segments of a request or, if session is not "", of a step
// of a session: with what request R generated, "R.out", as R is renamed.
func (n naming) segments(prompt []stream.Segment, session, again string) {
	if again == "" && n.prefix == "" {
		return
	}
	for i := range prompt {
		id := prompt[i].ID
		if again != "" {
			step, own := strings.CutPrefix(id, session+"/")
			request, generated := strings.CutSuffix(id, ".out")
			switch {
			case session != "" && own && generated:
				id = session + again + "/" + step
			case generated:
				id = request + again + ".out"
			}
		}
		prompt[i].ID = n.prefix + id
	}
}
