package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/deploy"
	"blis/pkg/sim"
	"blis/pkg/stream"
	"blis/pkg/sweep"
)

// Sim is blis-sim.
var Sim = Tool{
	name:   "blis-sim",
	about:  "Simulate a workload on a cluster of LLM inference servers and write the run.",
	stream: stream.StreamRun,
	tables: true,
	vars: map[string]string{"lists": strings.Join(sim.Lists(), ","), "listed": strings.Join(sim.Lists(), ", "),
		"targets": strings.Join(deploy.Targets.Names(), ","), "targeted": strings.Join(deploy.Targets.Names(), ", "),
		"spaces": strings.Join(sim.Spaces, ","), "goals": strings.Join(stream.ClairvoyantGoals, ",")},
	settings: map[string]string{"admission": "admission", "priority": "priority", "routing": "routing",
		"scheduler": "scheduler", "autoscale": "autoscale", "model": "deployments.main.model",
		"gpu": "deployments.main.gpu", "replicas": "deployments.main.replicas",
		"tp": "deployments.main.engine.tensor_parallel_size"},
	advice: map[string]string{"load": changeLoad, "rate": changeLoad, "time-scale": changeLoad,
		"policy": "-p (--policies) names a policy bundle, --set routing=VALUE the router"},
	examples: []usageExample{
		{"Two replicas, with invariants checked",
			"blis-sim --set deployments.main.replicas=2 --check workload.jsonl.zst -o run.jsonl.zst"},
		{"The built-in cluster, and a summary", "blis-gen | blis-sim | blis-summarize"},
	},
	command: func() command { return &simCommand{} },
}

// changeLoad answers flags of blis-gen: a simulation takes its arrivals as they are.
const changeLoad = "the load is that of the workload: blis-gen --import blis:FILE --rate R changes it"

type simCommand struct {
	sim.Options
	Others []string      `arg:"" optional:"" name:"workloads" help:"More workloads, for --sweep."`
	Sweep  sweep.Options `embed:""`
	Top    int           `rare:"" group:"Many runs:" default:"5" placeholder:"N" help:"Number of the best configurations that --sweep with --export writes."`
	Plan   string        `group:"Many runs:" placeholder:"FILE" help:"Find the cheapest fleet that serves the workload within the limits of a plan file."`
	common
}

// isListing is true if the call prints a list or a configuration and reads no workload.
func (c *simCommand) isListing() bool {
	return c.List != "" || c.PrintConfig || c.Export != "" && !c.isSweep()
}

// isComparison is true if the call only compares a run with its replay.
func (c *simCommand) isComparison() bool { return c.Replay != "" && !c.WhatIf() && !c.isListing() }

func (c *simCommand) writesDocument() bool {
	return c.isListing() || c.isComparison() || c.isSweep() || c.isPlan()
}

func (c *simCommand) input() string {
	if c.isSweep() {
		return c.sweepInput()
	}
	if c.isListing() || c.isPlan() {
		return ""
	}
	return c.Workload
}

// Validate is called by kong.
func (c *simCommand) Validate() error {
	if err := cmp.Or(c.validateSweep(), c.validatePlan()); err != nil {
		return err
	}
	if !c.isSweep() && isTable(c.Output) && c.Trace == "minimal" && !c.isListing() {
		return errors.New("--trace=minimal writes no outcomes for a table")
	}
	for _, set := range c.Set {
		if !strings.Contains(set, "=") && !strings.HasPrefix(set, "@") {
			return fmt.Errorf("--set %s: must be PATH=VALUE or @FILE", set)
		}
	}
	if c.Format != "text" && c.List == "" && !c.isPlan() {
		return errors.New("--format has no effect without --list or --plan")
	}
	if c.Format == "svg" && !c.isPlan() {
		return errors.New("--format=svg has no effect without --plan")
	}
	if c.Export != "" && (c.PrintConfig || c.List != "") {
		return errors.New("--export, --list and --print-config each print something else: give one of them")
	}
	if c.Space != sim.Spaces[0] && c.List != "policies" {
		return errors.New("--space has no effect without --list policies")
	}
	return c.Contradiction()
}

// checkFlags rejects what tables cannot hold, and flags that contradict a replayed run.
func (c *simCommand) checkFlags() error {
	if err := c.checkSweepFlags(); err != nil {
		return err
	}
	if isTable(c.Output) && slices.Contains(c.givenFlags, "counterfactual") {
		return fmt.Errorf("--counterfactual has no effect: tables (-o %s) have no regret records; "+
			"write a run, such as run.jsonl.zst", c.Output)
	}
	if c.Replay == "" {
		return nil
	}
	for _, flag := range c.givenFlags {
		switch flag {
		case "replay", "check", "strict", "print-config", "export":
		case "cluster", "list":
			return fmt.Errorf("--%s cannot be used with --replay, which takes the configuration from the run", flag)
		case "output", "plain":
			if c.isComparison() {
				return fmt.Errorf("--%s has no effect: --replay without --set or --policies only compares "+
					"and writes no run", flag)
			}
		default:
			if !c.WhatIf() {
				return fmt.Errorf("--%s cannot be used with --replay, which takes everything from the run, "+
					"except in a what-if (--set or --policies)", flag)
			}
		}
	}
	return nil
}

func (c *simCommand) plain() bool { return c.Plain }

func (c *simCommand) run(ctx context.Context, j stdio) error {
	if c.isSweep() {
		return c.sweep(ctx, j)
	}
	if c.isPlan() {
		return c.plan(ctx, j)
	}
	o := c.Options
	if isTable(c.Output) {
		if c.Trace == "full" && slices.Contains(c.givenFlags, "trace") {
			if isFolder(c.Output) {
				j.warn("tables hold no preemptions, transfers or snapshots; write a run to get those of --trace full")
			} else {
				j.warn("this table holds only outcomes; write a folder (-o DIR/) to get the steps of --trace full")
			}
		}
		if c.Plain {
			j.warn("--plain has no effect on tables")
		}
	}
	o.Plain, o.Given, o.Version, o.Warn, o.Progress = j.plain, c.givenFlags, stream.Version, j.warn, j.progress
	err := sim.Run(ctx, j.in, j.out, o)
	if c.Replay == "" {
		return asWorkload(err)
	}
	return err
}

// asWorkload adds to an error in the first line of a workload where workloads come from: traces and recordings are
// given to blis-sim by mistake.
func asWorkload(err error) error {
	if syntax, ok := errors.AsType[*stream.SyntaxError](err); ok && syntax.Line == 1 {
		return fmt.Errorf("%w; blis-sim reads workloads: blis-gen --import FORMAT:FILE converts traces and recordings",
			err)
	}
	return err
}
