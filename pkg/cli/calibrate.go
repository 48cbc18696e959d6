package cli

import (
	"context"

	"blis/pkg/calibrate"
)

// Calibrate is blis-calibrate.
var Calibrate = Tool{
	name:    "blis-calibrate",
	about:   "Fit the coefficients of a latency model to recordings of a real server, and say how far they are to be trusted.",
	command: func() command { return &calibrateCommand{} },
}

type calibrateCommand struct {
	calibrate.Options
	common
}

func (c *calibrateCommand) document() bool { return true }

func (c *calibrateCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Warn, o.Progress = j.warn, j.progress
	return calibrate.Run(ctx, j.out, o)
}
