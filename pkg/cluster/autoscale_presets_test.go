package cluster

import (
	"encoding/json"
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
		a := read("{preset: " + name + ", actuation: {load: 1s}, interval: 7s}")
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
	want := map[string]any{"signal": "kv_demand", "up": 0.5, "down": 0.1, "step": 1.0, "across": "each", "settle": true}
	a := c.Policies.Autoscale
	if diff := cmp.Diff(want, a.Params); diff != "" || a.Interval != "5s" || a.Limits.Up != nil {
		t.Errorf("dynamo-latency: interval %s, limits %v, parameters\n%s", a.Interval, a.Limits.Up, diff)
	}
}
