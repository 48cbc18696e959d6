package sim

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"
)

// lastEstimate runs requests with estimates and returns the TTFT of the last one, estimated and as it was, in ms.
func lastEstimate(t *testing.T, deployment, requests string) (estimated, got float64, o stream.Outcome) {
	t.Helper()
	c, err := cluster.Parse("c", []byte("version: 1\ndeployments:\n  - {id: main, replicas: 1, "+deployment+"}\n"),
		cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Trace: "decisions", Plain: true}
	must(options.Counterfactual.UnmarshalText([]byte("1")))
	var out bytes.Buffer
	must(runLoaded(t.Context(), c, strings.NewReader(requests), &out, options))
	var regret stream.Regret
	outcomes := map[string]stream.Outcome{}
	for r := stream.NewReader(&out); r.Next(); {
		switch r.Kind() {
		case stream.KindRegret:
			regret = stream.Regret{}
			must(r.Decode(&regret))
		case stream.KindOutcome:
			var o stream.Outcome
			must(r.Outcome(&o))
			outcomes[strings.Clone(o.ID)] = o
		}
	}
	o = outcomes[regret.Request]
	return *regret.Alternatives[0].TTFTMS, float64(o.FirstTokenUS-o.ArrivalUS) / 1000, o
}

// TestEstimatesKnowTiers: the estimates of requests that load from tiers are what happens. p, q and r are prompts of 96
// tokens that have been in the cache, of which x has taken all 24 blocks. A load of one takes 126 ms, a promotion 251.
func TestEstimatesKnowTiers(t *testing.T) {
	for _, x := range []struct {
		name, more, last string
		loaded           int64
		within           float64
	}{
		{"nothing is loaded", "", "at=2000000 in=120", 0, 0.001},
		{"a load", "", "p at=2000000 in=120", 96, 0.001},
		{"all tokens are loaded", "", "p at=2000000 in=96", 96, 0.001},
		{"too few blocks", "min_load_blocks: 7", "p at=2000000 in=120", 0, 0.001},
		{"behind another load", "", "q at=2000000 in=120; p at=2000000 in=120", 96, 0.01},
		{"behind two loads", "", "q at=2000000 in=120; r at=2000000 in=120; p at=2000100 in=120", 96, 0.01},
		{"what another one loads", "", "p at=2000000 in=120; p at=2030000 in=120", 0, 0.02},
		{"while others decode", "", "at=1990000 in=20 out=200; p at=2000000 in=120", 96, 0.01},
		{"behind a prompt", "", "at=1999000 in=300; p at=2000000 in=120", 96, 0.02},
		{"a promotion", "storage", "p at=2000000 in=120", 96, 0.001},
		{"behind a promotion", "storage", "q at=2000000 in=120; p at=2000000 in=120", 96, 0.01},
	} {
		links := "load: {latency_us: 50, gb_per_s: 0.1}, store: {latency_us: 50, gb_per_s: 1}}"
		tiers, offload := "{tier: cpu, blocks: 64, "+links, x.more
		if x.more == "storage" {
			offload, tiers = "", "{tier: cpu, blocks: 24, "+links+
				", {tier: storage, blocks: 900, load: {latency_us: 50, gb_per_s: 0.05}, store: {gb_per_s: 5}}"
		}
		var requests strings.Builder
		const first = "p at=0 in=96; q at=100000 in=96; r at=200000 in=96; at=300000 in=382 out=2; "
		for i, line := range strings.Split(first+x.last, "; ") {
			prompt, out := "", 1
			fields := strings.Fields(line)
			if !strings.Contains(fields[0], "=") {
				prompt, fields = fmt.Sprintf(`,"prompt":[{"id":%q,"tokens":96}]`, fields[0]), fields[1:]
			}
			var at, in int
			for _, f := range fields {
				_, _ = fmt.Sscanf(f, "at=%d", &at)
				_, _ = fmt.Sscanf(f, "in=%d", &in)
				_, _ = fmt.Sscanf(f, "out=%d", &out)
			}
			fmt.Fprintf(&requests, `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":%d,"output_tokens":%d`,
				i, at, in, out)
			fmt.Fprintln(&requests, prompt+"}")
		}
		want, got, o := lastEstimate(t, "model: m, engine: {num_gpu_blocks_override: 25, block_size: 16, "+
			"max_model_len: 384, kv_bytes_per_block: 2097152}, latency: {model: linear, alpha_us: [0, 0, 0], "+
			"beta_us: [1000, 10, 100]}, kv_tiers: ["+tiers+"], kv_offload: {"+offload+"}", requests.String())
		if loaded := o.LoadedTokens.Total(); loaded != x.loaded {
			t.Errorf("%s: %d tokens are loaded, want %d", x.name, loaded, x.loaded)
		}
		if math.Abs(want/got-1) > x.within {
			t.Errorf("%s: the estimate is %.3f ms, it takes %.3f", x.name, want, got)
		}
	}
}

// TestEstimatesBehindTransfers: no request waits for the blocks that another one with its prompt gets from a prefill
// replica, whose end is not known. A transfer of all blocks takes a second, and two share the link. With prefix-based
// the replica that decodes computes the second prompt, since the router expects its blocks there.
func TestEstimatesBehindTransfers(t *testing.T) {
	for decider, blocks := range map[string]int64{"always": 6, "prefix-based": 0} {
		testEstimateBehindTransfer(t, decider, blocks)
	}
}

func testEstimateBehindTransfer(t *testing.T, decider string, blocks int64) {
	t.Helper()
	const request = `{"kind":"request","id":"r%d","arrival_us":%d,"input_tokens":96,"output_tokens":2,` +
		`"prompt":[{"id":"p","tokens":90}]}` + "\n"
	estimated, got, o := lastEstimate(t, "model: m, architecture: disaggregated, prefill: {replicas: 1}, "+
		"decider: {type: "+decider+", non_cached_tokens: 80}, "+
		"transfer: {latency_us: 0, in_gb_per_s: 0.0125829, out_gb_per_s: 0.0125829}, "+
		"engine: {num_gpu_blocks_override: 25, block_size: 16, max_model_len: 384, kv_bytes_per_block: 2097152}, "+
		"latency: {model: linear, alpha_us: [0, 0, 0], beta_us: [1000, 10, 100]}, "+
		"kv_tiers: [{tier: cpu, blocks: 64, load: {gb_per_s: 1}, store: {gb_per_s: 1}}]",
		fmt.Sprintf(request, 0, 0)+fmt.Sprintf(request, 1, 500_000))
	if o.TransferBlocks != blocks {
		t.Errorf("%s: %d blocks come from the prefill replica, want %d", decider, o.TransferBlocks, blocks)
	}
	if estimated > 2*got || estimated < got/2 {
		t.Errorf("%s: the estimate is %.1f ms, it takes %.1f", decider, estimated, got)
	}
}

// TestEstimatesKnowContexts: the steps of a long prompt take longer the more of it is computed or cached.
func TestEstimatesKnowContexts(t *testing.T) {
	const prompt = `"output_tokens":1,"prompt":[{"id":"p","tokens":100000}]}` + "\n"
	const first = `{"kind":"request","id":"a","arrival_us":0,"input_tokens":100000,` + prompt
	const later = `{"kind":"request","id":"b","arrival_us":60000000,"input_tokens":100900,` + prompt
	for _, requests := range []string{first, first + later} {
		want, got, _ := lastEstimate(t, "model: meta-llama/Llama-3.1-8B-Instruct, gpu: H200-SXM-141GB", requests)
		if math.Abs(want/got-1) > 0.02 {
			t.Errorf("the estimate is %.1f ms, it takes %.1f:\n%s", want, got, requests)
		}
	}
}
