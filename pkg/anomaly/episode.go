package anomaly

import (
	"fmt"
	"math"
	"slices"
)

// windowUS is the length of a window that holds enough samples by then. gapUS is the time without
// occurrences in a bad window after which an episode ends, unless its windows are longer.
const (
	windowUS = 30_000_000
	gapUS    = 60_000_000
)

// rule says when a window is bad: it has at least minOccurrences, and the weight of these is at
// least minBad and minShare of the total weight. text describes the totals of an episode.
type rule struct {
	minOccurrences int64
	minBad         int64 // the least weight of these
	minShare       float64
	text           func(totals) string
	// windowOnly: the window never holds samples older than windowUS.
	windowOnly bool
}

// minSamples is the number of samples that a window holds, however old they are: the number of which
// minOccurrences is minShare. This keeps the share meaningful at low request rates.
func (r *rule) minSamples() int {
	if r.windowOnly {
		return 1
	}
	return int(math.Ceil(float64(r.minOccurrences) / r.minShare))
}

// sample is one event and its weight: bad of all. It is an occurrence if bad is positive; then it
// started at from and concerns request id.
type sample struct {
	at, from int64
	bad, all int64
	id       string
	// byPolicy: the event violates the policy's own priority, not only that of the class.
	byPolicy bool
	// byPrefill: the prefill pool is the reason.
	byPrefill bool
}

// episodeBuilder watches one replica or one class.
type episodeBuilder struct {
	*rule
	emit    func(*Episode)
	replica int32
	class   string
	// window is what the window has, with totals inWindow. Its samples before merged are already part of the open
	// episode, whose totals are inEpisode.
	window    window
	merged    int
	inWindow  totals
	inEpisode totals
	// episode is nil if none is open. It ends when no occurrence follows within gap.
	episode *Episode
	gap     int64
}

// totals are the number of occurrences, their weight, the total weight, and the number of
// occurrences with byPolicy and with byPrefill.
type totals struct{ occurrences, bad, all, byPolicy, byPrefill int64 }

func (s *totals) add(x *sample, n int64) {
	if x.bad > 0 {
		s.occurrences += n
	}
	if x.byPolicy {
		s.byPolicy += n
	}
	if x.byPrefill {
		s.byPrefill += n
	}
	s.bad += n * x.bad
	s.all += n * x.all
}

// add records an event.
func (s *episodeBuilder) add(x sample) {
	s.advance(x.at)
	s.window.add(x)
	s.inWindow.add(&x, 1)
	if s.inWindow.occurrences >= s.minOccurrences && s.inWindow.bad >= s.minBad &&
		float64(s.inWindow.bad) >= s.minShare*float64(s.inWindow.all) {
		s.extend()
	}
}

// advance moves the window to time at.
func (s *episodeBuilder) advance(at int64) {
	least := s.minSamples() - 1 // the new sample is one more
	if s.episode != nil && at-s.episode.End > s.gap {
		s.close()
		least = 0 // a new episode needs its own occurrences
	}
	for s.window.len() > least && s.window.from() <= at-windowUS {
		x := s.window.at(0)
		s.inWindow.add(&x, -1)
		s.window.drop()
		s.merged = max(0, s.merged-1)
	}
}

// extend adds the samples of the window, which is bad, to the episode.
func (s *episodeBuilder) extend() {
	if s.episode == nil {
		s.episode, s.inEpisode = &Episode{Start: never, Replica: s.replica, Class: s.class}, totals{}
	}
	e := s.episode
	for ; s.merged < s.window.len(); s.merged++ {
		x := s.window.at(s.merged)
		s.inEpisode.add(&x, 1)
		if x.bad == 0 {
			continue
		}
		e.Start, e.End = min(e.Start, x.from), x.at
		if len(e.Requests) < maxRequests && !slices.Contains(e.Requests, x.id) {
			e.Requests = append(e.Requests, x.id)
		}
	}
	s.gap = max(gapUS, s.window.until()-s.window.from())
}

// close ends the open episode, if there is one.
func (s *episodeBuilder) close() {
	e, w := s.episode, &s.inEpisode
	if e == nil {
		return
	}
	s.episode = nil
	e.Count, e.Severity = w.occurrences, min(1, float64(w.bad)/float64(w.all))
	e.Text = s.text(*w)
	s.emit(e)
}

// episodeBuilders are the builders by replica.
type episodeBuilders struct {
	*rule
	emit      func(*Episode)
	byReplica []episodeBuilder
}

// forReplica returns the builder of a replica.
func (s *episodeBuilders) forReplica(replica int32) *episodeBuilder {
	for int(replica) >= len(s.byReplica) {
		s.byReplica = append(s.byReplica, episodeBuilder{rule: s.rule, emit: s.emit, replica: int32(len(s.byReplica))})
	}
	return &s.byReplica[replica]
}

// close ends all open episodes.
func (s *episodeBuilders) close() {
	for i := range s.byReplica {
		s.byReplica[i].close()
	}
}

// percent formats a share.
func percent(part, whole int64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}
