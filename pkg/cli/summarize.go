package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"blis/pkg/attribution"
	"blis/pkg/figures"
	"blis/pkg/recording"
	"blis/pkg/report"
	"blis/pkg/sim"
	"blis/pkg/stream"
	"blis/pkg/summarize"
	"blis/pkg/textio"
)

// Summarize is blis-summarize.
var Summarize = Tool{
	name:  "blis-summarize",
	about: "Summarize runs of blis-sim: metrics, score and explanation. Or describe a workload of blis-gen.",
	vars: map[string]string{"formats": strings.Join(summarize.Formats.Names(), ","),
		"strategies": strings.Join(report.Strategies.Names(), ", "),
		"parts":      strings.Join(attribution.Parts().Names(), ", "),
		"components": strings.Join(attribution.Components().Names(), ", "),
		"figures":    strings.Join(figures.Charts.Names(), ", ")},
	examples: []usageExample{
		{"Why requests missed their targets, and a report with figures",
			"blis-summarize --hints --html report.html run.jsonl.zst"},
		{"Metrics of two runs side by side", "blis-summarize --format table old=run.jsonl.zst new=random.jsonl.zst"},
	},
	choices: func() map[string][]string {
		return map[string][]string{"strategies": report.Strategies.Names(), "parts": attribution.Parts().Names(),
			"components": attribution.Components().Names(), "figures": figures.Charts.Names()}
	},
	command: func() command { return &summarizeCommand{} },
}

type summarizeCommand struct {
	summarize.Options
	common
}

// input is stdin if that is the first stream. run opens files, because some are
// recordings, and because the output reports a missing file, too.
func (c *summarizeCommand) input() string {
	if file, _, _ := strings.Cut(c.First(), "#"); file == "-" { // or a part of it: -#NAME
		return "-"
	}
	return ""
}

// checkFlags rejects flags that tables and figures do not use, and texts in files of figures.
func (c *summarizeCommand) checkFlags() error {
	switch filepath.Ext(c.Output) {
	case ".html":
		return fmt.Errorf("-o %s would be a text: write the report with --html %[1]s", c.Output)
	case ".svg":
		return fmt.Errorf("-o %s would be a text: write a figure with --plot FIGURE --svg %[1]s", c.Output)
	}
	if slices.Contains(c.givenFlags, "output-tokens") && (c.OutputTokens < 1 || c.OutputTokens > textio.MaxTokens) {
		return fmt.Errorf("--output-tokens must be between 1 and %d, is %d", textio.MaxTokens, c.OutputTokens)
	}
	if c.Format != "text" && c.Format != "json" {
		return c.rejectFlags("has no effect with --format "+c.Format+": it needs --format text or json", textFlags...)
	}
	if c.Plot != "" && c.HTML == "" {
		return c.rejectFlags("has no effect with --plot, which prints only a figure",
			append([]string{"baseline", "parent", "try"}, textFlags...)...)
	}
	return nil
}

// textFlags are about the text that explains a run.
var textFlags = []string{"strategy", "max-tokens", "examples", "focus", "component", "hints"}

// rejectFlags returns an error about the first of the flags that is given.
func (c *summarizeCommand) rejectFlags(why string, flags ...string) error {
	for _, flag := range flags {
		if slices.Contains(c.givenFlags, flag) {
			return fmt.Errorf("--%s %s", flag, why)
		}
	}
	return nil
}

// largeRunPercent lets the heap grow by less than Go's default before garbage is collected, once a stream has
// largeRunRecords. With fewer it may grow by about as many bytes, which are more percent.
const (
	largeRunPercent = 10
	largeRunRecords = 1 << 21
)

func (c *summarizeCommand) run(ctx context.Context, j stdio) error {
	o, recordings := c.Options, 0
	change := func(run *recording.Run) {
		if recordings++; o.OutputTokens > 0 {
			run.SetOutputTokens(o.OutputTokens)
		}
	}
	o.Progress, o.Color, o.Width, o.Warn = j.progress, j.color, j.width, j.warn
	usual := 0
	o.Large = func(records int) {
		if os.Getenv("GOGC") == "" {
			now := debug.SetGCPercent(largeRunPercent * max(1, largeRunRecords/records))
			usual = cmp.Or(usual, now)
		}
	}
	defer func() {
		if usual != 0 {
			debug.SetGCPercent(usual)
		}
	}()
	warn := func(msg string) error {
		if o.Strict {
			return errors.New(msg)
		}
		j.warn(msg)
		return nil
	}
	o.Open = func(name string) (io.ReadCloser, error) {
		if file, choice, _ := strings.Cut(name, "#"); file == "-" {
			return openStdinStream(ctx, j.in, choice, change, warn)
		}
		return openStream(ctx, name, change, warn)
	}
	o.WhatIf = func(ctx context.Context, run, workload string, settings []string) (io.ReadCloser, error) {
		return whatIf(ctx, run, workload, settings, warn)
	}
	if err := summarize.Run(ctx, nil, j.out, o); err != nil || o.OutputTokens == 0 || recordings > 0 {
		return err
	}
	return warn("--output-tokens has no effect: it is for recordings, and no stream is the file of a benchmark")
}

// whatIf simulates a run again, with other settings, into a file that the system deletes.
func whatIf(ctx context.Context, run, workload string, settings []string, warn func(string) error) (io.ReadCloser,
	error) {
	in, err := openStream(ctx, workload, func(*recording.Run) {}, warn)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	file, err := os.CreateTemp("", "blis-")
	if err != nil {
		return nil, err
	}
	err = os.Remove(file.Name())
	if err == nil {
		err = sim.Run(ctx, in, file, sim.Options{Replay: run, Workload: workload, Set: settings, Plain: true,
			Given: []string{"replay", "set"}, Version: stream.Version, Trace: "decisions", Format: "text"})
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
