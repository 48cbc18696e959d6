package attribution

import (
	"fmt"
	"math"
	"testing"

	"blis/pkg/stream"
)

// Two deployments have two replicas each. Replicas decode with 8 ms and 0.5 ms for each request in the batch. Those of
// b take some times as long, with more requests than a ever has: where both are as slow, each is as fast as its only
// peer with as many requests.
func TestDeploymentsAreComparedWithOtherHardware(t *testing.T) {
	for _, c := range []struct {
		gpu, model  string     // of b
		slow        [2]float64 // replicas of b
		want        [2]float64
		first, last string // what is slow, by the requests of both
	}{
		{"L4", "m", [2]float64{3, 3}, [2]float64{3, 3}, "deployment b", "deployment b"},
		{"H100", "m", [2]float64{3, 3}, [2]float64{1, 1}, "", ""}, // nothing says that b should be slower
		{"L4", "other", [2]float64{3, 3}, [2]float64{1, 1}, "", ""},
		{"L4", "m", [2]float64{1, 4}, [2]float64{0.25, 4}, "", "b/1"},
		{"L4", "m", [2]float64{2, 12}, [2]float64{2, 6}, "deployment b", "b/1"},
	} {
		h := header(2)
		deployment := func(id, model, gpu string) any {
			return map[string]any{"id": id, "model": model, "gpu": gpu, "replicas": 2}
		}
		h.Run.Config.(map[string]any)["deployments"] = []any{deployment("a", "m", "H100"),
			deployment("b", c.model, c.gpu)}
		a := New(h)
		for i := range 160 {
			o, running, times := served(string(rune(0x100+i)), stream.Index(i%2), int64(i), 0), float64(2+i/4%7), 1.0
			o.Deployment = "a"
			if i/2%2 == 1 {
				o.Deployment, running, times = "b", 64+running, c.slow[i%2]
			}
			tpot := times * (8 + 0.5*running)
			o.OutputTokens, o.CompletedUS = 101, o.FirstTokenUS+stream.Micros(math.Round(tpot*100*1000))
			a.Outcome(&o, false)
			a.derive()
			a.requests.at(i).contention.concurrent = running
		}
		a.derive()
		a.measureSpeeds()
		want, names := []float64{1, 1, c.want[0], c.want[1]}, []string{"", "", c.first, c.last}
		for n, r := range a.requests.list()[:4] {
			name := ""
			if slowReplica.holds(a, r) {
				name = slowReplica.valueName(a, slowReplica.value(a, r))
			}
			slower := a.stats.speeds.slower[n]
			if name != "" {
				slower = r.evidence.slower
			}
			if math.Abs(slower-want[n]) > 0.1 || name != names[n] {
				t.Errorf("%v: replica %d is %g times as slow, want %g; %q, want %q", c, n, slower, want[n], name,
					names[n])
			}
		}
	}
}

// A failure makes a replica four times as slow from 10 to 20 s. A request for which it lost 26 % of its time there took
// 1.35 times as long.
func TestSlowByFailure(t *testing.T) {
	for _, c := range []struct {
		replica         stream.Index
		fromMS, untilMS int64
		want            bool
	}{
		{0, 11_000, 12_000, true},
		{1, 11_000, 12_000, false},   // another replica
		{0, 1_000, 9_000, false},     // before
		{0, 21_000, 29_000, false},   // after
		{0, 19_000, 21_700, true},    // 0.75 of 1000 ms are 28 % of 2700 ms
		{0, 19_000, 22_300, false},   // 23 % of 3300 ms
		{0, 5_000, 30_000, true},     // 7500 of 25000 ms
		{0, 0, 40_000, false},        // 7500 of 40000 ms
		{0, 9_000, 9_000 + 1, false}, // hardly there
	} {
		a := New(header(2))
		a.Anomaly(&stream.Anomaly{Type: "replica_slow", Deployment: "main", Replica: 0, StartUS: 10_000_000,
			EndUS: 20_000_000, Severity: 0.75})
		a.Anomaly(&stream.Anomaly{Type: "slo_violation", SLOClass: "fast", StartUS: 0, EndUS: 90_000_000, Severity: 1})
		o := served("r", c.replica, c.fromMS, 0)
		o.CompletedUS = stream.Micros(1000 * c.untilMS)
		a.Outcome(&o, false)
		a.derive()
		a.measureSpeeds()
		r := a.requests.at(0)
		got := slowReplica.holds(a, r)
		if got != c.want || got && fmt.Sprint(r.evidence.slower, a.slowUnit(r)) != "4 0" {
			t.Errorf("%v: %t, %g times as slow", c, got, r.evidence.slower)
		}
	}
}
