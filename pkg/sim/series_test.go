package sim

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"blis/pkg/internal/reference"
	"blis/pkg/metrics"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// seriesOf runs a cluster with a series, unless every is 0. It returns the series, the metrics and the other records.
func seriesOf(t *testing.T, c reference.Config, requests []reference.Request, every int64) (all []stream.Series,
	m metrics.Record, others []string) {
	t.Helper()
	o := Options{Trace: "decisions"}
	if every > 0 {
		o.Series = &Interval{Horizon{every}}
	}
	if c.HorizonUS != reference.Never {
		o.Horizon = &Horizon{c.HorizonUS}
	}
	var out bytes.Buffer
	if err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out,
		o); err != nil {
		t.Fatal(err)
	}
	r := stream.NewReader(&out)
	defer r.Close()
	for r.Next() {
		switch r.Kind() {
		case stream.KindSeries:
			var v stream.Series
			if err := r.Decode(&v); err != nil {
				t.Fatal(err)
			}
			all = append(all, v)
		case stream.KindHeader, stream.KindEnd:
		case stream.KindMetrics:
			if err := r.Decode(&m); err != nil {
				t.Fatal(err)
			}
			fallthrough
		default:
			others = append(others, string(r.Bytes()))
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return all, m, others
}

// TestSeriesOfRandomClusters: a series changes nothing else, and its sums are those of the run.
func TestSeriesOfRandomClusters(t *testing.T) {
	for seed := range uint64(20) {
		c, requests := reference.RandomFailures(seed)
		_, _, without := seriesOf(t, c, requests, 0)
		all, m, with := seriesOf(t, c, requests, max(1, c.HorizonUS/50, 2000)+int64(seed))
		if diff := cmp.Diff(without, with); diff != "" {
			t.Fatalf("seed %d: the run without (-) and with a series (+):\n%s", seed, diff)
		}
		var sum stream.Series
		for i, v := range all {
			if i > 0 && v.AtUS <= all[i-1].AtUS {
				t.Errorf("seed %d: %d after %d", seed, v.AtUS, all[i-1].AtUS)
			}
			sum.Completed, sum.Arrived = sum.Completed+v.Completed, sum.Arrived+v.Arrived
			sum.PrefillTokens, sum.DecodeTokens = sum.PrefillTokens+v.PrefillTokens, sum.DecodeTokens+v.DecodeTokens
		}
		var prefill, decode int64
		for _, r := range m.Replicas {
			prefill, decode = prefill+r.PrefillTokens, decode+r.DecodeTokens
		}
		got := fmt.Sprint(sum.Completed, sum.Arrived, sum.PrefillTokens, sum.DecodeTokens)
		want := fmt.Sprint(m.Requests.Completed, m.Requests.Offered+m.Requests.Retries, prefill, decode)
		if len(all) > 0 && got != want {
			t.Errorf("seed %d: sums %s, want %s", seed, got, want)
		}
	}
}

// TestSeries: steps take 100. At 150 a decodes and b waits since it came, at 120; from 200 on both run. At the look at
// 200 replica 1 begins to be provisioned, and from 250 on it loads. a's TTFT is 100, b's 180; a completes at 300, b at
// 400. The run ends at 400.
func TestSeries(t *testing.T) {
	c, requests, err := reference.ParseStory(`cluster beta=100,0,0
scale policy=threshold up=0.5 max=2 interval=200 provision=50 load=1000
arrive id=a in=4 out=3
arrive id=b at=120 in=5 out=2`)
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := seriesOf(t, c, requests, 150)
	blocks := all[0].Blocks
	want := []stream.Series{
		{AtUS: 150, Ready: 1, Arrived: 2, Running: 1, Waiting: 1, UsedBlocks: 1, Blocks: blocks, PrefillTokens: 4},
		{AtUS: 300, Ready: 1, Loading: 1, Completed: 1, Running: 1, UsedBlocks: 1, Blocks: 2 * blocks, PrefillTokens: 5,
			DecodeTokens: 2, TTFTSumUS: 100, TTFTCount: 1},
		{AtUS: 400, Ready: 1, Loading: 1, Completed: 1, Blocks: 2 * blocks, DecodeTokens: 1, TTFTSumUS: 180,
			TTFTCount: 1},
	}
	for i := range want {
		want[i].Kind, want[i].Deployment = stream.KindSeries, "main"
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}
