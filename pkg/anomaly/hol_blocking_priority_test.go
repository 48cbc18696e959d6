package anomaly_test

import (
	"fmt"
	"testing"

	"blis/pkg/anomaly"
)

// overtake runs n pairs on replica 2: a low request is enqueued at lowAt and scheduled at 1 s, a high one is
// enqueued at highAt and scheduled at 5 s. The low ones leave at lowEnd, in the given state.
func overtake(n int32, lowAt, highAt, lowEnd int64, completed bool, high, low anomaly.Request) *stage {
	s := newStage()
	named := func(r anomaly.Request, prefix string, i int32) *anomaly.Request {
		r.ID = fmt.Sprint(prefix, i)
		return &r
	}
	enqueue := func(at int64, prefix string, r anomaly.Request, first int32) {
		for i := range n {
			s.Enqueued(at, 2, first+i, named(r, prefix, i))
		}
	}
	early := func() { enqueue(lowAt, "low", low, 0) }
	if lowAt <= highAt {
		early()
	}
	if highAt < 1000*ms {
		enqueue(highAt, "high", high, n)
	}
	if lowAt > highAt {
		early()
	}
	for i := range n {
		s.Admitted(1000*ms, 2, i, named(low, "low", i))
	}
	if highAt >= 1000*ms {
		enqueue(highAt, "high", high, n)
	}
	for i := range n {
		r := named(low, "low", i)
		r.Completed = completed
		s.detect(&anomaly.Event{Kind: anomaly.Finished, At: lowEnd, Replica: 2, Tag: i, Request: r})
	}
	for i := range n {
		s.Admitted(5000*ms, 2, n+i, named(high, "high", i))
	}
	s.Close(9000 * ms)
	return s
}

func TestHOLBlockingPriority(t *testing.T) {
	want := anomaly.Episode{Type: "hol_blocking_priority", Start: 4000 * ms, End: 5000 * ms, Severity: 0.5, Count: 10,
		Requests: names("high", 10), Replica: 2,
		Text: "10 of 20 requests (50.0 %) waited while a request of lower priority from the same queue completed"}
	urgent, calm := anomaly.Request{Priority: 5}, anomaly.Request{Priority: 4}
	// First come, first served: the low ones are ahead. This is no inversion.
	overtake(10, 0, 500*ms, 4000*ms, true, urgent, calm).expect(t, want)
	byClass := want
	byClass.Text = "10 of 20 requests (50.0 %) waited while a request of a lower SLO class, but not of a lower " +
		"priority, from the same queue completed"
	overtake(10, 0, 500*ms, 4000*ms, true, anomaly.Request{ClassPriority: 9}, anomaly.Request{}).expect(t, byClass)

	for name, s := range map[string]*stage{
		"too few":                             overtake(9, 0, 500*ms, 4000*ms, true, urgent, calm),
		"equal priorities":                    overtake(10, 0, 500*ms, 4000*ms, true, calm, calm),
		"lower ones wait":                     overtake(10, 0, 500*ms, 4000*ms, true, calm, urgent),
		"they ran before it was enqueued":     overtake(10, 0, 1000*ms, 4000*ms, true, urgent, calm),
		"they complete at its schedule":       overtake(10, 0, 500*ms, 5000*ms, true, urgent, calm),
		"they time out":                       overtake(10, 0, 500*ms, 4000*ms, false, urgent, calm),
		"requests without a queue (rejected)": rejected(10),
	} {
		if len(s.found) > 0 {
			t.Errorf("%s: %+v", name, s.found)
		}
	}
	// Later ones that are served first are an inversion too.
	s := overtake(10, 600*ms, 500*ms, 4000*ms, true, urgent, calm)
	if len(s.found) != 2 || s.found[0].Type != "priority_inversion" || s.found[1].Type != "hol_blocking_priority" {
		t.Errorf("found %+v", s.found)
	}
}

// rejected finishes requests that were never in a queue.
func rejected(n int32) *stage {
	s := newStage()
	for i := range n {
		r := anomaly.Request{ID: "r"}
		s.detect(&anomaly.Event{Kind: anomaly.Finished, At: 10, Replica: -1, Tag: i, Request: &r})
	}
	s.Close(20)
	return s
}
