package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"blis/pkg/calibrate"
	"blis/pkg/hardware"
	"blis/pkg/model"
)

// Calibrate is blis-calibrate.
var Calibrate = Tool{
	name:  "blis-calibrate",
	about: "Fit latency coefficients to recordings of a real server, with confidence intervals and held-out errors.",
	examples: []usageExample{
		{"Coefficients from recordings at two rates",
			"blis-calibrate --model Qwen/Qwen3-8B --gpu H100 rate8.json rate20.json -o coefficients.yaml"},
		{"Errors of coefficients on another recording",
			"blis-calibrate --model Qwen/Qwen3-8B --gpu H100 --evaluate coefficients.yaml rate12.json"},
	},
	choices: func() map[string][]string {
		return map[string][]string{"models": modelNames(), "gpus": gpuNames()}
	},
	command: func() command { return &calibrateCommand{} },
}

// modelNames are the built-in models.
func modelNames() (names []string) {
	for _, a := range model.BuiltIns() {
		names = append(names, a.Name)
	}
	return names
}

// gpuNames are the built-in GPUs; nil if their files cannot be read.
func gpuNames() (names []string) {
	known, err := hardware.Open()
	if err != nil {
		return nil
	}
	for _, g := range known.GPUs() {
		names = append(names, g.ID)
	}
	return names
}

type calibrateCommand struct {
	calibrate.Options
	common
}

func (c *calibrateCommand) writesDocument() bool { return true }

// checkFlags rejects impossible values and flags without effect.
func (c *calibrateCommand) checkFlags() error {
	if c.Link != "" && len(c.Recordings) > 0 {
		return errors.New("--link fits a link, and needs no recording")
	}
	for _, flag := range c.givenFlags {
		switch {
		case c.Link != "" && slices.Contains(recordingFlags, flag):
			return fmt.Errorf("--%s has no effect with --link", flag)
		case flag == "output-tokens" && c.OutputTokens < 1:
			return fmt.Errorf("--output-tokens must be above 0, is %d", c.OutputTokens)
		case flag == "shared-prefix" && c.SharedPrefix < 0:
			return fmt.Errorf("--shared-prefix must be at least 0, is %d", c.SharedPrefix)
		case flag == "tp" && c.TP < 1:
			return fmt.Errorf("--tp must be at least 1, is %d", c.TP)
		case (flag == "holdout" || flag == "init" || flag == "latency") && c.Evaluate != "":
			return fmt.Errorf("--%s has no effect with --evaluate, which fits nothing", flag)
		}
	}
	if f, err := strconv.ParseFloat(c.Holdout, 64); err == nil && !(f >= 0 && f < 1) {
		return fmt.Errorf("--holdout must be at least 0 and below 1, is %s", c.Holdout)
	}
	return nil
}

// recordingFlags are those that concern recordings only.
var recordingFlags = []string{"model", "gpu", "tp", "cluster", "hardware", "holdout", "output-tokens", "shared-prefix",
	"evaluate", "latency", "init", "residuals"}

func (c *calibrateCommand) run(ctx context.Context, j stdio) error {
	o := c.Options
	o.Warn, o.Progress, o.Given = j.warn, j.progress, c.givenFlags
	inputs := &inputSpool{ctx: ctx, stdin: j.stdin}
	defer inputs.close()
	o.Stdin = func() (io.ReadCloser, error) { return inputs.open("-") }
	err := calibrate.Run(ctx, j.out, o)
	if usage, ok := errors.AsType[*calibrate.UsageError](err); ok {
		return usageError{fmt.Sprintf("%s; see blis-calibrate --help", usage)}
	}
	return err
}
