package gen

import (
	"fmt"
	"strings"

	"blis/pkg/stream"
)

// naming makes ids unique across inputs and passes. Request R of the second input is "2:R", in its
// third pass "2:R~3".
type naming struct {
	// file is the input's name in messages.
	file string
	// prefix is "" if there is only one input.
	prefix string
}

// name sets the final ids of a. position is its position in the input, from 0, and the id of a
// request without one. Segment ids identify content and are the same in each pass, except for
// content generated in the pass.
func (n naming) name(a *stream.Arrival, position, pass int64) {
	suffix := ""
	if pass > 0 {
		suffix = fmt.Sprintf("~%d", pass+1)
	}
	if a.IsSession {
		n.session(&a.Session, suffix)
		return
	}
	r := &a.Request
	if r.ID == "" {
		r.ID = requestID(position)
	}
	r.ID = n.prefix + r.ID + suffix
	if r.Session != "" {
		r.Session = n.prefix + r.Session + suffix
	}
	n.segments(r.Prompt, "", suffix)
}

func (n naming) session(s *stream.Session, suffix string) {
	if suffix != "" || n.prefix != "" {
		for i := range s.Steps {
			n.segments(s.Steps[i].Prompt, s.ID, suffix)
		}
	}
	s.ID = n.prefix + s.ID + suffix
}

// segments renames the segments of a request or, if session is not "", of a session's step. The
// output of request R, "R.out", is renamed as R is.
func (n naming) segments(prompt []stream.Segment, session, suffix string) {
	if suffix == "" && n.prefix == "" {
		return
	}
	for i := range prompt {
		id := prompt[i].ID
		if suffix != "" {
			step, inSession := strings.CutPrefix(id, session+"/")
			request, generated := strings.CutSuffix(id, ".out")
			switch {
			case session != "" && inSession && generated:
				id = session + suffix + "/" + step
			case generated:
				id = request + suffix + ".out"
			}
		}
		prompt[i].ID = n.prefix + id
	}
}
