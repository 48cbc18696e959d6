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
	"sync"

	"blis/pkg/gen"
	"blis/pkg/stream"
	"blis/pkg/sweep"
)

// isSweep is true if the call simulates many configurations.
func (c *simCommand) isSweep() bool { return c.Sweep.Sweep != "" }

// writesRows is true if the output of a sweep is a table.
func (c *simCommand) writesRows() bool { return c.isSweep() }

// sweepInput is stdin if points come from there. Workloads are opened when they are needed.
func (c *simCommand) sweepInput() string {
	if c.Sweep.Sweep == "-" {
		return "-"
	}
	return ""
}

// validateSweep rejects flags that need --sweep, and those that a sweep cannot have.
func (c *simCommand) validateSweep() error {
	s := &c.Sweep
	if c.isSweep() {
		switch {
		case s.KeepRuns && s.Results == "":
			return errors.New("--keep-runs has no effect without --results, which names the folder")
		case s.KeepRuns && s.EarlyStop:
			return errors.New("--keep-runs keeps whole runs, and --early-stop ends some of them: give one of them")
		case c.Series != nil && !s.KeepRuns:
			return errors.New("--series has no effect with --sweep, unless --keep-runs keeps the runs")
		case s.Sweep == "-" && len(c.Others) > 0:
			return errors.New("the call names several workloads, but runs on stdin (--sweep -) name their own: " +
				"name at most one, for those that name none")
		case isFolder(c.Output):
			return fmt.Errorf("-o %s: a sweep writes one file; --results DIR --keep-runs keeps the runs", c.Output)
		case c.isListing():
			return errors.New("--list and --print-config have no effect with --sweep")
		}
		return c.validateTop()
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"fitness", s.Fitness != ""}, {"results", s.Results != "" && !c.isPlan()}, {"keep-runs", s.KeepRuns},
		{"early-stop", s.EarlyStop},
		{"shard", s.Shard != sweep.Shard{}}} {
		if flag.given {
			return fmt.Errorf("--%s has no effect without --sweep", flag.name)
		}
	}
	if len(c.Others) > 0 {
		for _, name := range append([]string{c.Workload}, c.Others...) {
			if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
				return fmt.Errorf("%s looks like a cluster file: give it with -c", name)
			}
		}
		return fmt.Errorf("unexpected argument %s: several workloads need --sweep", c.Others[0])
	}
	return nil
}

// checkSweepFlags rejects flags of single runs.
func (c *simCommand) checkSweepFlags() error {
	if slices.Contains(c.givenFlags, "top") && (!c.isSweep() || c.Export == "") {
		return errors.New("--top has no effect without --sweep and --export")
	}
	if !c.isSweep() {
		return nil
	}
	for _, flag := range []string{"replay", "format", "space", "plain", "plan"} {
		if slices.Contains(c.givenFlags, flag) {
			return fmt.Errorf("--%s has no effect with --sweep", flag)
		}
	}
	return nil
}

// workloads are those of the call. Stdin is one only if nothing else is on it.
func (c *simCommand) workloads() []string {
	if c.Workload == "-" && c.Sweep.Sweep == "-" {
		return nil
	}
	return append([]string{c.Workload}, c.Others...)
}

// sweep runs the points of --sweep.
func (c *simCommand) sweep(ctx context.Context, j stdio) error {
	run := c.Options
	run.Given, run.Version, run.Plain = c.givenFlags, stream.Version, false
	info, _ := debug.ReadBuildInfo()
	call := sweep.Call{Run: run, Workloads: c.workloads(), Build: revisionOf(info),
		Open: func(name string) (io.ReadCloser, error) {
			if name == "-" && (c.Sweep.Sweep == "-" || isTerminal(j.stdin)) {
				return nil, errors.New("the workload cannot be read from stdin: name a file")
			}
			return openInput(ctx, name, j.stdin)
		}}
	w := derivedWorkloads{ctx: ctx, open: call.Open, of: map[string]derivation{}}
	call.Open, call.Prefix, call.AtRate = w.Open, w.Prefix, w.AtRate
	call.Warn = j.warn
	if j.progress != nil {
		call.Progress = func(done int) { j.progress(fmt.Sprintf("%d results", done)) }
	}
	out := newResultWriter(c.Output, j.out)
	if c.Export != "" {
		out = &bestWriter{target: c.Export, top: c.Top, call: call, out: j.out}
	}
	if err := sweep.Run(ctx, j.in, out.write, c.Sweep, call); err != nil {
		if _, complete := errors.AsType[sweep.AllFailed](err); complete {
			return errors.Join(err, out.close())
		}
		return err
	}
	return out.close()
}

// derivedWorkloads opens files, and the first requests or other rates of them, as blis-gen --import blis:FILE with
// --limit or --rate writes them.
type derivedWorkloads struct {
	ctx  context.Context
	open func(name string) (io.ReadCloser, error)
	mu   sync.Mutex
	of   map[string]derivation // by name
}

// derivation is how a workload is made of another one.
type derivation struct {
	workload string
	options  gen.Options
}

// Prefix returns the name of the first n requests or sessions of a workload.
func (w *derivedWorkloads) Prefix(workload string, n int) string {
	name := fmt.Sprintf("the first %d of %s", n, workload)
	return w.name(name, derivation{workload, gen.Options{Limit: gen.Count(n)}})
}

// AtRate returns the name of a workload with that many arrivals per second.
func (w *derivedWorkloads) AtRate(workload string, rate float64) string {
	name := fmt.Sprintf("%s at %v/s", workload, rate)
	return w.name(name, derivation{workload, gen.Options{Rate: gen.Factor(rate)}})
}

func (w *derivedWorkloads) name(name string, d derivation) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[name] = d
	return name
}

// Open opens a file or a workload that Prefix or AtRate has named.
func (w *derivedWorkloads) Open(name string) (io.ReadCloser, error) {
	w.mu.Lock()
	d, ok := w.of[name]
	w.mu.Unlock()
	if !ok {
		return w.open(name)
	}
	if d.workload == "-" {
		return nil, errors.New("halving and rates read the workload several times, which stdin cannot: name a file")
	}
	in, err := w.Open(d.workload)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return derived(w.ctx, in, d.options)
}

// derived is a workload as blis-gen --import blis:FILE writes it with these options.
func derived(ctx context.Context, in io.Reader, o gen.Options) (io.ReadCloser, error) {
	o.Import, o.Plain, o.Version = []gen.Import{{Format: "blis", File: "-"}}, true, stream.Version
	var out bytes.Buffer
	err := gen.Run(ctx, in, &out, o)
	return io.NopCloser(&out), err
}

// resultWriter writes the results of a sweep.
type resultWriter interface {
	write(*sweep.Result) error
	close() error
}

// newResultWriter returns the writer for an output of that name.
func newResultWriter(name string, out io.Writer) resultWriter {
	if isCSV(name) || strings.HasSuffix(name, ".parquet") {
		return &resultTable{name: name, out: out}
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	return resultLines{enc}
}

// resultLines writes a line for each result at once: the process that writes points to stdin waits for it.
type resultLines struct{ *json.Encoder }

func (w resultLines) write(r *sweep.Result) error { return w.Encode(r) }
func (resultLines) close() error                  { return nil }
