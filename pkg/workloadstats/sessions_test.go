package workloadstats

import (
	"testing"

	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// agent is a session of two model calls with a search and two parallel calls in between:
//
//	0: plan (96 tokens) ─ 1: search 0.5 s ─ 2, 3: read, after 1 s ─ 4: answer
func agent(id string, arrival stream.Micros) *stream.Session {
	return &stream.Session{ID: id, ArrivalUS: arrival, UntilUS: stream.Never, Workflow: "agent", Tenant: "t",
		Model: "m", Steps: []stream.SessionStep{
			{ID: "plan", InputTokens: 96, OutputTokens: 17, Extends: stream.NoIndex,
				Prompt: []stream.Segment{{ID: "system", Tokens: 64}, {ID: id + "/user", Tokens: 32}}},
			{ID: "search", After: []stream.Index{0}, Tool: "search", LatencyUS: 500_000, OutputTokens: 50},
			{ID: "read.0", After: []stream.Index{1}, DelayUS: 1_000_000, InputTokens: 160, OutputTokens: 5, Extends: 0,
				Prompt: []stream.Segment{{ID: id + "/plan.out", Tokens: 16}}},
			{ID: "read.1", After: []stream.Index{1}, Model: "other", InputTokens: 160, OutputTokens: 5, Extends: 0,
				Prompt: []stream.Segment{{ID: id + "/plan.out", Tokens: 16}}},
			{ID: "answer", After: []stream.Index{2, 3}, InputTokens: 200, OutputTokens: 10, Extends: stream.NoIndex},
		}}
}

func TestSessions(t *testing.T) {
	d := New()
	for i, id := range []string{"s0", "s1"} {
		d.Add(&stream.Arrival{IsSession: true, Session: *agent(id, stream.Micros(i)*2_000_000)})
	}
	got := d.Description()
	if got.Arrivals != 2 || got.Sessions != 2 || got.Requests != 0 || got.Calls != 8 || got.Input.Count != 8 {
		t.Errorf("%+v", got)
	}
	same := func(n float64) *Distribution {
		return &Distribution{Count: 2, Mean: n, P50: n, P90: n, P95: n, P99: n, Max: n}
	}
	// Of the 616 prompt tokens of a session, each of the two read calls has 96 + 16 from before:
	// seven blocks.
	own := 224. / 616
	want := &Sessions{Workflows: map[string]int64{"agent": 2}, Calls: same(4), Tools: same(1), Depth: same(4),
		FanOut: same(2),
		ThinkS: same(1), ToolS: same(0.5), SessionHit: &own, SessionHitMedian: &own}
	if diff := cmp.Diff(want, got.Session); diff != "" {
		t.Error(diff)
	}
	// The second session also hits the system prompt.
	if p := got.Prefix; !approxEqual(&p.Hit, (224+224+64)/1232.) || !approxEqual(&p.BlockHit, (224+224+64)/1232.) {
		t.Errorf("%+v", p)
	}
	if got.Model["m"].Calls != 6 || got.Model["m"].Arrivals != 2 || got.Model["other"].Calls != 2 ||
		got.Model["other"].Arrivals != 0 || got.Tenant["t"].Calls != 8 {
		t.Errorf("models %+v, tenants %+v", got.Model, got.Tenant)
	}
	// The last session arrives at 2 s; each lasts 1.5 s.
	if us := d.OfferedUS(); us != 2_000_000 {
		t.Errorf("offered within %d µs", us)
	}
	var calls []Call
	for c := range d.Calls {
		calls = append(calls, c)
	}
	wantCalls := []Call{{"m", 96, 17, 0}, {"m", 160, 5, 112}, {"other", 160, 5, 112}, {"m", 200, 10, 0},
		{"m", 96, 17, 64}, {"m", 160, 5, 112}, {"other", 160, 5, 112}, {"m", 200, 10, 0}}
	if diff := cmp.Diff(wantCalls, calls); diff != "" {
		t.Error(diff)
	}
}

// Steps that would begin after the session's end are not offered.
func TestStepsAfterSessionEndAreExcluded(t *testing.T) {
	s := agent("s", 1_000_000)
	s.UntilUS = 1_800_000
	d := New()
	d.Add(&stream.Arrival{IsSession: true, Session: *s})
	if us := d.OfferedUS(); us != 800_000 {
		t.Errorf("offered within %d µs", us)
	}
}

// Requests that name a session have a history per session.
func TestConversations(t *testing.T) {
	d := New()
	add := func(at stream.Micros, session string, prompt ...stream.Segment) {
		a := request(at, 64, 2, prompt...)
		a.Request.Session = session
		d.Add(a)
	}
	add(0, "x", stream.Segment{ID: "system", Tokens: 32})
	add(1, "y", stream.Segment{ID: "system", Tokens: 48})
	add(2, "x", stream.Segment{ID: "system", Tokens: 48})
	d.Add(request(3, 64, 2))
	s := d.Description().Session
	if s.Turns.Count != 2 || s.Turns.Max != 2 || s.Turns.Mean != 1.5 || !approxEqual(s.TurnsSessionHit, 32/192.) ||
		s.Calls != nil || s.SessionHit != nil {
		t.Errorf("%+v", s)
	}
	if p := d.Description().Prefix; !approxEqual(&p.Hit, (32+48)/256.) {
		t.Errorf("%+v", p)
	}
}
