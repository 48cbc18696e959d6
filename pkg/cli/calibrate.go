package cli

import "context"

// Calibrate is blis-calibrate.
var Calibrate = Tool{
	name:    "blis-calibrate",
	about:   "Fit the coefficients of a latency model to measured traces. Not built yet.",
	command: func() command { return &calibrateCommand{} },
}

type calibrateCommand struct {
	Recordings []string `arg:"" optional:"" help:"Recordings of a real server."`
	common
}

func (*calibrateCommand) run(context.Context, job) error { return wrongCall{"not built yet"} }
