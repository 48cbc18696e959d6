package cli

import (
	"context"
	"errors"
	"os"
	"runtime/debug"

	"blis/pkg/diff"
)

// Diff is blis-diff. It has the exit codes of diff(1), where 1 means a difference.
var Diff = Tool{
	name:        "blis-diff",
	about:       "Compare two runs request by request, or a run with a recording of a real server.",
	failureCode: exitUsage,
	examples: []usageExample{
		{"What changed, with confidence intervals", "blis-diff run.jsonl.zst random.jsonl.zst"},
		{"Fail in CI if the p99 of TTFT is 5 % longer",
			"blis-diff --fail-if 'd.ttft.p99.relative_diff > 0.05' run.jsonl.zst random.jsonl.zst"},
	},
	command: func() command { return &diffCommand{} },
}

type diffCommand struct {
	diff.Options
	common
}

// checkFlags rejects flags without effect.
func (c *diffCommand) checkFlags() error {
	for _, flag := range c.givenFlags {
		switch {
		case flag == "rank-by" && !c.Rank:
			return errors.New("--rank-by has no effect without --rank")
		case flag == "output-tokens" && c.OutputTokens == 0:
			return errors.New("--output-tokens must be above 0, is 0")
		}
	}
	return nil
}

// gcPercent lets the heap grow by less than Go's default before garbage is collected. That takes little time, for what
// blis-diff keeps has few pointers.
const gcPercent = 10

// errDiffers ends a call that wrote its comparison and found a difference.
var errDiffers = errors.New("different")

func (*diffCommand) writesDocument() bool { return true }

func (c *diffCommand) run(ctx context.Context, j stdio) error {
	o := c.Options
	o.Progress = j.progress
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	}
	inputs := &inputSpool{ctx: ctx, stdin: j.stdin}
	defer inputs.close()
	v, err := diff.Run(ctx, inputs.open, j.out, o)
	if err == nil && (v.Failed || v.Differs && len(o.FailIf) == 0) {
		return errDiffers
	}
	return err
}
