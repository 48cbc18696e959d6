package summarize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"blis/pkg/attribution"
	"blis/pkg/filter"
	"blis/pkg/fitness"
	"blis/pkg/report"
	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// Options are the arguments and flags of blis-summarize.
type Options struct {
	Streams  []string          `arg:"" optional:"" sep:"none" name:"stream" help:"Runs, recordings of real servers, or one workload, compressed or not. The default is stdin (-). NAME=FILE sets the name in the output."`
	Fitness  *Fitness          `group:"Score:" placeholder:"CEL|FILE" help:"Score runs by an expression such as 'm.goodput.ratio', or by a fitness file (*.yaml, *.json)."`
	Baseline []string          `group:"Score:" sep:"none" placeholder:"RUN" help:"Reference run to compare with: base.* in expressions. Repeatable, one for each workload."`
	Parent   []string          `rare:"" group:"Score:" sep:"none" placeholder:"RUN" help:"Second reference run: parent.* in expressions. For example, a run of the policy before its mutation."`
	Cluster  *string           `group:"Input:" short:"c" placeholder:"FILE" help:"Cluster file: report the load of a workload on this cluster. -c \"\" is the built-in cluster."`
	Where    Where             `group:"Requests:" placeholder:"CEL" help:"Of a run, keep only requests for which this is true: 'slo_class == \"critical\" && ttft_ms > 200'."`
	From     Instant           `group:"Requests:" placeholder:"DURATION" help:"Keep only requests that arrive at or after this time (30s, 5m)."`
	To       Instant           `group:"Requests:" placeholder:"DURATION" help:"Keep only requests that arrive before this time."`
	Merge    bool              `rare:"" group:"Input:" help:"The runs are of all shards of one workload (blis-gen --shard): merge them into one."`
	Format   string            `group:"Output:" default:"text" enum:"${formats}" help:"Output format: ${formats}."`
	Strict   bool              `rare:"" group:"Input:" help:"Treat warnings about the streams as errors."`
	Explain  attribution.Query `group:"Explanation:" placeholder:"WHAT" help:"Explain one decision (dec-000913), request (its id), percentile (ttft.p99, tpot.p99, e2e.p99; p99 is ttft.p99), the slowest or a time window (11.8s:14.2s)."`
	Report   report.Options    `embed:""`
	Try      string            `rare:"" group:"Explanation:" placeholder:"WORKLOAD" help:"Simulate the first hints on the workload of the run, and report their measured gains."`

	OutputTokens int64 `rare:"" group:"Requests:" placeholder:"N" help:"Use N output tokens for every completed request of a recording instead of its counts."`

	AllowPaths bool `rare:"" group:"Input:" env:"BLIS_ALLOW_PATHS" help:"Let the cluster file name files outside of its folder."`

	Plot     string `group:"Output:" choices:"figures" placeholder:"FIGURE" help:"Print a figure instead of the summary: ${figures}."`
	SVG      string `group:"Output:" name:"svg" placeholder:"FILE" help:"Also write the figure of --plot as FILE.svg."`
	HTML     string `group:"Output:" placeholder:"FILE" help:"Also write a report with figures: one file for browsers, FILE.html, of up to 8 runs."`
	Perfetto string `group:"Output:" placeholder:"FILE" help:"Also write the run as a timeline for ui.perfetto.dev: FILE.json or FILE.json.gz."`

	// Open opens the named streams, if there is more than one.
	Open func(name string) (io.ReadCloser, error) `kong:"-"`
	// WhatIf simulates a run again on its workload, with settings as in blis-sim --set.
	WhatIf func(ctx context.Context, run, workload string, settings []string) (io.ReadCloser, error) `kong:"-"`
	// Color: the output goes to a terminal.
	Color bool `kong:"-"`
	// Width is that of the terminal in columns, 0 if unknown.
	Width int `kong:"-"`
	// Warn receives warnings about the call; nil is silent.
	Warn func(string) `kong:"-"`
	// Progress receives the progress of reading; nil is silent.
	Progress func(string) `kong:"-"`
	// Large is called when a stream has many records, and again each time that their number has doubled; nil is not.
	Large func(records int) `kong:"-"`
}

func (o *Options) warn(warning string) {
	if o.Warn != nil {
		o.Warn(warning)
	}
}

// Validate checks combinations of options.
func (o *Options) Validate() error {
	if o.To.isSet && o.To.at == 0 {
		return fmt.Errorf("--to must be above 0, is %v", o.To)
	}
	if o.To.isSet && o.From.at >= o.To.at {
		return fmt.Errorf("--from (%v) must be before --to (%v)", o.From, o.To)
	}
	for i, data := range slices.Concat(o.Streams, o.Baseline, o.Parent) {
		if _, file := splitName(data); file == "-" && (i > 0 || len(o.Streams) == 0) {
			return fmt.Errorf("stdin (-) can only be the first stream; the others must be files")
		}
	}
	if err := o.checkMerge(); err != nil {
		return err
	}
	if err := o.checkTry(); err != nil {
		return err
	}
	if err := errors.Join(o.checkFiles(), o.checkHTML(), o.checkPlot()); err != nil {
		return err
	}
	if err := o.Report.Validate(); err != nil {
		return err
	}
	for _, streams := range [][]string{o.Streams, o.Baseline, o.Parent} {
		names := streamNames(streams)
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				return fmt.Errorf("two streams are called %s; name them, as in %s=FILE other=FILE", name, name)
			}
		}
	}
	if o.Explain.IsSet() && o.Format != "text" {
		return fmt.Errorf("--explain needs --format text, not %s", o.Format)
	}
	if o.Fitness != nil && o.Fitness.compiled != nil {
		return o.Fitness.compiled.CheckReferences(len(o.Baseline) > 0, len(o.Parent) > 0)
	}
	return nil
}

// streams are those to summarize.
func (o *Options) streams() []string {
	if len(o.Streams) == 0 {
		return []string{"-"}
	}
	return o.Streams
}

// First returns the file of the first stream, which the caller of Run opens.
func (o *Options) First() string {
	_, file := splitName(o.streams()[0])
	return file
}

// splitName splits NAME=FILE. Without a name it is the file name without directories and
// stream extensions.
func splitName(data string) (name, file string) {
	if before, after, ok := strings.Cut(data, "="); ok && before != "" && !strings.ContainsAny(before, "/.#") {
		return before, after
	}
	if data == "-" {
		return "stdin", data
	}
	name = path.Base(data)
	for _, ending := range []string{".zst", ".jsonl"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name, data
}

// streamNames returns the names of streams. Files with the same base name keep their full
// path.
func streamNames(streams []string) (names []string) {
	count := map[string]int{}
	for _, data := range streams {
		name, _ := splitName(data)
		names = append(names, name)
		count[name]++
	}
	for i, data := range streams {
		if _, file := splitName(data); count[names[i]] > 1 && file == data {
			names[i] = file
		}
	}
	return names
}

// Fitness is an expression or the name of a file.
type Fitness struct {
	src string
	// compiled is nil for a file, which is read together with the runs.
	compiled *fitness.Fitness
}

// UnmarshalText compiles an expression; see package fitness.
func (f *Fitness) UnmarshalText(text []byte) (err error) {
	f.src = string(text)
	if fitness.IsFile(f.src) {
		return nil
	}
	f.compiled, err = fitness.Expression("--fitness", f.src)
	var fault *strictyaml.Error
	if errors.As(err, &fault) && fault.Line > 0 {
		return fmt.Errorf("%d:%d: %s", fault.Line, fault.Col, fault.Msg)
	}
	return err
}

// isPartial reports whether the metrics cover only a part of the run.
func (o *Options) isPartial() bool { return o.Where.matches != nil || o.From.isSet || o.To.isSet }

// inTimeRange reports whether an arrival at that time is selected.
func (o *Options) inTimeRange(at stream.Micros) bool {
	return at >= o.From.at && (!o.To.isSet || at < o.To.at)
}

// Where is a condition on outcomes.
type Where struct {
	src     string
	matches func(*stream.Outcome) (bool, error)
}

// UnmarshalText compiles a CEL expression; see package filter.
func (w *Where) UnmarshalText(text []byte) (err error) {
	w.src = string(text)
	w.matches, err = filter.CompileOutcome(w.src)
	return err
}

// Instant is a simulated time since the workload's origin.
type Instant struct {
	at    stream.Micros
	isSet bool
}

// UnmarshalText reads a Go duration.
func (i *Instant) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("must be a duration such as 90s or 10m, not negative, is %q", text)
	}
	i.at, i.isSet = stream.Micros(d.Microseconds()), true
	return nil
}

func (i Instant) String() string { return (time.Duration(i.at) * time.Microsecond).String() }
