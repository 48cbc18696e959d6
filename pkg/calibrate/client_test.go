package calibrate

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/cluster"
	"blis/pkg/des"
	"blis/pkg/dist"
	"blis/pkg/latency"
	"blis/pkg/recording"
	"blis/pkg/sim"
	"blis/pkg/stream"
)

var seeds = flag.Int("seeds", 4, "recordings of each load that TestIntervalsCover makes; 100 take some minutes")

// made is a load that a simulation with known coefficients and jitter records: Poisson
// arrivals at rates, one after another, on a server with an engine's settings.
type made struct {
	name    string
	engine  string
	rates   []float64 // requests/s
	input   [2]int64
	output  [2]int64
	perRate int // requests
}

// usual is a load of a low and a high rate.
var usual = made{"usual", "{max_num_seqs: 128, preset: vllm-0.15}", []float64{3, 9, 9}, [2]int64{50, 1500}, [2]int64{100, 300}, 0}

// jittery is a model whose steps are longer and shorter by chance.
type jittery struct {
	latency.Model
	cv     float64
	random *rand.Rand
}

func (m jittery) Step(b latency.Batch) des.Time {
	spread := math.Sqrt(math.Log(1 + m.cv*m.cv))
	return des.Micros(float64(m.Model.Step(b)) * math.Exp(spread*m.random.NormFloat64()-spread*spread/2))
}

// synthetic is a recording of the usual load.
func synthetic(t *testing.T, seed uint64, truth Coefficients, requests int) (*setup, *run) {
	t.Helper()
	load := usual
	load.perRate = requests / len(load.rates)
	return load.record(t, seed, truth)
}

// record makes a recording, and the setup that it is of.
func (l made) record(t *testing.T, seed uint64, truth Coefficients) (*setup, *run) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	const deployment = `version: 1
deployments: [{id: main, model: meta-llama/Llama-2-7b-hf, gpu: H100, engine: %s, latency: {model: roofline}}]
`
	if err := os.WriteFile(name, fmt.Appendf(nil, deployment, l.engine), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Load(name, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	random := dist.NewStream(seed, "synthetic")
	engine := &c.Deployments[0].Engine
	r := &run{name: "synthetic", file: &recording.Recording{}, replicas: 1, async: engine.AsyncScheduling, seats: engine.MaxNumSeqs, arrivals: true}
	at := 0.0
	for i := range l.perRate * len(l.rates) {
		at += random.ExpFloat64() / l.rates[i/l.perRate] * 1e6
		r.requests = append(r.requests, stream.Request{ID: fmt.Sprint(i), ArrivalUS: stream.Micros(at), DeadlineUS: stream.Never,
			InputTokens: l.input[0] + random.Int64N(l.input[1]-l.input[0]+1), OutputTokens: l.output[0] + random.Int64N(l.output[1]-l.output[0]+1)})
		r.used = append(r.used, true)
	}
	m, err := truth.model()
	if err != nil {
		t.Fatal(err)
	}
	if r.player, err = sim.NewPlayer(c); err != nil {
		t.Fatal(err)
	}
	r.measured = make([]seen, len(r.requests))
	if r.measured, err = r.play(context.Background(), jittery{m, 0.05, dist.NewStream(seed, "jitter")}); err != nil {
		t.Fatal(err)
	}
	s := &setup{options: &Options{}, deployment: &c.Deployments[0]}
	if s.roofline, err = c.Deployments[0].LatencyModel(); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// TestIntervalsCover fits recordings of known coefficients and counts how often 90 %
// intervals hold what was put in: those of the data alone, and those that also say
// how uneven real steps may be, which a simulation's are not. One load has a roofline's
// slope, the other one that contradicts it.
func TestIntervalsCover(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = 1
	}
	var data, doubts [len(names)]int
	loads := []struct {
		load  made
		truth Coefficients
	}{
		{made{"two rates", usual.engine, usual.rates, usual.input, usual.output, 200}, Coefficients{Alpha: [4]float64{5000}, Beta: [4]float64{6200, 16, 22, 0.1565}}},
		{made{"one high rate", "{max_num_seqs: 256}", []float64{9}, [2]int64{100, 600}, [2]int64{50, 400}, 500}, Coefficients{Alpha: [4]float64{3000}, Beta: [4]float64{8000, 25, 120, 0.1565}}},
	}
	for _, c := range loads {
		dataBefore, doubtsBefore := data, doubts
		for seed := range n {
			s, r := c.load.record(t, uint64(seed), c.truth)
			f, err := fitClient(context.Background(), []*run{r}, s.prior(loadOf([]*run{r})), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, want := f.list(), c.truth.list()
			own, wide := f.intervals()
			for k, v := range want {
				if own[k].Low <= v && v <= own[k].High {
					data[k]++
				}
				if wide[k].Low <= v && v <= wide[k].High {
					doubts[k]++
				}
			}
			for _, k := range []int{beta0, beta1, beta2} {
				if math.Abs(got[k]/want[k]-1) > 0.4 {
					t.Errorf("%s, seed %d: %s is %.4g, made with %g", c.load.name, seed, names[k], got[k], want[k])
				}
			}
		}
		for _, k := range []int{alpha0, beta0, beta1, beta2} {
			t.Logf("of %d recordings of %s, %s is in the data's interval in %d, in its doubts in %d", n, c.load.name, names[k], data[k]-dataBefore[k], doubts[k]-doubtsBefore[k])
		}
	}
	least := chanceLeast(n*len(loads), 0.9, 1e-4)
	for _, k := range []int{alpha0, beta0, beta1, beta2} {
		if data[k] < least || doubts[k] < least {
			t.Errorf("of %d recordings intervals of %s hold what it was made with in %d, its doubts in %d; %d would be chance", n*len(loads), names[k], data[k], doubts[k], least)
		}
	}
}

// chanceLeast is the least number of successes of n that is not rarer than a chance where
// each comes with a probability.
func chanceLeast(n int, probability, rarer float64) int {
	sum, term := 0.0, math.Pow(1-probability, float64(n))
	for k := 0; ; k++ {
		if sum += term; sum >= rarer {
			return k
		}
		term *= probability / (1 - probability) * float64(n-k) / float64(k+1)
	}
}
