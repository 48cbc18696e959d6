package policy

import "slices"

// sessionHome maps each session to the replica of its last request.
type sessionHome []int32

// find returns the candidate that is the session's home, -1 if none is.
func (h sessionHome) find(v *View) int {
	s := v.Request.SessionID
	if s < 0 || int(s) >= len(h) || h[s] < 0 {
		return -1
	}
	return slices.IndexFunc(v.Replicas, func(r Replica) bool { return r.Index == h[s] })
}

// recordChoice records that the request's session goes to candidate c.
func (h *sessionHome) recordChoice(v *View, c int) {
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
	needs
	loadMetric loadMetric
	ties       ties // of least-loaded
	home       sessionHome
}

func newSessionAffinity(b *builder, s *Spec) Router {
	return &sessionAffinity{needs: needs(NeedSession | NeedRequest), ties: b.ties(b.params(s, tieParams))}
}

func (a *sessionAffinity) Route(v *View) Choice {
	c := Choice{Candidate: a.home.find(v), Score: 1, Reason: "home of the session"}
	if c.Candidate < 0 {
		c = a.loadMetric.leastLoaded(v, &a.ties)
	}
	a.home.recordChoice(v, c.Candidate)
	return c
}

func (a *sessionAffinity) Clone() Router {
	return &sessionAffinity{a.needs, a.loadMetric, a.ties, slices.Clone(a.home)}
}
