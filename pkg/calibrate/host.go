package calibrate

import (
	"fmt"
	"slices"

	"blis/pkg/latency"
)

// Host is what an engine's host adds to each step of the GPUs, in µs: a prior, where
// steps were measured on GPUs alone.
type Host struct {
	US   float64 `json:"us"`
	Low  float64 `json:"low_us"`
	High float64 `json:"high_us"`
	From string  `json:"from"`
}

// hostTimes are of vLLM on the hosts of H100s: what a step of an empty batch takes, beta[0]
// of fits to recordings, beyond reading the weights. Synchronous, in the OpenTelemetry spans
// of servers of vLLM 0.11 on one GPU each (jan21-llama7b-train-1, jan20-codellama-train-1),
// it is 6.3 ms of Llama-2-7b (13.2 GB of weights in 32 layers) and 25.6 of CodeLlama-34b
// (67.2 GB in 48). If weights are read at one bandwidth and the short kernels of a layer
// take 0 to 30 µs, these leave 1.6 to 0.7 ms to the host, at 2.8 TB/s. Asynchronous, in
// vLLM 0.15 (the recording of hardware/coefficients.yaml), Llama-2-7b takes 6.0 ms, which
// leaves 1.3 to 0.4 ms.
var hostTimes = map[bool]Host{
	false: {US: 1100, Low: 700, High: 1500},
	true:  {US: 800, Low: 400, High: 1200},
}

// addHost adds the prior of the host's time to steps of GPUs alone.
func (r *Report) addHost() error {
	f := &r.fit
	async := r.setup.deployment.Engine.AsyncScheduling
	host := hostTimes[async]
	host.From = fmt.Sprintf("prior: what vLLM's steps of empty batches of Llama-2-7b and CodeLlama-34b take on H100s beyond reading weights, with async_scheduling %v", async)
	r.Host = &host
	f.Beta[0] += host.US
	f.doubts = f.intervals
	f.intervals[beta0].Low, f.intervals[beta0].High = f.intervals[beta0].Low+host.US, f.intervals[beta0].High+host.US
	f.doubts[beta0].Low, f.doubts[beta0].High = f.doubts[beta0].Low+host.Low, f.doubts[beta0].High+host.High
	f.method += fmt.Sprintf("; to each step %g us are added for the host, a prior", host.US)
	f.from[beta0] += fmt.Sprintf(" (%.5g us), and the host's", f.Beta[0]-host.US)
	if f.table != nil {
		t := *f.table
		t.StepUS = slices.Clone(t.StepUS)
		for i := range t.StepUS {
			t.StepUS[i] += host.US
		}
		f.table = &t
	}
	r.setup.warnf("the steps are of GPUs alone: to each are added %g us (%g to %g) for the host, which no data here tell (%s)", host.US, host.Low, host.High, host.From)
	_, err := r.slower(0)
	return err
}

// hostDoubt is by what part a step at a load is in doubt for the host's time.
func (r *Report) hostDoubt(l load) (part float64, err error) {
	if r.Host == nil {
		return 0, nil
	}
	m, err := r.slower(0)
	if err != nil {
		return 0, err
	}
	step := m.Step(latency.Batch{Decode: max(1, int64(l.sequences)), Context: int64(l.sequences * l.context)})
	return (r.Host.High - r.Host.Low) / 2 / float64(step), nil
}
