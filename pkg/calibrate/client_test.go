package calibrate

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/dist"
	"blis/pkg/record"
	"blis/pkg/recording"
	"blis/pkg/sim"
)

var seeds = flag.Int("seeds", 20, "recordings that TestIntervalsCover makes; 100 take a minute or more")

// synthetic is a run that a simulation with known coefficients and jitter recorded:
// Poisson arrivals at a low and a high rate, prompts of 50 to 1,500 tokens.
func synthetic(t *testing.T, seed uint64, truth Coefficients, requests int) (*setup, *run) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	const deployment = `version: 1
deployments: [{id: main, model: meta-llama/Llama-2-7b-hf, gpu: H100, engine: {max_num_seqs: 128, preset: vllm-0.15}, latency: {%s}}]
`
	load := func(latency string) *cluster.Config {
		if err := os.WriteFile(name, fmt.Appendf(nil, deployment, latency), 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := cluster.Load(name, cluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	random := dist.NewStream(seed, "synthetic")
	r := &run{name: "synthetic", file: &recording.Recording{}, replicas: 1, async: true, seats: 128, arrivals: true}
	at := 0.0
	for i := range requests {
		rate := 3.0
		if i > requests/3 {
			rate = 9
		}
		at += random.ExpFloat64() / rate * 1e6
		r.requests = append(r.requests, record.Request{ID: fmt.Sprint(i), ArrivalUS: record.Micros(at), DeadlineUS: record.Never,
			InputTokens: 50 + random.Int64N(1450), OutputTokens: 100 + random.Int64N(200)})
		r.used = append(r.used, true)
	}
	jittery, err := sim.NewPlayer(load("model: linear, alpha_us: [0, 0, 0], beta_us: [1, 0, 0], jitter: {cv: 0.05}"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := truth.model()
	if err != nil {
		t.Fatal(err)
	}
	r.player = jittery
	r.measured = make([]seen, requests)
	if r.measured, err = r.play(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	c := load("model: roofline")
	s := &setup{options: &Options{}, deployment: &c.Deployments[0]}
	if s.roofline, err = c.Deployments[0].LatencyModel(); err != nil {
		t.Fatal(err)
	}
	if r.player, err = sim.NewPlayer(c); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// TestIntervalsCover fits recordings of known coefficients and counts how often 90 %
// intervals hold what was put in: those of the data alone, and those that also say
// how uneven real steps may be, which a simulation's are not. The latter are wider.
func TestIntervalsCover(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = 1
	}
	truth := Coefficients{Alpha: [4]float64{5000}, Beta: [4]float64{6200, 16, 22, 0.1565}}
	var data, doubts [len(names)]int
	for seed := range n {
		s, r := synthetic(t, uint64(seed), truth, 600)
		f, err := fitClient(context.Background(), []*run{r}, s.prior(loadOf([]*run{r})), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, want := f.list(), truth.list()
		own, wide := f.intervals()
		for k, v := range want {
			if own[k].Low <= v && v <= own[k].High {
				data[k]++
			}
			if wide[k].Low <= v && v <= wide[k].High {
				doubts[k]++
			}
		}
		for k := range want {
			if want[k] > 0 && math.Abs(got[k]/want[k]-1) > 0.4 {
				t.Errorf("seed %d: %s is %.4g, made with %g", seed, names[k], got[k], want[k])
			}
		}
	}
	t.Logf("of %d recordings, %v: of the data %v, with what steps may be off a line %v", n, names, data, doubts)
	for _, k := range []int{alpha0, beta0, beta1, beta2} {
		// Fewer than that are no chance: of 90 of 100, three standard deviations.
		least, most := 0.9*float64(n)-0.9*math.Sqrt(float64(n)), 0.9*float64(n)+0.9*math.Sqrt(float64(n))
		if d := float64(data[k]); d < least || d > most || doubts[k] < data[k] {
			t.Errorf("the intervals of %s hold what it was made with in %d of %d recordings, its doubts in %d", names[k], data[k], n, doubts[k])
		}
	}
}
