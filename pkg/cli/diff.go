package cli

import (
	"context"
	"errors"

	"blis/pkg/diff"
)

// Diff is blis-diff. Its exit codes are those of diff(1): 1 is no failure.
var Diff = Tool{
	name:    "blis-diff",
	about:   "Compare two runs of a workload, request by request, or a run and a recording of a real server.",
	trouble: exitWrongCall,
	command: func() command { return &diffCommand{} },
}

type diffCommand struct {
	diff.Options
	common
}

// checkGiven refuses what has no effect.
func (c *diffCommand) checkGiven() error {
	for _, flag := range c.given {
		switch {
		case flag == "by" && !c.Rank:
			return errors.New("--by has no effect without --rank")
		case flag == "output-tokens" && c.OutputTokens == 0:
			return errors.New("--output-tokens must be above 0, is 0")
		}
	}
	return nil
}

// errDiffers ends a call that has found, and written, what it looked for.
var errDiffers = errors.New("different")

// document: the product is no stream.
func (*diffCommand) document() bool { return true }

func (c *diffCommand) run(ctx context.Context, j job) error {
	o := c.Options
	o.Progress = j.progress
	inputs := &reopener{ctx: ctx, stdin: j.stdin}
	defer inputs.close()
	v, err := diff.Run(ctx, inputs.open, j.out, o)
	if err == nil && (v.Failed || v.Differs && len(o.FailIf) == 0) {
		return errDiffers
	}
	return err
}
