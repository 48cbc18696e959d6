package gen

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// Rates follow the product of the profiles of spec and client; lengths stay unchanged.
func TestLoadProfiles(t *testing.T) {
	const head = "aggregate_rate: 100\nhorizon: 300000000"
	client := func(profile string) string {
		return clientText("a", `rate_fraction: 1, arrival: {process: poisson}, `+profile+lengthsText)
	}
	const ofSpec = "\nload_profile: {type: step, segments: [{start_time: 100000000, end_time: 200000000, " +
		"multiplier: 3}]}"
	const ofClient = "load_profile: {type: step, segments: [{start_time: 150000000, multiplier: 0.5}]}, "
	_, plain := requests(t, specText(head, client("")), Options{Spec: "-"})
	_, list := requests(t, specText(head+ofSpec, client(ofClient)), Options{Spec: "-"})
	checkInvariants(t, list)
	counts := map[int]float64{}
	for i, r := range list {
		counts[int(r.ArrivalUS/50e6)]++
		if i < len(plain) && (r.InputTokens != plain[i].InputTokens || r.OutputTokens != plain[i].OutputTokens) {
			t.Fatalf("the profiles change the lengths of %s", r.ID)
		}
	}
	for i, multiplier := range []float64{1, 1, 3, 1.5, 0.5, 0.5} {
		want := 5000 * multiplier
		if math.Abs(counts[i]-want) > 4*math.Sqrt(want) {
			t.Errorf("%g arrivals in part %d, want %g", counts[i], i, want)
		}
	}
	// A profile of one client does not affect other clients.
	_, before := requests(t, specText(head, client(""), clientB), Options{Spec: "-"})
	_, after := requests(t, specText(head, client(ofClient), clientB), Options{Spec: "-"})
	if !reflect.DeepEqual(ofTenant(before, "b"), ofTenant(after, "b")) {
		t.Error("the profile of a changes the requests of b")
	}
}

func TestInvalidLoadProfiles(t *testing.T) {
	spec := func(ofSpec, ofClient string) string {
		return specText("aggregate_rate: 1\nrequests: 1\nload_profile: "+ofSpec,
			clientText("a", "rate_fraction: 1, arrival: {process: poisson}, load_profile: "+ofClient+", "+lengthsText))
	}
	const good = "{type: step, segments: [{multiplier: 2}]}"
	for _, c := range []struct{ ofSpec, ofClient, want string }{
		{"{type: stap, segments: [{multiplier: 2}]}", good,
			`stdin:5:22: load_profile.type: unknown load profile "stap"; did you mean "step"?`},
		{"{type: step, segments: [{multiplier: -2}]}", good,
			"stdin:5:52: load_profile.segments[0].multiplier: must be between 0 and 1e+06, is -2"},
		{good, "{type: ramp, segments: [{multiplier: 2}]}",
			"clients[0].load_profile.segments[0].end_time is not in the file: must be given for ramp"},
		{good, "{type: diurnal, amplitud: 2}", `unknown field "amplitud"; did you mean "amplitude"?`},
	} {
		if _, err := generate(spec(c.ofSpec, c.ofClient), Options{Spec: "-"}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s and %s: %v; want %s", c.ofSpec, c.ofClient, err, c.want)
		}
	}
	trace := strings.Replace(spec(good, good), "process: poisson", "process: trace, file: times_test.go", 1)
	if _, err := generate(trace, Options{Spec: "-"}); err == nil ||
		!strings.Contains(err.Error(), `times_test.go:1: must be a time in seconds`) {
		t.Error(err)
	}
}
