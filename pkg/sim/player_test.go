package sim

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/latency"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestPlayerMatchesStream simulates the same requests in process and as a stream, with policies that
// use prompts and a replica that cannot hold all: same outcomes in the same order, with the file's
// latency model and with another.
func TestPlayerMatchesStream(t *testing.T) {
	const file = `version: 1
deployments:
  - {id: main, model: m, replicas: 3, engine: {max_num_seqs: 8, num_gpu_blocks_override: 400, async_scheduling: true},
     latency: {model: linear, alpha_us: [2000, 1, 30], beta_us: [BASE, 35, 14, 0.1]}}
policies: {routing: {type: weighted, params: {prefix-affinity: 3, queue-depth: 2}}}
`
	requests := make([]stream.Request, 400)
	random := rand.New(rand.NewPCG(1, 2))
	at := 0.0
	for i := range requests {
		at += random.ExpFloat64() * 5e4
		input := 100 + random.Int64N(3000)
		requests[i] = stream.Request{ID: "r" + string(rune('a'+i%26)) + string(rune('a'+i/26)),
			ArrivalUS: stream.Micros(at), DeadlineUS: stream.Never,
			InputTokens: input, OutputTokens: 1 + random.Int64N(300),
			Prompt: []stream.Segment{{ID: string(rune('a' + i%7)), Tokens: input / 2}}}
	}
	requests[7].InputTokens = 1 << 20 // infeasible
	requests[30].DeadlineUS = requests[30].ArrivalUS + 1000
	var workload bytes.Buffer
	w := stream.NewWriter(&workload, true)
	must(w.Header(&stream.Header{Stream: stream.StreamWorkload, StreamVersion: stream.StreamVersion, Tool: "test"}))
	for i := range requests {
		must(w.Request(&requests[i]))
	}
	must(w.End(&stream.End{}))
	must(w.Close())

	load := func(base string) (string, *cluster.Config) {
		name := filepath.Join(t.TempDir(), "c.yaml")
		must(os.WriteFile(name, []byte(strings.Replace(file, "BASE", base, 1)), 0o666))
		c, err := cluster.Load(name, cluster.Options{})
		must(err)
		return name, c
	}
	_, c := load("12000")
	player, err := NewPlayer(c)
	must(err)
	for _, base := range []string{"12000", "9000"} {
		name, other := load(base)
		var out bytes.Buffer
		must(
			Run(
				context.Background(),
				bytes.NewReader(workload.Bytes()),
				&out,
				Options{Cluster: name, Trace: "decisions",
					Plain: true},
			),
		)
		var streamed []stream.Outcome
		for _, o := range readOutcomes(t, out.Bytes()) {
			o.Kind, o.Decision = "", "" // it is no record, and there are none to point to
			o.SlotWaitUS, o.BudgetWaitUS, o.BlockWaitUS = 0, 0, 0
			streamed = append(streamed, o)
		}
		var m latency.Model
		if base != "12000" {
			m, err = other.Deployments[0].LatencyModel()
			must(err)
		}
		var played []stream.Outcome
		must(player.Play(context.Background(), requests, m, func(i int, o *stream.Outcome) {
			if o.ID != requests[i].ID {
				t.Fatalf("request %d is %q, its outcome is of %q", i, requests[i].ID, o.ID)
			}
			played = append(played, *o)
		}))
		if diff := cmp.Diff(streamed, played); diff != "" {
			t.Errorf("base %s: streamed and played (+):\n%s", base, diff)
		}
	}
	if err := player.Play(context.Background(), []stream.Request{requests[1], requests[0]}, nil,
		func(int, *stream.Outcome) {}); err == nil {
		t.Error("requests that go back in time were played")
	}
}
