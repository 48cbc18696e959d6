package gen

import (
	"fmt"
	"strings"
	"testing"

	"blis/pkg/stream"
)

// loopSpec is a spec with one client of single requests and further fields of the spec and the
// client.
func loopSpec(head, fields string) string {
	return "version: \"2\"\nseed: 3\n" + head + "\nclients:\n  - id: a\n" + clientLengths + "    " + fields + "\n"
}

const clientLengths = "    input_distribution: {type: exponential, params: {mean: 300}}\n    output_distribution: " +
	"{type: exponential, params: {mean: 100}}\n"

// The users of a closed loop share its requests. Each sends the next one after the response and the
// think time.
func TestUsersWaitForAnswers(t *testing.T) {
	const users, requests = 8, 100
	list := generateSessions(t, loopSpec("requests: 100\nhorizon: 5000000",
		"closed_loop: {concurrency: 8, think_time: {type: constant, params: {value: 250}}}"), Options{Spec: "-"})
	sum := 0
	for i, s := range list {
		if s.ID != fmt.Sprintf("a/%d", i) || s.ArrivalUS != 0 || s.UntilUS != 5_000_000 {
			t.Errorf("%+v", s)
		}
		sum += len(s.Steps)
		if n := len(s.Steps); n != requests/users && n != requests/users+1 {
			t.Errorf("user %d sends %d requests of %d", i, n, requests)
		}
		for k := range s.Steps {
			step := &s.Steps[k]
			if k == 0 && (len(step.After) != 0 || step.DelayUS != 0) || k > 0 &&
				(len(step.After) != 1 || step.After[0] != stream.Index(k-1) || step.DelayUS != 250) {
				t.Errorf("%+v", step)
			}
		}
	}
	if len(list) != users || sum != requests {
		t.Errorf("%d users send %d requests", len(list), sum)
	}
}

// Users may start one after the other, and every user sends at least one request.
func TestUsersStartByArrivalProcess(t *testing.T) {
	spaced := generateSessions(t, loopSpec("requests: 30\naggregate_rate: 2",
		"rate_fraction: 0.5\n    arrival: {process: constant}\n    closed_loop: {concurrency: 3}"), Options{Spec: "-"})
	for i, s := range spaced {
		if int64(s.ArrivalUS) != int64(i+1)*1_000_000 || len(s.Steps) != 5 || s.Steps[1].DelayUS != 0 ||
			s.UntilUS != stream.Never {
			t.Errorf("user %d: %+v", i, s)
		}
	}
	if few := generateSessions(t, loopSpec("requests: 3", "closed_loop: {concurrency: 8}"),
		Options{Spec: "-"}); len(spaced) != 3 || len(few) != 3 {
		t.Errorf("%d users, and %d for three requests", len(spaced), len(few))
	}
}

// A closed loop per tenant equals one of each client.
func TestTenantLoops(t *testing.T) {
	const each = "closed_loop: {concurrency: 2, think_time: {type: constant, params: {value: 9}}}"
	const all = "correlations: {closed_loop: {enabled: true, concurrency_per_tenant: 2, think_time: {type: constant, " +
		"params: {value: 9}}}}"
	one, _ := generate(loopSpec("requests: 10", each), Options{Spec: "-"})
	other, _ := generate(loopSpec("requests: 10\n"+all, "model: \"\""), Options{Spec: "-"})
	// The headers differ, as the specs do.
	if _, sessions, _ := strings.Cut(one, "\n"); sessions == "" ||
		!strings.Contains(other, strings.Split(sessions, "\n")[0]) ||
		!strings.Contains(other, strings.Split(sessions, "\n")[1]) {
		t.Errorf("%s\n%s", one, other)
	}
	off := strings.Replace(all, "true", "false", 1)
	_, single := requests(t, loopSpec("requests: 10\naggregate_rate: 1\n"+off,
		"rate_fraction: 1\n    arrival: {process: poisson}"), Options{Spec: "-"})
	if len(single) != 10 {
		t.Errorf("%d single requests without the loop", len(single))
	}
}

func TestInvalidClosedLoops(t *testing.T) {
	const loop = "closed_loop: {concurrency: 4}"
	second := "\n  - {id: b, tenant_id: t, input_distribution: {type: constant, params: {value: 1}}, " +
		"output_distribution: {type: constant, params: {value: 1}}}"
	tenants := "requests: 9\ncorrelations: {closed_loop: {enabled: true, concurrency_per_tenant: 2}}"
	for _, c := range []struct{ head, fields, want string }{
		{"horizon: 9", loop, `requests is not in the file: must be given for the closed loop of client "a": the ` +
			`simulation decides how many fit into the horizon`},
		{"requests: 9", "closed_loop: {concurrency: 0}",
			`clients[0].closed_loop.concurrency: must be between 1 and 1048576, is 0`},
		{"requests: 9", "closed_loop: {concurrency: 4, think_time: {type: constant, params: {value: -1}}}",
			`clients[0].closed_loop.think_time.params.value: must be between 0`},
		{"requests: 50000", loop, `stdin:3:11: requests: are 12500 for each of the 4 users of client "a", more than ` +
			`10000; use fewer requests or more users`},
		{"requests: 9", loop + "\n    load_profile: {type: constant}",
			`clients[0].load_profile: needs an arrival process; without one all users begin at 0`},
		{"requests: 9", loop + "\n    rate_fraction: 2",
			`clients[0].rate_fraction: must be above 0 and at most 1, is 2`},
		{"requests: 9\naggregate_rate: 3", loop + "\n    arrival: {process: poisson}",
			`clients[0].rate_fraction is not in the file: must be above 0`},
		{"requests: 9", loop + "\n    " + "rate_fraction: 0.5\n    arrival: {process: poisson}",
			`aggregate_rate is not in the file: must be above 0`},
		{"requests: 9", loop + "\n    behavior: {type: bursty}",
			`clients[0].behavior: cannot be combined with a closed loop: its users wait for each response`},
		{"requests: 9", loop + "\n    multi_turn: {avg_turns: 2}",
			`clients[0].closed_loop: cannot be combined with multi_turn`},
		{strings.Replace(tenants, ": 2", ": 0", 1), "tenant_id: t",
			`correlations.closed_loop.concurrency_per_tenant: must be between 1 and 1048576, is 0`},
		{tenants, "tenant_id: t" + second, `correlations.closed_loop.concurrency_per_tenant: tenant "t" has ` +
			`several clients`},
		{tenants, "multi_turn: {avg_turns: 2}", `correlations.closed_loop: is only for single requests, but client ` +
			`"a" has multi_turn`},
		{strings.Replace(tenants, "enabled", "enable", 1), "tenant_id: t",
			`unknown field "enable"; did you mean "enabled"?`},
	} {
		checkRejected(t, loopSpec(c.head, c.fields), c.want)
	}
}
