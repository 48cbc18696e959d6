package summarize

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// session is the line of a session of class critical, which arrives after 1 s and makes up to three calls.
func session(id, state string, offered int) string {
	end := ""
	if state == stream.StateCompleted {
		end = `"completed_us":2500000,`
	}
	return fmt.Sprintf(`{"kind":"session_outcome","id":%q,"state":%q,"step":"1","slo_class":"critical",`+
		`"arrival_us":1000000,%s"calls":3,"offered":%d,"completed":0,"tools":0,"tool_us":0,"critical_us":9}`, id, state,
		end, offered)
}

// TestSessionsUnderOtherTargets: of three sessions, one completes within the targets of the fitness file, one completes
// with a request that misses them, and one breaks.
func TestSessionsUnderOtherTargets(t *testing.T) {
	r := story()
	r.outcomes[0].Session, r.outcomes[1].Session = "good", "late"
	r.more = []string{session("good", stream.StateCompleted, 3), session("late", stream.StateCompleted, 3),
		session("broken", stream.StateBroken, 1)}
	o := options(t, "", "0s", "", "json")
	o.Fitness = &Fitness{src: fileOf(t, "version: 1\nslo: {critical: {ttft_ms: 160}}\nscore: m.goodput.ratio\n")}
	_, raw := document(t, r.data(t), o)
	if raw.Sessions == nil || raw.Sessions.Attainment == nil || *raw.Sessions.Attainment != 1.0/3 {
		t.Errorf("%+v", raw.Sessions)
	}
}

// TestCallsOfBrokenSessions: the two calls that a session did not issue go with the attempt that broke it, not with the
// one before.
func TestCallsOfBrokenSessions(t *testing.T) {
	r := story()
	first := outcome("s/1", "critical", "t1", 1500, 0, 10, 5)
	first.State, first.Reason, first.Session, first.Retried = stream.StateTimedOut, "deadline", "s", true
	last := outcome("s/1/retry1", "critical", "t1", 1600, 0, 10, 5)
	last.State, last.Session, last.RetryOf, last.RetryUS = stream.StateFailed, "s", "s/1", 100_000
	r.outcomes = append(r.outcomes, first, last)
	r.more = []string{session("s", stream.StateBroken, 1)}
	for where, want := range map[string]int64{"state == 'timed_out'": 0, "state == 'failed'": 2} {
		d, raw := document(t, r.data(t), options(t, where, "", "", "json"))
		if raw.Requests.NotIssued != want {
			t.Errorf("%s: %d not issued, want %d", where, raw.Requests.NotIssued, want)
		}
		if all := strings.Join(d.Warnings, "; "); !strings.Contains(all, "so 1 sessions are not counted") {
			t.Errorf("%s: warnings %s", where, all)
		}
	}
}
