package calibrate

import (
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

var seeds = flag.Int("seeds", 4, "recordings of each load in TestIntervalsCover; 100 take minutes")

// workload is a load whose recording is simulated with known coefficients and jitter: Poisson
// arrivals at rates, one after another, on a server with engine settings.
type workload struct {
	name    string
	engine  string
	rates   []float64 // requests/s
	input   [2]int64
	output  [2]int64
	perRate int // requests
}

// twoRates is a load with a low and a high rate.
var twoRates = workload{"two rates", "{max_num_seqs: 128, preset: vllm-0.15}", []float64{3, 9, 9},
	[2]int64{50, 1500}, [2]int64{100, 300}, 0}

// oneRate is a load with one high rate.
var oneRate = workload{"one rate", "{max_num_seqs: 256}", []float64{9}, [2]int64{100, 600}, [2]int64{50, 400}, 300}

// jitterModel is a model whose steps have random durations.
type jitterModel struct {
	latency.Model
	cv     float64
	random *rand.Rand
}

func (m jitterModel) Step(b latency.Batch) des.Time {
	spread := math.Sqrt(math.Log(1 + m.cv*m.cv))
	return des.Micros(float64(m.Model.Step(b)) * math.Exp(spread*m.random.NormFloat64()-spread*spread/2))
}

// synthetic is a recording of the load twoRates.
func synthetic(t *testing.T, seed uint64, truth coefficients, requests int) (*setup, *replay) {
	t.Helper()
	load := twoRates
	load.perRate = requests / len(load.rates)
	return load.record(t, seed, truth)
}

// record makes a recording, and the setup that it is of.
func (l workload) record(t *testing.T, seed uint64, truth coefficients) (*setup, *replay) {
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
	e := &c.Deployments[0].Engine
	r := &replay{name: "synthetic", file: &recording.Recording{}, hasArrivals: true,
		engine: engine{replicas: 1, async: e.AsyncScheduling, maxSeqs: e.MaxNumSeqs}}
	at := 0.0
	for i := range l.perRate * len(l.rates) {
		at += random.ExpFloat64() / l.rates[i/l.perRate] * 1e6
		r.requests = append(r.requests, stream.Request{ID: fmt.Sprint(i), ArrivalUS: stream.Micros(at),
			DeadlineUS: stream.Never, InputTokens: l.input[0] + random.Int64N(l.input[1]-l.input[0]+1),
			OutputTokens: l.output[0] + random.Int64N(l.output[1]-l.output[0]+1)})
		r.fitted = append(r.fitted, true)
	}
	m, err := shape{}.model(truth, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.player, err = sim.NewPlayer(c); err != nil {
		t.Fatal(err)
	}
	r.measured = make([]timing, len(r.requests))
	if r.measured, err = r.simulate(t.Context(), jitterModel{m, 0.05, dist.NewStream(seed, "jitter")}); err != nil {
		t.Fatal(err)
	}
	s := &setup{options: &Options{}, deployment: &c.Deployments[0]}
	if s.roofline, err = c.Deployments[0].LatencyModel(); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// TestIntervalsCover: 90 % intervals of the data, and uncertainties, include the coefficients
// that recordings were simulated with, as often as they should. One load has a roofline's
// slope, the other one that contradicts it.
func TestIntervalsCover(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = 1
	}
	var data, wide [len(names)]int
	loads := []struct {
		load  workload
		truth coefficients
	}{
		{workload{"two rates", twoRates.engine, twoRates.rates, twoRates.input, twoRates.output, 120},
			coefficients{5000, 0, 0, 0, 6200, 16, 22, 0.1565}},
		{oneRate, coefficients{3000, 0, 0, 0, 8000, 25, 120, 0.1565}},
	}
	for _, c := range loads {
		dataBefore, wideBefore := data, wide
		for seed := range n {
			s, r := c.load.record(t, uint64(seed), c.truth)
			f, err := fitPrecisely(t.Context(), []*replay{r}, shape{}, s.prior(loadOf([]*replay{r})), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, want := f.value, c.truth
			ci, uncertainty := f.intervals()
			for k, v := range want {
				if ci[k].Lo <= v && v <= ci[k].Hi {
					data[k]++
				}
				if uncertainty[k].Lo <= v && v <= uncertainty[k].Hi {
					wide[k]++
				}
			}
			for _, k := range []int{beta0, beta1, beta2} {
				if math.Abs(got[k]/want[k]-1) > 0.4 {
					t.Errorf("%s, seed %d: %s is %.4g, want %g", c.load.name, seed, names[k], got[k], want[k])
				}
			}
		}
		for _, k := range []int{alpha0, beta0, beta1, beta2} {
			t.Logf("%d recordings of %s: %s is in its confidence interval in %d, in its uncertainty in %d",
				n, c.load.name, names[k], data[k]-dataBefore[k], wide[k]-wideBefore[k])
		}
	}
	rarest := minSuccesses(n*len(loads), 0.9, 1e-4)
	for _, k := range []int{alpha0, beta0, beta1, beta2} {
		if data[k] < rarest || wide[k] < rarest {
			t.Errorf("%d recordings: %s is in its confidence interval in %d, in its uncertainty in %d; "+
				"%d would be chance", n*len(loads), names[k], data[k], wide[k], rarest)
		}
	}
}

// minSuccesses is the smallest number of successes of n, each with a probability, that is not
// rarer than a limit.
func minSuccesses(n int, probability, rarer float64) int {
	sum, term := 0.0, math.Pow(1-probability, float64(n))
	for k := 0; ; k++ {
		if sum += term; sum >= rarer {
			return k
		}
		term *= probability / (1 - probability) * float64(n-k) / float64(k+1)
	}
}
