package anomaly

import (
	"fmt"
	"slices"
)

// windowUS is how far back a window looks; gapUS is how long no sign of a bad window may
// come before an episode is over.
const (
	windowUS = 30_000_000
	gapUS    = 60_000_000
)

// rule says what makes a window bad: at least so many signs, whose weight is at least
// this share of the weight of all that the window holds. text is of the figures of
// an episode: signs, their weight, the weight of all.
type rule struct {
	signs int64
	share float64
	text  func(signs, bad, all int64) string
}

// sample is something that happened, with its weight: bad of all. It is a sign if
// any of it is bad; then it began at from, and is about the request id.
type sample struct {
	at, from int64
	bad, all int64
	id       string
}

// spell watches one replica or one class.
type spell struct {
	*rule
	tell    func(*Episode)
	replica int32
	class   string
	// samples[first:] are in the window, of which those before taken are in the
	// episode that is going on. now are their sums, all are the episode's.
	samples      []sample
	first, taken int
	window       sums
	whole        sums
	// episode is nil unless one is going on.
	episode *Episode
}

type sums struct{ signs, bad, all int64 }

func (s *sums) add(x *sample, n int64) {
	if x.bad > 0 {
		s.signs += n
	}
	s.bad += n * x.bad
	s.all += n * x.all
}

// add tells of what happened.
func (s *spell) add(x sample) {
	s.pass(x.at)
	s.samples = append(s.samples, x)
	s.window.add(&x, 1)
	if s.window.signs >= s.signs && float64(s.window.bad) >= s.share*float64(s.window.all) {
		s.take()
	}
}

// pass lets time go on to at.
func (s *spell) pass(at int64) {
	for s.first < len(s.samples) && s.samples[s.first].at <= at-windowUS {
		s.window.add(&s.samples[s.first], -1)
		s.first++
	}
	s.taken = max(s.taken, s.first)
	if 2*s.first > len(s.samples) {
		s.samples = slices.Delete(s.samples, 0, s.first)
		s.first, s.taken = 0, s.taken-s.first
	}
	if s.episode != nil && at-s.episode.End > gapUS {
		s.close()
	}
}

// take puts what the window, which is bad, holds into the episode.
func (s *spell) take() {
	if s.episode == nil {
		s.episode, s.whole = &Episode{Start: never, Replica: s.replica, Class: s.class}, sums{}
	}
	e := s.episode
	for ; s.taken < len(s.samples); s.taken++ {
		x := &s.samples[s.taken]
		s.whole.add(x, 1)
		if x.bad == 0 {
			continue
		}
		e.Start, e.End = min(e.Start, x.from), x.at
		if len(e.Requests) < MaxRequests && !slices.Contains(e.Requests, x.id) {
			e.Requests = append(e.Requests, x.id)
		}
	}
}

// close ends the episode that is going on, if one is.
func (s *spell) close() {
	e, w := s.episode, &s.whole
	if e == nil {
		return
	}
	s.episode = nil
	e.Count, e.Severity = w.signs, min(1, float64(w.bad)/float64(w.all))
	e.Text = s.text(w.signs, w.bad, w.all)
	s.tell(e)
}

// spells are those of replicas, by their numbers.
type spells struct {
	*rule
	tell func(*Episode)
	of   []spell
}

// at returns the spell of a replica.
func (s *spells) at(replica int32) *spell {
	for int(replica) >= len(s.of) {
		s.of = append(s.of, spell{rule: s.rule, tell: s.tell, replica: int32(len(s.of))})
	}
	return &s.of[replica]
}

func (s *spells) close() {
	for i := range s.of {
		s.of[i].close()
	}
}

// percent writes a share.
func percent(part, whole int64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
