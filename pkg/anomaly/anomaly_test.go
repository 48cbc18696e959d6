package anomaly_test

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/anomaly"

	"github.com/google/go-cmp/cmp"
)

// ms is a millisecond in µs.
const ms = 1000

// stage is all detectors and the episodes they found.
type stage struct {
	detect anomaly.Detector
	found  []anomaly.Episode
}

func newStage() *stage {
	s := &stage{}
	s.detect = anomaly.New(func(e *anomaly.Episode) { s.found = append(s.found, *e) })
	return s
}

func (s *stage) Enqueued(at int64, replica, tag int32, r *anomaly.Request) {
	s.detect(&anomaly.Event{Kind: anomaly.Enqueued, At: at, Replica: replica, Tag: tag, Request: r})
}

func (s *stage) HeadOfLineBlocked(at int64, replica int32, by *anomaly.Request, room int64) {
	s.detect(&anomaly.Event{Kind: anomaly.HeadOfLineBlocked, At: at, Replica: replica, Request: by, Room: room})
}

func (s *stage) Admitted(at int64, replica, tag int32, r *anomaly.Request) {
	s.detect(&anomaly.Event{Kind: anomaly.Admitted, At: at, Replica: replica, Tag: tag, Request: r})
}

func (s *stage) Preempted(at int64, replica int32, r *anomaly.Request) {
	s.detect(&anomaly.Event{Kind: anomaly.Preempted, At: at, Replica: replica, Request: r})
}

func (s *stage) Finished(at int64, r *anomaly.Request) {
	s.detect(&anomaly.Event{Kind: anomaly.Finished, At: at, Request: r})
}

func (s *stage) Close(at int64) { s.detect(&anomaly.Event{Kind: anomaly.Closed, At: at}) }

// expect compares the episodes found so far with the expected ones.
func (s *stage) expect(t *testing.T, want ...anomaly.Episode) {
	t.Helper()
	if diff := cmp.Diff(want, s.found); diff != "" {
		t.Errorf("found what should not be (-) or not what should (+):\n%s", diff)
	}
}

// names returns prefix0, prefix1 and so on.
func names(prefix string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// passOver enqueues n requests of a high priority at 0 and n of a low priority at 50 ms, and
// schedules the latter first, at the given time.
func passOver(n int, at int64, high, low anomaly.Request) *stage {
	s := newStage()
	for i := range int32(n) {
		high.ID = fmt.Sprint("high", i)
		s.Enqueued(0, 3, i, &high)
	}
	for i := range int32(n) {
		low.ID = fmt.Sprint("low", i)
		s.Enqueued(50*ms, 3, 100+i, &low)
	}
	for i := range int32(n) {
		s.Admitted(at, 3, 100+i, &low)
	}
	for i := range int32(n) {
		high.ID = fmt.Sprint("high", i)
		s.Admitted(at+1000*ms, 3, i, &high)
	}
	s.Close(9000 * ms)
	return s
}

func TestPriorityInversion(t *testing.T) {
	want := anomaly.Episode{Type: "priority_inversion", Start: 100 * ms, End: 1100 * ms, Severity: 0.5, Count: 6,
		Requests: names("high", 6), Replica: 3,
		Text: "6 of 12 requests (50.0 %) had waited 100 ms or more when a later request of lower priority was " +
			"scheduled"}
	urgent, calm := anomaly.Request{Priority: 5}, anomaly.Request{Priority: 4}
	passOver(6, 100*ms, urgent, calm).expect(t, want)
	// By class, whatever the policy's priorities.
	byClass := want
	byClass.Text = "6 of 12 requests (50.0 %) had waited 100 ms or more when a later request of a lower SLO class, " +
		"but not of a lower priority, was scheduled"
	passOver(6, 100*ms, anomaly.Request{Priority: -1, ClassPriority: 1}, anomaly.Request{}).expect(t, byClass)
	// Some by both, some by class only.
	mixed := want
	mixed.Count, mixed.Requests, mixed.Severity = 12, append(names("high", 6), names("other", 6)...), 12.0/24
	mixed.Text = "12 of 24 requests (50.0 %) had waited 100 ms or more when a later request of lower priority was " +
		"scheduled " +
		"(for 6 of them only of a lower SLO class)"
	s := newStage()
	for i := range int32(6) {
		s.Enqueued(0, 3, i, &anomaly.Request{ID: fmt.Sprint("high", i), Priority: 5, ClassPriority: 1})
		s.Enqueued(0, 3, 50+i, &anomaly.Request{ID: fmt.Sprint("other", i), Priority: 4, ClassPriority: 1})
	}
	for i := range int32(12) {
		s.Enqueued(50*ms, 3, 100+i, &anomaly.Request{ID: "low", Priority: 4})
	}
	for i := range int32(12) {
		s.Admitted(100*ms, 3, 100+i, &anomaly.Request{})
	}
	for i := range int32(6) {
		s.Admitted(1100*ms, 3, i, &anomaly.Request{})
	}
	for i := range int32(6) {
		s.Admitted(1100*ms, 3, 50+i, &anomaly.Request{})
	}
	s.Close(9000 * ms)
	s.expect(t, mixed)
	// Too few, not waiting long enough, or not of a higher priority.
	passOver(4, 100*ms, urgent, calm).expect(t)
	passOver(6, 100*ms-1, urgent, calm).expect(t)
	passOver(6, 100*ms, calm, calm).expect(t)
	passOver(6, 100*ms, calm, urgent).expect(t)
}

// A request is not passed over by an earlier one, nor by one that enters the same batch. A request
// that still waits at the end can have been passed over.
func TestPriorityInversionNeedsOvertaking(t *testing.T) {
	high, low := anomaly.Request{ID: "high", Priority: 5}, anomaly.Request{ID: "low", Priority: 4}
	first, together, left := newStage(), newStage(), newStage()
	for i := range int32(6) {
		first.Enqueued(0, 0, i, &low)
		together.Enqueued(0, 0, i, &high)
		left.Enqueued(0, 0, i, &high)
	}
	for i := range int32(6) {
		first.Enqueued(1, 0, 100+i, &high)
		together.Enqueued(1, 0, 100+i, &low)
	}
	left.Enqueued(1, 0, 100, &low)
	for i := range int32(6) {
		first.Admitted(1000*ms, 0, i, &low)
	}
	for i := range int32(6) {
		first.Admitted(2000*ms, 0, 100+i, &high)
		together.Admitted(1000*ms, 0, 100+i, &low)
	}
	for i := range int32(6) {
		together.Admitted(1000*ms, 0, i, &high)
	}
	left.Admitted(1000*ms, 0, 100, &low)
	for _, s := range []*stage{first, together, left} {
		s.Close(9000 * ms)
	}
	first.expect(t)
	together.expect(t)
	left.expect(t, anomaly.Episode{Type: "priority_inversion", Start: 1000 * ms, End: 9000 * ms, Severity: 6.0 / 7,
		Count: 6, Requests: []string{"high"},
		Text: "6 of 7 requests (85.7 %) had waited 100 ms or more when a later request of lower priority was " +
			"scheduled"})
}

// blocked makes ten requests of input tokens wait for us behind one of 8000, while requests of up to
// room tokens would fit.
func blocked(input, room, us int64) *stage {
	s := newStage()
	long, short := &anomaly.Request{ID: "long", Input: 8000}, &anomaly.Request{Input: input}
	s.Enqueued(0, 1, 99, long)
	s.HeadOfLineBlocked(0, 1, long, room)
	s.Admitted(0, 1, 99, long)
	for i := range int32(10) {
		short.ID = fmt.Sprint("short", i)
		s.Enqueued(0, 1, i, short)
	}
	s.HeadOfLineBlocked(us/2, 1, long, room+1)
	s.HeadOfLineBlocked(us, 1, nil, 0)
	for i := range int32(10) {
		short.ID = fmt.Sprint("short", i)
		s.Admitted(us, 1, i, short)
	}
	s.Close(us)
	return s
}

func TestHOLBlocking(t *testing.T) {
	blocked(1000, 1000, 2000*ms).expect(t, anomaly.Episode{Type: "hol_blocking", Start: 2000 * ms, End: 2000 * ms,
		Severity: 10.0 / 11, Count: 10,
		Requests: names("short", 10), Replica: 1,
		Text: "10 of 11 requests (90.9 %) waited 2 s or more behind one prompt 8 times as long"})
	blocked(1001, 9000, 2000*ms).expect(t)   // not short by comparison
	blocked(1000, 999, 2000*ms).expect(t)    // would not fit either
	blocked(1000, 1000, 2000*ms-1).expect(t) // not long enough
}

// Several long prompts in a row, none of which blocks the queue long enough.
func TestHOLBlockingIsByOne(t *testing.T) {
	s := newStage()
	for i := range int32(12) {
		s.Enqueued(0, 0, i, &anomaly.Request{ID: fmt.Sprint("short", i), Input: 10})
	}
	for k := range int64(6) {
		s.HeadOfLineBlocked(k*1900*ms, 0, &anomaly.Request{ID: fmt.Sprint("long", k), Input: 8000}, 9000)
	}
	for i := range int32(12) {
		s.Admitted(11000*ms, 0, i, &anomaly.Request{})
	}
	s.Close(11000 * ms)
	s.expect(t)
}

func TestPreemptionStorm(t *testing.T) {
	s := newStage()
	for i := range int64(23) {
		s.Admitted(i*ms, 0, int32(i), &anomaly.Request{ID: "in"})
	}
	for i := range int64(9) { // 9 of 32
		s.Preempted(100*ms+i, 0, &anomaly.Request{ID: fmt.Sprint("out", i%3)})
	}
	s.Preempted(200*ms, 1, &anomaly.Request{ID: "elsewhere"})
	s.expect(t)
	s.Preempted(300*ms, 0, &anomaly.Request{ID: "out3"}) // 10 of 33: 30.3 %
	s.expect(t)                                          // the episode is not over
	s.Admitted(60_300*ms, 0, 0, &anomaly.Request{})
	s.expect(t) // a minute later it may still continue
	s.Admitted(60_300*ms+1, 0, 0, &anomaly.Request{})
	s.expect(
		t,
		anomaly.Episode{Type: "preemption_storm", Start: 100 * ms, End: 300 * ms, Severity: 10.0 / 33, Count: 10,
			Requests: names("out", 4),
			Text:     "10 preemptions while 23 requests were scheduled for the first time"},
	)
}

// Two storms are one episode if the occurrences of their bad windows are at most a minute apart.
func TestStormsMerge(t *testing.T) {
	for _, c := range []struct {
		gap  int64
		want int
	}{{60_000 * ms, 1}, {60_000*ms + 1, 2}} {
		s := newStage()
		last := int64(0)
		for k := range int64(2) {
			for range 10 {
				last = k * c.gap
				s.Preempted(last, 0, &anomaly.Request{ID: "out"})
			}
		}
		s.Close(last)
		if len(s.found) != c.want {
			t.Errorf("%d episodes where the storms are %d µs apart, want %d", len(s.found), c.gap, c.want)
		}
		total := int64(0)
		for _, e := range s.found {
			total += e.Count
		}
		if total != 20 {
			t.Errorf("%d preemptions in the episodes, want 20", total)
		}
	}
}

// A window is half open: it excludes samples that are thirty seconds old, unless they are among the
// last 34, of which ten are 30 %.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		step   int64 // between ten preemptions; nine steps are less than 30 s, or more
		others int32 // first admissions between two preemptions
		want   int
	}{{3333 * ms, 0, 1}, {3334 * ms, 0, 1}, {100_000 * ms, 2, 1}, {100_000 * ms, 3, 0}, {3333 * ms, 3, 0},
		{100_000 * ms, 8, 0}} {
		s := newStage()
		for i := range int64(10) {
			s.Preempted(i*c.step, 0, &anomaly.Request{ID: "out"})
			for k := range c.others {
				s.Admitted(i*c.step+1, 0, k, &anomaly.Request{ID: "in"})
			}
		}
		s.Close(60_000 * ms)
		if len(s.found) != c.want {
			t.Errorf("%d episodes of ten preemptions %d µs apart, with %d admissions each, want %d", len(s.found),
				c.step, c.others, c.want)
		}
	}
}

// Twelve preemptions are 30 % of 40 samples, and eleven are less than that of 39.
func TestWindowIsHalfOpen(t *testing.T) {
	for _, c := range []struct {
		step int64
		want int
	}{{2727 * ms, 1}, {2728 * ms, 0}} { // eleven steps are less than 30 s, or more
		s := newStage()
		for i := range int64(12) {
			s.Preempted(i*c.step, 0, &anomaly.Request{ID: "out"})
			for k := range int32(28) {
				if i == 1 {
					s.Admitted(i*c.step, 0, k, &anomaly.Request{ID: "in"})
				}
			}
		}
		s.Close(60_000 * ms)
		if len(s.found) != c.want {
			t.Errorf("%d episodes of twelve preemptions %d µs apart, want %d", len(s.found), c.step, c.want)
		}
	}
}

// At low rates the window holds the last samples however old they are. After a pause an episode
// needs its own occurrences.
func TestSLOViolationAtLowRates(t *testing.T) {
	const step = 100_000 * ms
	s := newStage()
	final := func(at int64, met bool) {
		s.Finished(at, &anomaly.Request{ID: fmt.Sprint(at / step), Class: "slow", HasTargets: true, MetTargets: met})
	}
	for i := range int64(100) {
		final(i*step, i < 30 || i >= 90) // the 20th miss of 40 is number 49: ten have left the window by then
	}
	s.Close(100 * step)
	s.expect(t, anomaly.Episode{Type: "slo_violation", Start: 30 * step, End: 89 * step, Severity: 60.0 / 90, Count: 60,
		Requests: strings.Fields(
			"30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49"), Replica: anomaly.NoReplica,
		Class: "slow",
		Text:  "60 of 90 requests (66.7 %) missed targets of their class"})

	s = newStage()
	for burst := range int64(3) {
		for i := range 20 - burst { // 20 that miss, and then too few after an hour
			final(burst*3_600_000*ms+i*ms, false)
		}
	}
	s.Close(8_000_000 * ms)
	if len(s.found) != 2 || s.found[0].Count != 20 || s.found[1].Count != 37 {
		t.Errorf("of bursts an hour apart there were %+v", s.found)
	}
}

func TestShadowDivergence(t *testing.T) {
	admit := func(n int, expected, cached int64) *stage {
		s := newStage()
		for i := range n {
			s.Admitted(int64(i), 2, int32(i),
				&anomaly.Request{ID: fmt.Sprint("r", i), Expected: expected, Cached: cached})
		}
		s.Close(int64(n))
		return s
	}
	want := anomaly.Episode{Type: "shadow_divergence", Start: 0, End: 24, Severity: 0.6, Count: 25,
		Requests: names("r", 20), Replica: 2,
		Text: "the router mispredicted the cached tokens of 25 requests: 1500 of 2500 tokens (60.0 %) were wrong"}
	admit(25, 100, 40).expect(t, want)
	admit(25, 40, 100).expect(t, want)
	admit(25, 100, 41).expect(t)
	admit(19, 100, 0).expect(t)
	admit(25, 0, 0).expect(t)
}

func TestSLOViolation(t *testing.T) {
	s := newStage()
	for i := range int64(40) {
		for _, class := range []string{"a", "b"} {
			s.Finished(
				i*ms,
				&anomaly.Request{ID: fmt.Sprint(class, i), Class: class, HasTargets: true, MetTargets: i < 20 ||
					class == "b" && i == 20},
			)
		}
		s.Finished(i*ms, &anomaly.Request{ID: "free"})
	}
	s.Close(1)
	s.expect(t, anomaly.Episode{Type: "slo_violation", Start: 20 * ms, End: 39 * ms, Severity: 0.5, Count: 20,
		Requests: strings.Fields("a20 a21 a22 a23 a24 a25 a26 a27 a28 a29 a30 a31 a32 a33 a34 a35 a36 a37 a38 a39"),
		Replica:  anomaly.NoReplica, Class: "a",
		Text: "20 of 40 requests (50.0 %) missed targets of their class"})
}
