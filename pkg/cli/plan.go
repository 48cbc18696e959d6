package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"blis/pkg/gen"
	"blis/pkg/plan"
	"blis/pkg/sim"
	"blis/pkg/stream"
	"blis/pkg/sweep"
)

// isPlan is true if the call searches a fleet.
func (c *simCommand) isPlan() bool { return c.Plan != "" }

// validatePlan rejects flags that a plan cannot have.
func (c *simCommand) validatePlan() error {
	switch {
	case !c.isPlan():
		return nil
	case c.isListing():
		return errors.New("--list, --print-config and --export have no effect with --plan")
	case c.Replay != "":
		return errors.New("--replay has no effect with --plan")
	case c.Series != nil:
		return errors.New("--series has no effect with --plan, whose runs write no records")
	case isTable(c.Output) || isFolder(c.Output):
		return fmt.Errorf("-o %s: a plan is a text, or a document with --format json", c.Output)
	}
	return nil
}

// plan searches the fleet. Another load is the workload that blis-gen --import blis:FILE --time-scale makes.
func (c *simCommand) plan(ctx context.Context, j stdio) error {
	f, conditions, err := plan.Read(c.Plan)
	if err != nil {
		return err
	}
	run := c.Options
	run.Given, run.Version, run.Plain = c.givenFlags, stream.Version, false
	if !slices.Contains(c.givenFlags, "trace") {
		run.Trace = stream.TraceLevels[0]
	}
	whole, err := c.readPlanned(ctx, j)
	if err != nil {
		return err
	}
	loads := map[string]float64{}
	info, _ := debug.ReadBuildInfo()
	call := plan.Call{Options: sweep.Options{Results: c.Sweep.Results}, Workload: c.Workload,
		Scaled: func(load float64) string {
			name := fmt.Sprintf("%s at %g x the load", c.Workload, load)
			loads[name] = load
			return name
		},
		Progress: func(runs int) {
			if j.progress != nil {
				j.progress(fmt.Sprintf("%d runs", runs))
			}
		}}
	call.Sweep = sweep.Call{Run: run, Workloads: []string{c.Workload}, Build: revisionOf(info),
		Open: func(name string) (io.ReadCloser, error) {
			load, scaled := loads[name]
			if !scaled {
				return io.NopCloser(bytes.NewReader(whole)), nil
			}
			return derived(ctx, bytes.NewReader(whole), gen.Options{TimeScale: gen.Factor(1 / load)})
		}}
	answer, err := plan.Run(ctx, f, conditions, call)
	if err != nil {
		return err
	}
	format := c.Format
	if suffix := strings.TrimPrefix(filepath.Ext(c.Output), "."); !slices.Contains(c.givenFlags, "format") &&
		(suffix == "svg" || suffix == "json") {
		format = suffix
	}
	switch format {
	case "svg":
		return answer.SVG(j.out)
	case "json":
		enc := json.NewEncoder(j.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(answer)
	}
	_, err = io.WriteString(j.out, answer.Text())
	return err
}

// readPlanned reads the workload, which is needed for several loads.
func (c *simCommand) readPlanned(ctx context.Context, j stdio) ([]byte, error) {
	in, err := openInput(ctx, c.Workload, j.stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	whole, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	_, err = sim.ReadWorkload(&input{Reader: bytes.NewReader(whole), name: in.name})
	return whole, asWorkload(err)
}
