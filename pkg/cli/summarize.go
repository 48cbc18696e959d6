package cli

import (
	"context"
	"io"
	"strings"

	"blis/pkg/summarize"
)

// Summarize is blis-summarize.
var Summarize = Tool{
	name:    "blis-summarize",
	about:   "Say what a run amounts to: latencies, throughput, goodput, fairness, cache hits; or describe a workload.",
	words:   map[string]string{"formats": strings.Join(summarize.Formats.Names(), ",")},
	command: func() command { return &summarizeCommand{} },
}

type summarizeCommand struct {
	summarize.Options
	common
}

func (c *summarizeCommand) input() string { return c.First() }

func (c *summarizeCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Progress, o.Color = j.progress, j.color
	o.Open = func(name string) (io.ReadCloser, error) { return openInput(ctx, name, nil) }
	return summarize.Run(ctx, j.in, j.out, o)
}
