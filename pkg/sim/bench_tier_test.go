package sim

import "testing"

// BenchmarkTier simulates the workload of BenchmarkSim/100k-16 without and with a KV tier in the hosts' memory. Their
// ratio is the cost of the tier.
func BenchmarkTier(b *testing.B) {
	workload := benchWorkload(1e5, 16*22)
	const latency = "{model: linear, alpha_us: [2000, 0, 30], beta_us: [12200, 35, 14]}"
	const tier = latency + `
    kv_tiers: [{tier: cpu, gib: 64, load: {latency_us: 50, gb_per_s: 25}, store: {latency_us: 50, gb_per_s: 25}}]`
	for _, of := range []struct{ name, latency string }{{"none", latency}, {"cpu", tier}} {
		file := benchFile(b, 16, "{type: least-loaded}", of.latency)
		b.Run(of.name, func(b *testing.B) { benchRun(b, file, workload, 1e5) })
	}
}

// BenchmarkPools simulates the workload of BenchmarkSim/100k-16 with 16 replicas, and with 10 of them behind a prefill
// pool of 6 that computes all prompts. Their ratio is the cost of disaggregation.
func BenchmarkPools(b *testing.B) {
	workload := benchWorkload(1e5, 16*22)
	const latency = "{model: linear, alpha_us: [2000, 0, 30], beta_us: [12200, 35, 14]}"
	const pools = latency + `
    architecture: disaggregated
    prefill: {replicas: 6}
    decider: {type: always}`
	for _, of := range []struct {
		name, latency string
		replicas      int
	}{{"none", latency, 16}, {"disaggregated", pools, 10}} {
		file := benchFile(b, of.replicas, "{type: least-loaded}", of.latency)
		b.Run(of.name, func(b *testing.B) { benchRun(b, file, workload, 1e5) })
	}
}
