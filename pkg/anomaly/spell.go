package anomaly

import (
	"fmt"
	"math"
	"slices"
)

// windowUS is how far back a window looks, if it then holds enough; gapUS is how long no
// sign of a bad window may come before an episode is over, if its windows are shorter.
const (
	windowUS = 30_000_000
	gapUS    = 60_000_000
)

// rule says what makes a window bad: at least so many signs, whose weight is at least
// this share of the weight of all that the window holds. text is of the figures of
// an episode.
type rule struct {
	signs int64
	share float64
	text  func(sums) string
	// recent: only the last thirty seconds count.
	recent bool
}

// least is how many samples a window holds, however old: as many as the fewest signs
// are this share of. So it is the share that is seen where little happens.
func (r *rule) least() int {
	if r.recent {
		return 1
	}
	return int(math.Ceil(float64(r.signs) / r.share))
}

// sample is something that happened, with its weight: bad of all. It is a sign if
// any of it is bad; then it began at from, and is about the request id.
type sample struct {
	at, from int64
	bad, all int64
	id       string
	// given: it is one by the policy's own priorities.
	given bool
}

// spell watches one replica or one class.
type spell struct {
	*rule
	tell    func(*Episode)
	replica int32
	class   string
	// samples[first:] are in the window, of which those before taken are in the
	// episode that is going on. window are their sums, whole are the episode's.
	samples      []sample
	first, taken int
	window       sums
	whole        sums
	// episode is nil unless one is going on; it is over if no sign comes for gap.
	episode *Episode
	gap     int64
}

// sums are the number of signs, their weight and that of all, and how many of the signs
// are given ones.
type sums struct{ signs, bad, all, given int64 }

func (s *sums) add(x *sample, n int64) {
	if x.bad > 0 {
		s.signs += n
	}
	if x.given {
		s.given += n
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
	least := s.least() - 1 // with what comes now
	if s.episode != nil && at-s.episode.End > s.gap {
		s.close()
		least = 0 // the next one has signs of its own
	}
	for len(s.samples)-s.first > least && s.samples[s.first].at <= at-windowUS {
		s.window.add(&s.samples[s.first], -1)
		s.first++
	}
	s.taken = max(s.taken, s.first)
	if 2*s.first > len(s.samples) {
		s.samples = slices.Delete(s.samples, 0, s.first)
		s.first, s.taken = 0, s.taken-s.first
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
	s.gap = max(gapUS, s.samples[len(s.samples)-1].at-s.samples[s.first].at)
}

// close ends the episode that is going on, if one is.
func (s *spell) close() {
	e, w := s.episode, &s.whole
	if e == nil {
		return
	}
	s.episode = nil
	e.Count, e.Severity = w.signs, min(1, float64(w.bad)/float64(w.all))
	e.Text = s.text(*w)
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
