package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/sim"
	"blis/pkg/stream"
)

// Sim is blis-sim.
var Sim = Tool{
	name:    "blis-sim",
	about:   "Play a workload on a simulated cluster of LLM inference servers and write the run.",
	stream:  stream.StreamRun,
	tables:  true,
	words:   map[string]string{"lists": strings.Join(sim.Lists(), ","), "listed": strings.Join(sim.Lists(), ", ")},
	command: func() command { return &simCommand{} },
}

type simCommand struct {
	sim.Options
	common
}

// shows: the call reads no workload.
func (c *simCommand) shows() bool { return c.List != "" || c.PrintConfig }

// compares: the call writes no run, but what the comparison of one with its replay
// has found.
func (c *simCommand) compares() bool { return c.Replay != "" && !c.WhatIf() && !c.shows() }

func (c *simCommand) document() bool { return c.shows() || c.compares() }

func (c *simCommand) input() string {
	if c.shows() {
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
	return c.Contradiction()
}

// checkGiven refuses what tables have no place for, and what cannot be said of a run
// that was made before.
func (c *simCommand) checkGiven() error {
	if isTable(c.Output) && slices.Contains(c.given, "counterfactual") {
		return fmt.Errorf("--counterfactual has no effect: the tables of -o %s have no regrets; name a file for the run, such as run.jsonl.zst", c.Output)
	}
	if c.Replay == "" {
		return nil
	}
	for _, flag := range c.given {
		switch flag {
		case "replay", "check", "strict", "print-config":
		case "cluster", "list":
			return fmt.Errorf("--%s and --replay exclude each other: the configuration is that of the run", flag)
		case "output", "plain":
			if c.compares() {
				return fmt.Errorf("--%s has no effect: without --set or --policies --replay writes no run, it compares", flag)
			}
		default:
			if !c.WhatIf() {
				return fmt.Errorf("--%s contradicts --replay, which takes everything from the run; only a what-if (with --set or --policies) may say more", flag)
			}
		}
	}
	return nil
}

func (c *simCommand) plain() bool { return c.Plain }

func (c *simCommand) run(ctx context.Context, j job) error {
	o := c.Options
	if isTable(c.Output) {
		if c.Trace == "full" && slices.Contains(c.given, "trace") {
			j.warn("the tables have no steps, preemptions and snapshots, which --trace full writes into a run")
		}
		if c.Plain {
			j.warn("--plain has no effect on tables")
		}
	}
	o.Plain, o.Given, o.Version, o.Warn, o.Progress = j.plain, c.given, stream.Version, j.warn, j.progress
	return sim.Run(ctx, j.in, j.out, o)
}
