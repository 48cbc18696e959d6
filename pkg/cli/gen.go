package cli

import (
	"context"

	"blis/pkg/gen"
	"blis/pkg/record"
)

// Gen is blis-gen.
var Gen = Tool{
	name:    "blis-gen",
	about:   "Write a workload: requests sorted by arrival, from a spec, a built-in scenario or a public trace.",
	stream:  record.StreamWorkload,
	command: func() command { return &genCommand{} },
}

type genCommand struct {
	gen.Options
	common
}

func (c *genCommand) document() bool { return c.List != "" || c.PrintSpec }

func (c *genCommand) input() string {
	if c.ReadsStdin() {
		return "-"
	}
	return ""
}

func (c *genCommand) plain() bool { return c.Plain }

func (c *genCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Plain, o.Version, o.Warn, o.Progress = j.plain, record.Version, j.warn, j.progress
	return gen.Run(ctx, j.in, j.out, o)
}
