package cli

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"blis/pkg/gen"
	"blis/pkg/summarize"
	"blis/pkg/workloadstats"
)

// The descriptions of public traces have the published figures, or figures counted on the
// files.
func TestDescriptionsOfPublicTraces(t *testing.T) {
	at := func(x *float64) float64 {
		if x == nil {
			return math.NaN()
		}
		return *x
	}
	type figure struct {
		name string
		of   func(d *workloadstats.Description) float64
		want float64
		near float64
	}
	cv := func(want float64) figure {
		return figure{"CV of the gaps", func(d *workloadstats.Description) float64 { return at(d.CV) }, want, 0.005}
	}
	calls := func(want float64) figure {
		return figure{"calls", func(d *workloadstats.Description) float64 { return float64(d.Calls) }, want, 0}
	}
	for _, c := range []struct {
		format, file string
		figures      []figure
	}{
		{"azure", "traces/azure2023_code.csv", []figure{calls(8819), cv(13.15),
			{"Fano factor", func(d *workloadstats.Description) float64 { return at(d.Fano) }, 164, 0.5},
			{"whole minutes", func(d *workloadstats.Description) float64 { return float64(d.Minutes) }, 57, 0}}},
		{"azure", "traces/azure2023_conv.csv", []figure{calls(19366), cv(1.094),
			{"mean input", func(d *workloadstats.Description) float64 { return d.Input.Mean }, 1154.70, 0.005},
			{"mean output", func(d *workloadstats.Description) float64 { return d.Output.Mean }, 211.13, 0.005}}},
		{"mooncake", "traces/mooncake_conversation.jsonl", []figure{calls(12031),
			{"prefix hits", func(d *workloadstats.Description) float64 { return d.Prefix.Hit }, 0.374, 0.0005}}},
		// Eleven sessions; without the calls of sub-agents the median is 0.932.
		{"weka", "agentic/weka_original", []figure{
			{"sessions", func(d *workloadstats.Description) float64 { return float64(d.Sessions) }, 11, 0},
			{"own history", func(d *workloadstats.Description) float64 { return at(d.Session.SessionHitMedian) },
				0.9015, 0.001}}},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := filepath.Join(root, "../shared/data", c.file)
			if _, err := os.Stat(path); err != nil {
				t.Skipf("the trace is not here: %v", err)
			}
			var stream bytes.Buffer
			if err := gen.Run(t.Context(), nil, &stream,
				gen.Options{Import: []gen.Import{{Format: c.format, File: path}}}); err != nil {
				t.Fatal(err)
			}
			d := summarized(t, stream.Bytes(), summarize.Options{}).Workload
			for _, f := range c.figures {
				if got := f.of(d.Description); !(math.Abs(got-f.want) <= f.near) {
					t.Errorf("%s: %g, want %g", f.name, got, f.want)
				}
			}
		})
	}
}
