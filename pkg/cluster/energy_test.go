package cluster

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEnergy: a deployment whose GPU has a measured power has it with its source, also from a run where hardware files
// are unknown. Pools have their own.
func TestEnergy(t *testing.T) {
	const text = "version: 1\nenergy: {carbon_g_per_kwh: 380}\ndeployments: [{id: a, model: meta-llama/Llama-3.1-8B, " +
		"architecture: disaggregated, gpu: H100, prefill: {gpu: B200}}]"
	c, err := Parse("x", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	decode, prefill := c.Pools()[0].Computed.Power, c.Pools()[1].Computed.Power
	if decode == nil || prefill == nil || decode.IdleW != 116 || prefill.IdleW != 194 ||
		!strings.Contains(decode.Source, "ML.ENERGY") || decode.Replica.Work.Layers != 32 ||
		decode.Replica.Machine.FLOPS != 989e12 || prefill.Replica.Machine.FLOPS != 2250e12 {
		t.Fatalf("%+v\n%+v", decode, prefill)
	}
	printed, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore("x", printed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode, again.Pools()[0].Computed.Power); diff != "" || *again.Energy.CarbonGPerKWh != 380 {
		t.Errorf("restored: %+v\n%s", again.Energy, diff)
	}
	for _, change := range []struct{ old, new, want string }{
		{`"idle_w":116`, `"idle_w":-1`, "computed.power.idle_w: must be between 0.001 and"},
		{`"decode_w":463`, `"decode_w":1e9`, "computed.power.decode_w: must be between 116 and"},
		{`"power":{`, `"power":{"tdp_w":9,`, "computed: json: unknown field"},
		{`"carbon_g_per_kwh":380`, `"carbon_g_per_kwh":-1`, "energy.carbon_g_per_kwh: must be between 0 and"},
	} {
		damaged := strings.Replace(string(printed), change.old, change.new, 1)
		if _, err := Restore("x", []byte(damaged)); err == nil || !strings.Contains(err.Error(), change.want) {
			t.Errorf("%s: error %v, want %q", change.new, err, change.want)
		}
	}
}

// TestUnknownEnergy: an unknown power or model is a warning; without the switch nothing is computed.
func TestUnknownEnergy(t *testing.T) {
	for _, c := range []struct{ energy, deployment, want string }{
		{"energy: {}", "gpu: A100", "the power of A100-SXM-80GB is in no hardware file; --hardware FILE adds one"},
		{"energy: {}", "latency: {alpha_us: [0, 0, 0], beta_us: [1, 1, 1]}, engine: {num_gpu_blocks_override: 99}",
			"the energy is unknown, and the metrics have none: no gpu is set"},
		{"energy: {}", "gpu: H100", ""},
		{"", "gpu: H100", ""},
		{"energy: {carbon_g_per_kwh: 1e6}", "gpu: H100",
			"x:2:28: energy.carbon_g_per_kwh: must be between 0 and 100000"},
		{"energy: {carbon: 1}", "gpu: H100", `unknown field "carbon"; did you mean "carbon_g_per_kwh"?`},
	} {
		text := "version: 1\n" + c.energy + "\ndeployments: [{id: a, model: meta-llama/Llama-3.1-8B, " +
			c.deployment + "}]"
		var said []string
		config, err := Parse("x", []byte(text), Options{Warn: func(w string) { said = append(said, w) }})
		if err != nil {
			said = append(said, err.Error())
		}
		got := strings.Join(said, "\n")
		if c.want == "" && strings.Contains(got, "energy") || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: says %q, want %q", c.energy, c.deployment, got, c.want)
		}
		if err == nil && (config.Deployments[0].Computed.Power != nil) != (c.energy != "" && c.want == "") {
			t.Errorf("%s %s: power %+v", c.energy, c.deployment, config.Deployments[0].Computed.Power)
		}
	}
}
