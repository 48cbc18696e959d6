package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"blis/pkg/policy"

	"github.com/google/go-cmp/cmp"
)

// TestAutoscalePresets: each preset builds, is the same when it is printed and read again, and gives way to a file.
func TestAutoscalePresets(t *testing.T) {
	for _, name := range policy.AutoscalePresets.Names() {
		read := func(text string) *policy.Autoscale {
			c, err := parse(scaledCluster("max_replicas: 4, ", text), Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return c.Policies.Autoscale
		}
		more := ""
		if name == "dynamo-load" {
			more = ", params: {up: 0.8, down: 0.2}"
		}
		a := read("{preset: " + name + more + ", actuation: {load: 1s}, interval: 7s}")
		if a.Interval != "7s" {
			t.Errorf("%s: the interval is %s", name, a.Interval)
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, read(string(text))); diff != "" {
			t.Errorf("%s is other when read again:\n%s", name, diff)
		}
		b := read("{preset: " + name + ", type: oscillator, actuation: {load: 1s}}")
		if len(b.Params) != 1 || b.Type != "oscillator" {
			t.Errorf("%s: another type has the parameters %v", name, b.Params)
		}
	}
	c, err := parse(scaledCluster("max_replicas: 4, ", "{preset: dynamo-latency, params: {up: 0.5}, "+
		"actuation: {load: 1s}}"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"signal": "kv_demand", "up": 0.5, "down": 0.1, "step": 1.0, "across": "each", "settle": true,
		"cancel_starting": true, "check_removal": true, "inclusive": false}
	a := c.Policies.Autoscale
	if diff := cmp.Diff(want, a.Params); diff != "" || a.Interval != "5s" || a.Limits.Up != nil {
		t.Errorf("dynamo-latency: interval %s, limits %v, parameters\n%s", a.Interval, a.Limits.Up, diff)
	}
	for given, want := range map[string]string{
		"":                                "policies.autoscale.params.down",
		", params: {down: 0.2}":           "policies.autoscale.params.up",
		", params: {up: 0.5, down: null}": "policies.autoscale.params.down",
	} {
		_, err := parse(scaledCluster("max_replicas: 4, ", "{preset: dynamo-load"+given+", actuation: {load: 1s}}"),
			Options{})
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "must be given: the preset dynamo-load has no default") {
			t.Errorf("dynamo-load%s: %v", given, err)
		}
	}
}
