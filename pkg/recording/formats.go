package recording

import (
	"cmp"
	"io"

	"blis/pkg/registry"
	"blis/pkg/textio"
)

// Format is one file format of recordings.
type Format struct {
	// detect reports whether a file that begins with h has this format.
	detect func(h *head) bool
	// read reads a file into r.
	read func(f *file, r *Recording) error
	// Steps says that it contains steps and no requests.
	Steps bool
}

// Formats are the supported formats, in the order of detection.
var Formats = registry.Table[Format]{
	{Name: "blis", Doc: "a BLIS run or recording: outcomes, and the steps of --trace full",
		Value: Format{detect: isBLIS, read: readBLIS}},
	{Name: "vllm-bench", Doc: "detailed result of vllm bench serve or SGLang's bench_serving: JSON with input_lens, " +
		"output_lens, ttfts, itls, start_times", Value: Format{detect: isVLLMBench, read: readVLLMBench}},
	{Name: "guidellm", Doc: "GuideLLM report, JSON, versions 1 (0.5) and 2: a run for each benchmark of a sweep",
		Value: Format{detect: isGuideLLM, read: readGuideLLM}},
	{Name: "aiperf", Doc: "AIPerf's profile_export.jsonl: one request per line, with metadata and metrics",
		Value: Format{detect: isAIPerf, read: readAIPerf}},
	{Name: "inference-perf", Doc: "inference-perf's per_request_lifecycle_metrics.json, before and since 0.5",
		Value: Format{detect: isInferencePerf, read: readInferencePerf}},
	{Name: "tracev2", Doc: "TraceV2 of inference-sim's BLIS: CSV with a YAML header file",
		Value: Format{detect: isTraceV2, read: readTraceV2}},
	{Name: "otlp", Doc: "vLLM's OpenTelemetry spans, as JSON: queue, prefill and decode of each request on the server",
		Value: Format{detect: isOTLP, read: readOTLP}},
	{Name: "llmservingsim", Doc: "requests.jsonl of LLMServingSim's vLLM benchmark: the engine's own timestamps",
		Value: Format{detect: isLLMServingSim, read: readLLMServingSim}},
	{Name: "vllm-phases", Doc: "CSV of " + phaseColumns, Value: Format{detect: isPhases, read: readPhases}},
	{Name: "steps", Doc: "CSV of measured steps: " + stepColumns, Value: Format{detect: isSteps, read: readSteps,
		Steps: true}},
	{Name: "lmbench", Doc: "LMBenchmark's CSV: prompt_tokens, generation_tokens, ttft, launch_time, finish_time, or " +
		"runs by target_qps", Value: Format{detect: isLMBench, read: readTable}},
	{Name: "csv", Doc: "CSV of " + tableColumns, Value: Format{detect: isTable, read: readTable}},
}

// forEach calls take with each value that read decodes until io.EOF.
func forEach[T any](read func(any) error, take func(*T) error) error {
	for {
		var v T
		err := read(&v)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = take(&v)
		}
		if err != nil {
			return err
		}
	}
}

// forEachRow calls take for each row of a table, unless a column was missing. A table without rows
// is an error; what names them.
func forEachRow(s *textio.Table, what string, take func() error) error {
	if s.Err() != nil {
		return s.Err()
	}
	for n := 0; ; n++ {
		err := s.Read()
		switch {
		case err == io.EOF && n == 0:
			return s.Errorf("is the line of column names; no %s follow", what)
		case err == io.EOF:
			return nil
		case err == nil:
			err = take()
			err = cmp.Or(s.Err(), err) // the first error of the row
		}
		if err != nil {
			return err
		}
	}
}
