package sim

import (
	"fmt"
	"io"

	"blis/pkg/catalog"
	"blis/pkg/latency"
	"blis/pkg/model"
	"blis/pkg/policy"
)

// list prints what files may name.
func list(out io.Writer, o Options) error {
	var text []byte
	switch o.List {
	case "policies":
		text = policy.Admissions.Append(text, "admission")
		text = policy.Priorities.Append(text, "priority")
		text = policy.Routers.Append(text, "routing")
		text = policy.Scorers.Append(text, "scorer")
		text = policy.Schedulers.Append(text, "scheduler")
		text = policy.Preemptions.Append(text, "preemption")
	case "models":
		for _, a := range model.BuiltIns() {
			text = fmt.Appendf(text, "%-44s %8.2f B  %7d KV bytes a token\n", a.Name, float64(a.TotalParameters())/1e9, a.KVBytesPerToken())
		}
	case "gpus":
		known, err := catalog.Open(o.Hardware...)
		if err != nil {
			return err
		}
		for _, g := range known.GPUs() {
			text = fmt.Appendf(text, "%-22s %7.2f GiB %5.0f GB/s %5.0f TFLOPS bf16 %5.0f fp8\n", g.ID, g.MemoryGiB, g.MemoryGBPerS, g.PeakTFLOPS.BF16, g.PeakTFLOPS.FP8)
		}
	case "presets":
		text = catalog.Presets.Append(text, "preset")
	case "latencies":
		text = latency.Models.Append(text, "latency")
	}
	_, err := out.Write(text)
	return err
}
