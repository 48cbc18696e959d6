package cli

import "context"

// Diff is blis-diff.
var Diff = Tool{
	name:    "blis-diff",
	about:   "Compare two runs, or a run and a recording of a real server. Not built yet.",
	command: func() command { return &diffCommand{} },
}

type diffCommand struct {
	A string `arg:"" optional:"" help:"Run to compare with."`
	B string `arg:"" optional:"" help:"Run or recording to compare."`
	common
}

func (*diffCommand) run(context.Context, job) error { return wrongCall{"not built yet"} }
