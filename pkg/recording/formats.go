package recording

import (
	"blis/pkg/named"
)

// Format is one layout of recordings.
type Format struct {
	// detect reports whether a file that begins with h is of this layout.
	detect func(h *head) bool
	// read reads a file into r.
	read func(f *file, r *Recording) error
}

// Formats are the layouts that are read.
var Formats = named.Table[Format]{
	{Name: "blis", Doc: "a run or recording of our own: outcomes, and steps of --trace full", Value: Format{detect: isBLIS, read: readBLIS}},
	{Name: "lmbench", Doc: "LMBenchmark's CSV: of prompt_tokens, generation_tokens, ttft, launch_time, finish_time, or of runs by target_qps", Value: Format{detect: isLMBench, read: readTable}},
	{Name: "csv", Doc: "CSV of " + tableColumns, Value: Format{detect: isTable, read: readTable}},
}
