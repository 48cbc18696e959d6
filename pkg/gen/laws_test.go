package gen

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"blis/pkg/stream"

	"pgregory.net/rapid"
)

// clientText is a client of a spec, on one line.
func clientText(id, rest string) string {
	return "  - {id: " + id + ", tenant_id: " + id + ", " + rest + "}\n"
}

func specText(head string, clients ...string) string {
	return "version: \"2\"\nseed: 11\n" + head + "\nclients:\n" + strings.Join(clients, "")
}

const lengthsText = `input_distribution: {type: lognormal, params: {mean: 500, std_dev: 300}}, output_distribution: ` +
	`{type: exponential, params: {mean: 200}}`

var (
	clientA = clientText("a", `rate_fraction: 0.5, arrival: {process: gamma, cv: 3}, `+lengthsText)
	clientB = clientText("b", `rate_fraction: 0.3, arrival: {process: poisson}, `+lengthsText+
		`, prefix_spec: {reuse_probability: 0.6, num_prefix_groups: 9, prefix_length: {type: exponential, params: `+
		`{mean: 100}}}`)
	clientC = clientText("c", `rate_fraction: 0.2, arrival: {process: weibull, cv: 0.5}, `+lengthsText)
)

// ofTenant returns the requests of one tenant, without their ids.
func ofTenant(list []stream.Request, tenant string) []stream.Request {
	var own []stream.Request
	for _, r := range list {
		if r.ID = ""; r.Tenant == tenant {
			own = append(own, r)
		}
	}
	return own
}

// A client's requests do not depend on other clients or their order.
func TestClientsAreIndependent(t *testing.T) {
	const head = "aggregate_rate: 50\nhorizon: 20000000"
	_, alone := requests(t, specText(head, clientA), Options{Spec: "-"})
	_, all := requests(t, specText(head, clientB, clientA, clientC), Options{Spec: "-"})
	_, reordered := requests(t, specText(head, clientC, clientB, clientA), Options{Spec: "-"})
	checkInvariants(t, all)
	for _, tenant := range []string{"a", "b", "c"} {
		if a, b := ofTenant(all, tenant), ofTenant(reordered, tenant); len(a) == 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("client %s: the order of clients changed its %d requests", tenant, len(a))
		}
	}
	if a := ofTenant(all, "a"); !reflect.DeepEqual(a, ofTenant(alone, "a")) || len(all) <= len(a) {
		t.Errorf("%d requests of other clients change those of client a", len(all)-len(a))
	}
}

// A distribution's draws do not affect those of another.
func TestDrawsAreIndependent(t *testing.T) {
	const head = "aggregate_rate: 50\nrequests: 200"
	_, before := requests(t, specText(head, clientB), Options{Spec: "-"})
	for _, change := range []struct{ old, new string }{
		{"type: exponential, params: {mean: 200}", "type: gaussian, params: {mean: 9, std_dev: 3}"},
		{"reuse_probability: 0.6", "reuse_probability: 0"},
		{"process: poisson", "process: constant"},
	} {
		_, after := requests(t, specText(head, strings.Replace(clientB, change.old, change.new, 1)), Options{Spec: "-"})
		for i, r := range before {
			if r.InputTokens != after[i].InputTokens {
				t.Fatalf("%s: the input of %s is %d, was %d", change.new, r.ID, after[i].InputTokens, r.InputTokens)
			}
		}
		if reflect.DeepEqual(before, after) {
			t.Errorf("%s has no effect", change.new)
		}
	}
	// A higher reuse_probability adds prefixes and keeps the existing ones.
	_, more := requests(t, specText(head, strings.Replace(clientB, "0.6", "0.9", 1)), Options{Spec: "-"})
	with, without := 0, 0
	for i, r := range before {
		if len(r.Prompt) == 0 {
			without++
		} else if with++; !reflect.DeepEqual(r.Prompt, more[i].Prompt) {
			t.Errorf("%s has a different prefix at a higher reuse_probability", r.ID)
		}
	}
	if with == 0 || without == 0 {
		t.Errorf("%d requests with a prefix, %d without", with, without)
	}
}

// A longer workload begins with the shorter one; another seed makes a different one.
func TestLongerWorkloadBeginsWithShorter(t *testing.T) {
	_, short := requests(t, "", Options{Scenario: "rag", Requests: 50})
	_, long := requests(t, "", Options{Scenario: "rag", Requests: 120})
	if len(short) != 50 || len(long) != 120 || !reflect.DeepEqual(short, long[:50]) {
		t.Errorf("%d requests are not the first of %d", len(short), len(long))
	}
	seed := uint64(43)
	if _, other := requests(t, "", Options{Scenario: "rag", Requests: 50, Seed: &seed}); reflect.DeepEqual(short,
		other) {
		t.Error("a different seed makes the same requests")
	}
}

// The merged stream is sorted and has as many requests as the clients make separately.
func TestMergeIsSortedAndComplete(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(rt, "clients")
		rate := rapid.Float64Range(0.1, 1e6).Draw(rt, "rate")
		s := &Spec{Version: "2", Seed: rapid.Uint64().Draw(rt, "seed"), AggregateRate: rate,
			Horizon: int64(100e6 / rate)}
		alone := 0
		for i := range n {
			c := Client{ID: fmt.Sprint(i), RateFraction: 1 / float64(n)}
			c.Arrival.Process = rapid.SampledFrom([]string{"poisson", "constant"}).Draw(rt, "process")
			c.InputDistribution.Type, c.InputDistribution.Params = "constant", map[string]float64{"value": 1}
			c.OutputDistribution = c.InputDistribution
			one := *s
			one.Clients = []Client{c}
			alone += len(readAll(rt, &one))
			s.Clients = append(s.Clients, c)
		}
		list := readAll(rt, s)
		if len(list) != alone {
			rt.Fatalf("%d requests, separately the clients make %d", len(list), alone)
		}
		for i, r := range list {
			if i > 0 && r.ArrivalUS < list[i-1].ArrivalUS || int64(r.ArrivalUS) > s.Horizon {
				rt.Fatalf("%s at %d comes after %d, horizon %d", r.ID, r.ArrivalUS, list[max(i-1, 0)].ArrivalUS,
					s.Horizon)
			}
		}
	})
}

func readAll(rt *rapid.T, s *Spec) (list []stream.Request) {
	clients, err := s.clients(func(path, format string,
		args ...any) error {
		return fmt.Errorf(path+": "+format, args...)
	})
	if err != nil {
		rt.Fatal(err)
	}
	m, err := newMerge(s, clients)
	if err != nil {
		rt.Fatal(err)
	}
	var a stream.Arrival
	for m.next(&a) == nil {
		list = append(list, a.Request)
		a.Request.Prompt = nil
	}
	return list
}

// Rates and the shares of tenants and prefixes follow the spec. With n requests a share p has the
// standard deviation √(p(1−p)/n); four of them are allowed.
func TestSharesFollowTheSpec(t *testing.T) {
	const n = 40_000
	spec := specText("aggregate_rate: 50\nrequests: 40000",
		clientText("a", `rate_fraction: 0.7, arrival: {process: poisson}, `+lengthsText+
			`, prefix_spec: {reuse_probability: 0.8, prefix_length: {type: constant, params: {value: 9}}, `+
			`prefix_groups: [{group_id: x, popularity: 3}, {group_id: y}]}`),
		clientText("b", `rate_fraction: 0.3, arrival: {process: poisson}, `+lengthsText))
	_, list := requests(t, spec, Options{Spec: "-"})
	got := map[string]float64{}
	for _, r := range list {
		got[r.Tenant]++
		for _, s := range r.Prompt {
			got[s.ID]++
		}
	}
	// Of a's 0.7, 0.8 have a prefix: 3/4 of those are x, 1/4 y.
	for name, share := range map[string]float64{"a": 0.7, "b": 0.3, "x": 0.7 * 0.8 * 0.75, "y": 0.7 * 0.8 * 0.25} {
		if math.Abs(got[name]/n-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("the share of %s is %g, want %g", name, got[name]/n, share)
		}
	}
	// n Poisson gaps of mean 1/50 s add up to n/50 s with relative deviation 1/√n.
	if last := float64(list[n-1].ArrivalUS) / 1e6; math.Abs(last*50/n-1) > 4/math.Sqrt(n) {
		t.Errorf("%d requests take %g s", n, last)
	}
}

// Groups with the same id are one prefix in all clients, with one length.
func TestGroupsWithSameIDAreSamePrefix(t *testing.T) {
	const prefix = `, prefix_spec: {prefix_groups: [{group_id: g}], prefix_length: {type: exponential, params: ` +
		`{mean: 100}}}`
	const long = `arrival: {process: constant}, input_distribution: {type: constant, params: {value: 100000}}, ` +
		`output_distribution: {type: constant, params: {value: 1}}` + prefix
	_, list := requests(t, specText("aggregate_rate: 2\nrequests: 40", clientText("a", "rate_fraction: 0.5, "+long),
		clientText("b", "rate_fraction: 0.5, "+long)), Options{Spec: "-"})
	for _, r := range list {
		if !reflect.DeepEqual(r.Prompt, list[0].Prompt) {
			t.Errorf("%s of %s has the prompt %v, the first request %v", r.ID, r.Tenant, r.Prompt, list[0].Prompt)
		}
	}
}

// A million requests take no more memory than a few.
func TestMemoryIsConstant(t *testing.T) {
	if testing.Short() {
		t.Skip("a million requests take seconds")
	}
	const bound = 16 << 20
	calls := 0
	o := Options{Scenario: "mixed-slo", Requests: 1_000_000, Plain: true, Progress: func(string) {
		if calls++; calls%200 != 0 {
			return
		}
		var m runtime.MemStats
		runtime.GC()
		if runtime.ReadMemStats(&m); m.HeapAlloc > bound {
			t.Errorf("%d requests: %d bytes in use", calls*progressInterval, m.HeapAlloc)
		}
	}}
	var written byteCounter
	if err := Run(t.Context(), nil, &written, o); err != nil {
		t.Fatal(err)
	}
	if calls < 900 || written < 100_000_000 {
		t.Errorf("%d calls, %d bytes", calls, written)
	}
}

// byteCounter is a writer that counts bytes.
type byteCounter int64

func (c *byteCounter) Write(p []byte) (int, error) {
	*c += byteCounter(len(p))
	return len(p), nil
}
