package sim

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"blis/pkg/cluster"
	"blis/pkg/internal/reference"
	"blis/pkg/stream"

	"github.com/google/go-cmp/cmp"
)

// TestSameBytes: a run does not depend on how its input is read, on compression, on the number of
// processors, or on earlier runs.
func TestSameBytes(t *testing.T) {
	c, err := cluster.Load("",
		cluster.Options{Overrides: []string{"deployments.main.engine.num_gpu_blocks_override=2000"}})
	if err != nil {
		t.Fatal(err)
	}
	packed := benchWorkload(2000, 60)
	plain := unpack(t, packed)
	run := func(in io.Reader, plain bool) []byte {
		var out bytes.Buffer
		if err := runCluster(context.Background(), c, mustSpecs(c), in, &out, Options{Trace: "full", Plain: plain,
			ITL: true}); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	want := run(bytes.NewReader(packed), true)
	if n := bytes.Count(want, []byte(`"kind":"outcome"`)); n != 2000 {
		t.Fatalf("%d outcomes of 2000 requests", n)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 2} {
		runtime.GOMAXPROCS(procs)
		for name, got := range map[string][]byte{
			"again":            run(bytes.NewReader(packed), true),
			"from plain input": run(bytes.NewReader(plain), true),
			"byte by byte":     run(iotest.OneByteReader(bytes.NewReader(plain)), true),
			"compressed":       unpack(t, run(bytes.NewReader(packed), false)),
		} {
			if !bytes.Equal(got, want) {
				t.Errorf("%s, on %d processors: other bytes", name, procs)
			}
		}
	}
}

// unpack returns the lines of a compressed stream.
func unpack(t *testing.T, data []byte) []byte {
	t.Helper()
	var lines []byte
	r := stream.NewReader(bytes.NewReader(data))
	for r.Next() {
		lines = append(append(lines, r.Bytes()...), '\n')
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestReplicasAreIsolated: a replica's behavior depends only on its own requests.
func TestReplicasAreIsolated(t *testing.T) {
	for seed := range randomCases(200, 20) {
		c, requests := reference.Random(seed)
		c.Routing, c.Scorers, c.HorizonUS = "round-robin", nil, reference.Never
		c.Replicas = 3
		together := outcomesOf(t, c, requests)
		c.Replicas = 1
		for replica := range 3 {
			var own []reference.Request
			for _, q := range requests {
				if together[q.ID].Replica == replica {
					own = append(own, q)
				}
			}
			alone := outcomesOf(t, c, own)
			for _, q := range own {
				want := together[q.ID]
				want.Replica = 0
				if diff := cmp.Diff(want, alone[q.ID]); diff != "" {
					t.Fatalf("seed %d, replica %d of three (-) and alone (+):\n%s", seed, replica, diff)
				}
			}
		}
	}
}

// TestNamesChangeNothing: names of tenants and classes do not matter if no policy uses them.
func TestNamesChangeNothing(t *testing.T) {
	c, requests := reference.Random(7)
	c.Scheduler, c.Preemption = "", ""
	for i := range requests {
		requests[i].Priority = 0
	}
	named := bytes.ReplaceAll(workloadOf(requests), []byte(`"input_tokens"`),
		[]byte(`"tenant":"zeta","slo_class":"batch","input_tokens"`))
	if cut := bytes.LastIndexByte(named[:len(named)-1], '\n'); cut > 0 { // its end record no longer matches
		named = named[bytes.IndexByte(named, '\n')+1 : cut+1]
	}
	want := outcomesOf(t, c, requests)
	var out bytes.Buffer
	if err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(named), &out,
		testOptions(c)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, readRun(t, out.Bytes(), c.Replicas, 0, nil).outcomes); diff != "" {
		t.Errorf("without (-) and with names (+):\n%s", diff)
	}
}

func outcomesOf(t *testing.T, c reference.Config, requests []reference.Request) map[string]outcomeFields {
	t.Helper()
	var out bytes.Buffer
	if err := runCluster(context.Background(), clusterOf(c), testSpecs(c), bytes.NewReader(workloadOf(requests)), &out,
		testOptions(c)); err != nil {
		t.Fatal(err)
	}
	return readRun(t, out.Bytes(), c.Replicas, 0, nil).outcomes
}

// TestHorizon: a run cut by a horizon equals the beginning of the whole run.
func TestHorizon(t *testing.T) {
	for seed := range randomCases(200, 20) {
		c, requests := reference.Random(seed)
		c.HorizonUS = reference.Never
		whole := outcomesOf(t, c, requests)
		last := int64(0)
		for _, o := range whole {
			last = max(last, slices.Max(o.Times[:]))
		}
		c.HorizonUS = max(1, last/2)
		for id, cut := range outcomesOf(t, c, requests) {
			for i, at := range cut.Times {
				// Client times may be after the horizon by α2; engine times cannot.
				if want := whole[id].Times[i]; at != want && !(at == reference.Never && want >= c.HorizonUS) {
					t.Fatalf("seed %d: %s: time %d is %d in a run cut at %d, else %d", seed, id, i, at, c.HorizonUS,
						want)
				}
			}
		}
	}
}
