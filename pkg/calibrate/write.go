package calibrate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/latency"
)

// setWriter writes a file of coefficients, line by line.
type setWriter struct{ *strings.Builder }

func (w setWriter) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// writeSet writes a file of coefficients.
func writeSet(b *strings.Builder, s *hardware.Set) {
	w := setWriter{b}
	w.server(s)
	if t := s.Latency.Table; t != nil {
		w.table(s.Latency.AlphaUS, t)
	} else {
		w.line("    latency: {model: %s, alpha_us: %s, beta_us: %s}", s.Latency.Model, flow(s.Latency.AlphaUS), flow(s.Latency.BetaUS))
	}
	w.provenance(s)
	w.trust(s)
}

// server writes what the coefficients are of.
func (w setWriter) server(s *hardware.Set) {
	w.line("version: 1")
	w.line("coefficients:")
	w.line("  - model: %s", strconv.Quote(s.Model))
	w.line("    gpu: %s", strconv.Quote(s.GPU))
	w.line("    tensor_parallel_size: %d", s.TensorParallelSize)
	w.line("    pipeline_parallel_size: %d", s.PipelineParallelSize)
	w.line("    data_parallel_size: %d", s.DataParallelSize)
	if s.Engine != "" {
		w.line("    engine: %s", strconv.Quote(s.Engine))
	}
	w.line("    settings: {async_scheduling: %v, enable_prefix_caching: %v}", *s.Settings.AsyncScheduling, *s.Settings.EnablePrefixCaching)
}

// table writes a table of steps, a row of it for each number of prefill tokens.
func (w setWriter) table(alpha []float64, t *latency.Table) {
	w.line("    latency:")
	w.line("      model: table")
	w.line("      alpha_us: %s", flow(alpha))
	w.line("      table:")
	w.line("        prefill_tokens: %s", flow(t.PrefillTokens))
	w.line("        decode_sequences: %s", flow(t.DecodeSequences))
	w.line("        context_tokens: %s", flow(t.ContextTokens))
	w.line("        step_us:")
	width := len(t.ContextTokens)
	for i := 0; i < len(t.StepUS); i += width * len(t.DecodeSequences) {
		row := flow(t.StepUS[i : i+width*len(t.DecodeSequences)])
		if i == 0 {
			row = "[" + row[1:len(row)-1] + ","
		} else if i+width*len(t.DecodeSequences) < len(t.StepUS) {
			row = " " + row[1:len(row)-1] + ","
		} else {
			row = " " + row[1:]
		}
		w.line("          %s", row)
	}
}

// provenance writes what range the coefficients are for, and where they come from.
func (w setWriter) provenance(s *hardware.Set) {
	w.line("    range:")
	for _, r := range []struct {
		name string
		span hardware.Span
	}{{"decode_sequences", s.Range.DecodeSequences}, {"prefill_tokens", s.Range.PrefillTokens}, {"context_tokens", s.Range.ContextTokens},
		{"input_tokens", s.Range.InputTokens}, {"output_tokens", s.Range.OutputTokens}} {
		if r.span != nil {
			w.line("      %s: %s", r.name, flow(r.span))
		}
	}
	w.line("    source: %s", strconv.Quote(s.Source))
	w.line("    method: %s", strconv.Quote(s.Method))
	w.line("    recordings:")
	for _, r := range s.Recordings {
		runs := ""
		if len(r.Runs) > 0 {
			var all []string
			for _, name := range r.Runs {
				all = append(all, strconv.Quote(name))
			}
			runs = ", runs: [" + strings.Join(all, ", ") + "]"
		}
		w.line("      - {file: %s, digest: %s, requests: %d%s}", strconv.Quote(r.File), strconv.Quote(r.Digest), r.Requests, runs)
	}
}

// trust writes intervals, errors and warnings.
func (w setWriter) trust(s *hardware.Set) {
	for _, i := range []struct {
		name string
		hardware.Intervals
	}{{"intervals", s.Intervals}, {"doubts", s.Doubts}} {
		if i.Level == 0 {
			continue
		}
		w.line("    %s:", i.name)
		w.line("      level: %g", i.Level)
		w.line("      alpha_us: %s", pairs(i.AlphaUS))
		if i.BetaUS != nil {
			w.line("      beta_us: %s", pairs(i.BetaUS))
		}
	}
	if len(s.Errors) > 0 {
		w.line("    errors:")
	}
	for _, e := range s.Errors {
		w.line("      - {metric: %s, data: %s, percent: %g}", e.Metric, strconv.Quote(e.Data), e.Percent)
	}
	if len(s.Warnings) > 0 {
		w.line("    warnings:")
	}
	for _, warning := range s.Warnings {
		w.line("      - %s", strconv.Quote(warning))
	}
}

func flow[T int64 | float64](list []T) string {
	var all []string
	for _, v := range list {
		all = append(all, strconv.FormatFloat(float64(v), 'f', -1, 64))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func pairs(list [][]float64) string {
	var all []string
	for _, p := range slices.All(list) {
		all = append(all, flow(p))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
