package sim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// twoModels has a small and a large deployment of model m, in that order, and one of model n. Steps
// take 100 µs and no request waits.
const twoModels = `version: 1
deployments:
  - {id: small, model: m, replicas: 1, engine: {num_gpu_blocks_override: 5, max_model_len: 100},
     latency: &l {model: linear, alpha_us: [0, 0, 0], beta_us: [100, 0, 0]}}
  - {id: large, model: m, replicas: 2, engine: {num_gpu_blocks_override: 100, max_model_len: 1000}, latency: *l}
  - {id: other, model: n, replicas: 1, engine: {num_gpu_blocks_override: 5}, latency: *l}
policies: {routing: {type: round-robin}}
`

// TestModels: a request goes to those deployments of its model that can hold it; without a model
// name the first model is meant; and an infeasible request is rejected with the reason of the
// model's first deployment.
func TestModels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	must(os.WriteFile(file, []byte(twoModels), 0o666))
	c, err := cluster.Load(file, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var in strings.Builder
	for i, q := range []struct {
		model         string
		input, output int
	}{
		{"m", 10, 1}, {"m", 10, 1}, {"", 10, 1}, {"m", 10, 1}, // in turn over all three
		{"n", 10, 1},                 // its own turn
		{"m", 200, 1}, {"m", 200, 1}, // 13 blocks: only the large ones
		{"x", 10, 1},
		{"m", 2000, 1}, // too long for both models
		{"n", 80, 1},   // five blocks of four
		{"m", 64, 1},   // 64 slots fill the four blocks of the small one
	} {
		fmt.Fprintf(&in,
			`{"kind":"request","id":"%d","arrival_us":%d,"model":%q,"input_tokens":%d,"output_tokens":%d}`+"\n", i,
			i*1000, q.model, q.input, q.output)
	}
	var out bytes.Buffer
	text := strings.ReplaceAll(in.String(), `"model":"",`, "")
	if err := runCluster(context.Background(), c, mustSpecs(c), strings.NewReader(text), &out,
		Options{Trace: "decisions", Check: true}); err != nil {
		t.Fatal(err)
	}
	got := make([]string, 11)
	for _, o := range readOutcomes(t, out.Bytes()) {
		var i int
		fmt.Sscan(o.ID, &i)
		got[i] = o.Reason
		if o.State == stream.StateCompleted {
			got[i] = fmt.Sprintf("%s/%d %s", o.Deployment, o.Replica, o.Model)
		}
	}
	// Of the candidates, the one whose turn is longest ago: 0, 1, 2, 0; then 1, 2 of two; then 0.
	want := []string{"small/0 m", "large/0 m", "large/1 m", "small/0 m", "other/0 n", "large/0 m", "large/1 m",
		"no_deployment", "too_long_for_model", "too_long_for_cache", "small/0 m"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d: %s, want %s", i, got[i], want[i])
		}
	}
}

// TestDataParallel: two engine cores run two requests at once, each within its own core's budget and
// batch slots, and hold the blocks of two cores.
func TestDataParallel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	must(os.WriteFile(file, []byte(`version: 1
deployments:
  - {id: d, model: m, engine: {data_parallel_size: 2, merge_data_parallel_ranks: true, max_num_seqs: 1,
     max_num_batched_tokens: 16, num_gpu_blocks_override: 5},
     latency: {alpha_us: [0, 0, 0], beta_us: [100, 0, 0]}}
`), 0o666))
	c, err := cluster.Load(file, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	request := func(id string, at, input int) string {
		return fmt.Sprintf(`{"kind":"request","id":%q,"arrival_us":%d,"input_tokens":%d,"output_tokens":1}`+"\n", id,
			at, input)
	}
	in := request("alone", 0, 40) + request("a", 1000, 40) + request("b", 1000, 40) + request("waits", 1000, 8) +
		request("large", 5000, 65)
	var out bytes.Buffer
	must(runCluster(context.Background(), c, mustSpecs(c), strings.NewReader(in), &out,
		Options{Trace: "full", Check: true}))
	run := readRun(t, out.Bytes(), 1, 0, nil)
	var got []string
	for _, s := range run.steps[0] {
		got = append(got, fmt.Sprintf("%d: %d tokens of %d, %d waiting, %d blocks", s.Start, s.Prefill, s.Running,
			s.Waiting, s.Used))
	}
	want := []string{
		"0: 16 tokens of 1, 0 waiting, 1 blocks", "100: 16 tokens of 1, 0 waiting, 2 blocks",
		"200: 8 tokens of 1, 0 waiting, 3 blocks",
		"1000: 32 tokens of 2, 1 waiting, 2 blocks", "1100: 32 tokens of 2, 1 waiting, 4 blocks",
		"1200: 16 tokens of 2, 1 waiting, 6 blocks",
		"1300: 8 tokens of 1, 0 waiting, 1 blocks",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// 65 slots need five blocks; one core has four
	if o := run.outcomes["large"]; o.Reason != stream.ReasonTooLongForCache {
		t.Errorf("large: %+v", o)
	}
}
