package cli

import (
	"context"

	"blis/pkg/summarize"
)

// Summarize is blis-summarize.
var Summarize = Tool{
	name:    "blis-summarize",
	about:   "Say what a run amounts to: latencies, throughput, goodput, fairness, cache hits; or describe a workload.",
	command: func() command { return &summarizeCommand{} },
}

type summarizeCommand struct {
	summarize.Options
	common
}

func (c *summarizeCommand) input() string { return c.Input }

func (c *summarizeCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Progress = j.progress
	return summarize.Run(ctx, j.in, j.out, o)
}
