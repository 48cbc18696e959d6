package cluster

import (
	"strings"
	"testing"
)

// TestEPLBErrors: what is not possible is an error that names the field. The balancer has no effect where step times do
// not depend on how tokens choose experts.
func TestEPLBErrors(t *testing.T) {
	const experts = "model: Qwen/Qwen3-30B-A3B, gpu: H100, "
	const parallel = "enable_expert_parallel: true, data_parallel_size: 4, "
	for _, c := range []struct{ deployment, want string }{
		{experts + "engine: {" + parallel + "eplb_config: {num_redundant_experts: 4}}",
			"eplb_config: must not be set without enable_eplb"},
		{experts + "engine: {" + parallel + "enable_eplb: true, eplb_config: {num_redundant_experts: -4}}",
			"num_redundant_experts: must be between 0 and"},
		{experts + "engine: {" + parallel + "enable_eplb: true, eplb_config: {num_redundant_experts: 5}}",
			"the model's 128 experts and these can be divided over 4 GPUs, is 5"},
		{experts + "engine: {data_parallel_size: 4, enable_eplb: true}", "enable_eplb: needs enable_expert_parallel"},
		{experts + "engine: {enable_expert_parallel: true, enable_eplb: true}",
			"enable_eplb: needs tensor or data parallelism"},
		{"model: Qwen/Qwen3-8B, gpu: H100, engine: {" + parallel + "enable_eplb: true}",
			"enable_eplb: needs a model with experts"},
	} {
		_, _, err := parseDeployment(c.deployment)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.deployment, err, c.want)
		}
	}
	_, warnings, err := parseDeployment(experts + "latency: {model: roofline}, engine: {" + parallel +
		"enable_eplb: true}")
	if err != nil || !strings.Contains(strings.Join(warnings, "\n"), "engine.enable_eplb has no effect") {
		t.Errorf("roofline: error %v, warnings %q", err, warnings)
	}
}

// TestEPLB: the balancer lowers the imbalance and the time of experts, and redundant experts take memory from the KV
// blocks.
func TestEPLB(t *testing.T) {
	var last *Deployment
	for i, setting := range []string{"", ", enable_eplb: true",
		", enable_eplb: true, eplb_config: {num_redundant_experts: 16}"} {
		d, _, err := parseDeployment("model: Qwen/Qwen3-30B-A3B, gpu: H100, engine: {data_parallel_size: 4, " +
			"enable_expert_parallel: true" + setting + "}")
		if err != nil {
			t.Fatal(err)
		}
		if x := d.Computed.ExpertImbalance; (x != nil) != (i > 0) || x != nil && (x.EPLB < 1 || x.EPLB > 0.8*x.Linear) {
			t.Errorf("%q: imbalance %+v", setting, x)
		}
		us := func(d *Deployment) float64 {
			e := &d.Computed.Operators.Experts
			return e.US[len(e.US)-1]
		}
		switch {
		case i == 1 && us(d) > 0.9*us(last):
			t.Errorf("experts take %g µs with the balancer, %g without", us(d), us(last))
		case i == 1 && d.Computed.KVBlocks != last.Computed.KVBlocks:
			t.Errorf("%d KV blocks with the balancer, %d without", d.Computed.KVBlocks, last.Computed.KVBlocks)
		case i == 2 && d.Computed.KVBlocks >= last.Computed.KVBlocks:
			t.Errorf("%d KV blocks with redundant experts, %d without", d.Computed.KVBlocks, last.Computed.KVBlocks)
		}
		last = d
	}
}
