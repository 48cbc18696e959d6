package policy

import "testing"

// TestTraffic: rates and latencies are of the last minute, attainment of the last window, loads of intervals.
func TestTraffic(t *testing.T) {
	const s = 1_000_000
	x := NewTraffic(100 * s)
	for at := int64(0); at < 120; at++ { // a request a second, two a second from 60 s on
		x.Arrive(at * s)
		if at >= 60 {
			x.Arrive(at*s + s/2)
		}
		if at%30 == 29 {
			x.Look((at + 1) * s)
		}
		x.End(&Ended{AtUS: at * s, Class: []string{"a", "b"}[at%2], HasTargets: true, MetTargets: at >= 90,
			TTFTUS: at * 1000, E2EUS: at*2000 - 200_000})
	}
	now := int64(120 * s)
	check := func(what string, got, want float64) {
		t.Helper()
		if got != want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	check("the rate", x.rate(now), 119.0/60) // 60 s itself is not in the last minute
	check("the rate after 30 s", NewTraffic(0).rate(30*s), 0)
	for i, want := range []float64{2, 2, 1, 1, 0} { // the request at 30 s belongs to the interval after
		check("a load", x.load(i), want)
	}
	share, n := x.attainment("", now, 60*s) // 61 to 119 s
	check("the attainment", share, 30.0/59)
	check("its requests", float64(n), 59)
	share, n = x.attainment("b", now, 100*s) // 21 to 119 s, the odd ones
	check("the attainment of b", share, 15.0/50)
	check("its requests", float64(n), 50)
	share, n = x.attainment("c", now, 60*s)
	check("the attainment of none", share, 1)
	check("its requests", float64(n), 0)
	check("E2E", x.meanE2E(now), (2*109.5-200)/1) // of 100 to 119 s
	check("TTFT", x.ttft(0.99, now), 119)
	check("the median of TTFT", x.ttft(0.5, now), 90)
	if len(x.arrivals) > 400 || len(x.ended) > 250 {
		t.Errorf("%d arrivals and %d ends are kept", len(x.arrivals), len(x.ended))
	}
	c := x.Clone()
	c.Arrive(now)
	check("the rate of the original", x.rate(now), 119.0/60)
}
