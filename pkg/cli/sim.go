package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"blis/pkg/record"
	"blis/pkg/sim"
)

// Sim is blis-sim.
var Sim = Tool{
	name:    "blis-sim",
	about:   "Play a workload on a simulated cluster of LLM inference servers and write the run.",
	stream:  record.StreamRun,
	tables:  true,
	words:   map[string]string{"lists": strings.Join(sim.Lists(), ","), "listed": strings.Join(sim.Lists(), ", ")},
	command: func() command { return &simCommand{} },
}

type simCommand struct {
	sim.Options
	common
}

func (c *simCommand) document() bool { return c.List != "" || c.PrintConfig }

func (c *simCommand) input() string {
	if c.document() {
		return ""
	}
	return c.Workload
}

// Validate is called by kong.
func (c *simCommand) Validate() error {
	if isTable(c.Output) && c.Trace == "minimal" {
		return errors.New("--trace=minimal has no outcomes to make a table of")
	}
	for _, set := range c.Set {
		if !strings.Contains(set, "=") && !strings.HasPrefix(set, "@") {
			return fmt.Errorf("--set %s: must be PATH=VALUE or @FILE", set)
		}
	}
	if c.Format != "text" && c.List == "" {
		return errors.New("--format has no effect without --list")
	}
	return nil
}

func (c *simCommand) plain() bool { return c.Plain }

func (c *simCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Plain, o.Version, o.Warn, o.Progress = j.plain, record.Version, j.warn, j.progress
	return sim.Run(ctx, j.in, j.out, o)
}
