package cli

import (
	"context"
	"io"
	"strings"

	"blis/pkg/feedback"
	"blis/pkg/insight"
	"blis/pkg/recording"
	"blis/pkg/summarize"
)

// Summarize is blis-summarize.
var Summarize = Tool{
	name:  "blis-summarize",
	about: "Say what a run amounts to: latencies, throughput, goodput, fairness, cache hits; or describe a workload.",
	words: map[string]string{"formats": strings.Join(summarize.Formats.Names(), ","), "strategies": strings.Join(feedback.Strategies.Names(), ", "),
		"parts": strings.Join(insight.Parts.Names(), ", "), "components": strings.Join(insight.Components.Names(), ", ")},
	command: func() command { return &summarizeCommand{} },
}

type summarizeCommand struct {
	summarize.Options
	common
}

// input is the first stream, unless that is a recording of others', which run
// opens.
func (c *summarizeCommand) input() string {
	if recording.Foreign(c.First()) {
		return ""
	}
	if strings.HasPrefix(c.First(), "-#") {
		return "-"
	}
	return c.First()
}

func (c *summarizeCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Progress, o.Color = j.progress, j.color
	o.Open = func(name string) (io.ReadCloser, error) { return openStream(ctx, name, j.warn) }
	if recording.Foreign(c.First()) {
		in, err := o.Open(c.First())
		if err != nil {
			return err
		}
		return summarize.Run(ctx, in, j.out, o)
	}
	if file, choice, _ := strings.Cut(c.First(), "#"); file == "-" {
		in, err := openStdin(ctx, j.in, choice, j.warn)
		if err != nil {
			return err
		}
		return summarize.Run(ctx, in, j.out, o)
	}
	return summarize.Run(ctx, j.in, j.out, o)
}
