package policy

import "slices"

// sessionPin is what session-affinity-scorer and session-affinity-filter of llm-d-router v0.10.0 know
// of sessions (scheduling/util/sessionaffinity).
//
// With the strategy encoded_endpoint_header the client returns the name of the replica that answered
// its last request; here it is the replica to which that request was sent. With session_id the router
// binds a session to the replica of its first request. Another replica follows only if that one
// was no candidate, or once the session was idle for ttlUS; bindings expire at the multiples of
// sweepUS (session_id.go).
type sessionPin struct {
	bound          bool // the strategy session_id
	ttlUS, sweepUS int64
	replica        []int32 // of each session, -1 if none
	lastUS         []int64 // when the session was last sent there
	present        bool    // the session's replica was a candidate of the last request scored
}

func newSessionPin(v values) sessionPin {
	return sessionPin{bound: v.choice("strategy") == strategySessionID,
		ttlUS:   int64(v.number("evictionTtlSeconds") * 1e6),
		sweepUS: max(1, int64(v.number("evictionSweepSeconds")*1e6))}
}

const (
	strategyHeader    = "encoded_endpoint_header"
	strategySessionID = "session_id"
)

// find returns the candidate to which the request's session is pinned, -1 if there is none.
func (p *sessionPin) find(v *View) int {
	p.present = false
	s := v.Request.SessionID
	if s < 0 || int(s) >= len(p.replica) || p.replica[s] < 0 {
		return -1
	}
	if p.bound && v.NowUS-v.NowUS%p.sweepUS-p.lastUS[s] > p.ttlUS {
		p.replica[s] = -1
		return -1
	}
	at := slices.IndexFunc(v.Replicas, func(r Replica) bool { return r.Index == p.replica[s] })
	p.present = at >= 0
	return at
}

func (p *sessionPin) recordChoice(v *View, c int) {
	s := v.Request.SessionID
	if s < 0 {
		return
	}
	for len(p.replica) <= int(s) {
		p.replica, p.lastUS = append(p.replica, -1), append(p.lastUS, 0)
	}
	chosen := v.Replicas[c].Index
	if p.bound && p.present && p.replica[s] != chosen {
		return
	}
	p.replica[s], p.lastUS[s] = chosen, v.NowUS
}

func (p *sessionPin) copy() sessionPin {
	c := *p
	c.replica, c.lastUS = slices.Clone(p.replica), slices.Clone(p.lastUS)
	return c
}

// pinScore is session-affinity-scorer: 1 for the replica of the session, 0 for others.
type pinScore struct{ sessionPin }

func newPinScore(_ *builder, v values) any { return &pinScore{newSessionPin(v)} }

func (*pinScore) Needs() Needs    { return NeedSession | NeedRequest }
func (s *pinScore) clone() scorer { return &pinScore{s.copy()} }
func (s *pinScore) score(v *View, scores []float64) {
	clear(scores)
	if at := s.find(v); at >= 0 {
		scores[at] = 1
	}
}

// pinFilter is session-affinity-filter: it keeps only the replica of the session, if that is a
// candidate.
type pinFilter struct{ sessionPin }

func newPinFilter(_ *builder, v values) any { return &pinFilter{newSessionPin(v)} }

func (*pinFilter) Needs() Needs              { return NeedSession | NeedRequest }
func (f *pinFilter) cloneFilter() llmdFilter { return &pinFilter{f.copy()} }
func (f *pinFilter) filter(v *View, keep []bool) {
	if at := f.find(v); at >= 0 {
		clear(keep)
		keep[at] = true
	}
}
