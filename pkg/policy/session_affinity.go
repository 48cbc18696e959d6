package policy

import "slices"

// homes remembers the replica that each session was last sent to.
type homes []int32

// of returns the candidate that is the session's home, -1 if none is.
func (h homes) of(v *View) int {
	s := v.Request.SessionID
	if s < 0 || int(s) >= len(h) || h[s] < 0 {
		return -1
	}
	return slices.IndexFunc(v.Replicas, func(r Replica) bool { return r.Index == h[s] })
}

// moved notes that the request's session goes to candidate c.
func (h *homes) moved(v *View, c int) {
	s := v.Request.SessionID
	if s < 0 {
		return
	}
	for len(*h) <= int(s) {
		*h = append(*h, -1)
	}
	(*h)[s] = v.Replicas[c].Index
}

type sessionAffinity struct {
	reads
	load  load
	homes homes
}

func newSessionAffinity(*builder, *Spec) Router {
	return &sessionAffinity{reads: reads(NeedSession | NeedRequest)}
}

func (a *sessionAffinity) Route(v *View) Choice {
	c := Choice{Candidate: a.homes.of(v), Score: 1, Why: "home of the session"}
	if c.Candidate < 0 {
		c = a.load.least(v)
	}
	a.homes.moved(v, c.Candidate)
	return c
}

func (a *sessionAffinity) Clone() Router {
	return &sessionAffinity{a.reads, a.load, slices.Clone(a.homes)}
}
