// Package calibrate fits the coefficients of a latency model to recordings of a real server,
// and reports their confidence intervals, which of them the data identify, and the errors of
// a simulation on held-out data.
//
// Step times and the server's own request times are fitted by regression. Client times are
// fitted with the simulator in the loop: the recording is replayed with its arrivals, lengths
// and repeated prompts until simulated clients measure what the real ones did.
package calibrate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// Options are the flags of blis-calibrate.
type Options struct {
	Recordings   []string `arg:"" optional:"" name:"recording" help:"FILE, FORMAT:FILE, FILE#NAME or recording:DIR (a client's output folder), all of one setup; - is stdin."`
	Model        string   `group:"Server:" choices:"models" placeholder:"NAME" help:"Model that was served (blis-sim --list models)."`
	GPU          string   `group:"Server:" choices:"gpus" name:"gpu" placeholder:"NAME" help:"GPU that served it (blis-sim --list gpus)."`
	TP           int      `group:"Server:" name:"tp" default:"0" placeholder:"N" help:"Tensor parallelism; default as recorded, or 1."`
	Cluster      string   `group:"Server:" short:"c" placeholder:"FILE" help:"Cluster file with the server's engine settings."`
	AllowPaths   bool     `rare:"" group:"Server:" env:"BLIS_ALLOW_PATHS" help:"Let the cluster file name files outside of its folder."`
	Hardware     []string `rare:"" group:"Server:" sep:"none" placeholder:"PATH" help:"File or directory of your own GPUs. Repeatable."`
	Holdout      string   `group:"Recordings:" default:"0.4" placeholder:"DATA" help:"Held-out data: FRACTION of time, stage:NAME or FILE."`
	OutputTokens int64    `rare:"" group:"Recordings:" placeholder:"N" help:"Every output has N tokens, whatever was recorded."`
	SharedPrefix int64    `rare:"" group:"Recordings:" placeholder:"N" help:"All prompts begin with the same N tokens, such as a system prompt (0: none)."`
	Evaluate     string   `group:"Fit:" placeholder:"COEFFICIENTS" help:"Fit nothing; report the errors of these coefficients."`
	Latency      string   `group:"Fit:" enum:"auto,linear,operators" default:"auto" help:"linear, operators (with measured kernels), or auto: operators if known."`
	Init         string   `rare:"" group:"Fit:" placeholder:"COEFFICIENTS" help:"Start from the coefficients of an earlier fit."`
	Link         string   `rare:"" group:"Fit:" placeholder:"FILE" help:"Fit a link instead, to transfers: a table with the columns bytes and ms."`
	Residuals    string   `group:"Output:" placeholder:"FILE" help:"Write measured and simulated times of each held-out request as CSV."`
	Format       string   `group:"Output:" enum:"text,json" default:"text" help:"text: YAML with the report as comments; json: the report."`

	// Given are the flags that the command line names.
	Given []string `kong:"-"`
	// Stdin opens the recording called -.
	Stdin func() (io.ReadCloser, error) `kong:"-"`
	// Warn and Progress report to the user. A nil func is silent.
	Warn     func(string) `kong:"-"`
	Progress func(string) `kong:"-"`
}

// UsageError is a mistake in the command line that only the recordings reveal.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

func (o *Options) warn(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}

func (o *Options) progress(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Run fits coefficients to the recordings of o, or evaluates given ones, and writes the
// result in o.Format.
func Run(ctx context.Context, out io.Writer, o Options) error {
	switch {
	case o.Link != "":
		return o.fitLink(out)
	case len(o.Recordings) == 0:
		return &UsageError{"expected \"<recording> ...\""}
	}
	var residuals *stream.File
	if o.Residuals != "" { // a fit takes minutes: errors come before it
		var err error
		if residuals, err = stream.Create(o.Residuals); err != nil {
			return fmt.Errorf("--residuals: %w", err)
		}
		defer residuals.Close()
	}
	report, err := o.calibrate(ctx)
	if err != nil {
		return err
	}
	for _, w := range append(report.Warnings, report.unusedFlags()...) {
		o.warn(w)
	}
	if residuals != nil {
		if err := report.writeResiduals(residuals); err != nil {
			return err
		}
	}
	if o.Format == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	return report.writeText(out)
}

// calibrate makes the report of a fit or of an evaluation.
func (o *Options) calibrate(ctx context.Context) (*report, error) {
	files, err := o.open(ctx, o.Recordings)
	if err != nil {
		return nil, err
	}
	s, err := newSetup(o, files)
	if err != nil {
		return nil, err
	}
	if given := cmp.Or(o.Evaluate, o.Init); given != "" {
		if s.given, err = s.deployment.ReadCoefficients(given, s.arch, o.Hardware...); err != nil {
			return nil, err
		}
		if f := s.given.Latency.Factors; f != nil && s.shape.operators != nil && !f.IsOf(s.shape.id) {
			s.warnf("%s was fitted with other kernels (%s) than these (%s): tables, kernel settings or the version of "+
				"BLIS differ", given, f.Kernels, s.shape.id)
		}
		if m := s.given.Latency.Model; o.Evaluate == "" && m != "linear" && s.given.Latency.Factors == nil {
			return nil, fmt.Errorf("%s: --init needs coefficients of the model linear or factors of the model "+
				"operators, these are of %s", given, m)
		}
	}
	return s.newReport(ctx)
}

// open reads recordings and passes on their warnings.
func (o *Options) open(ctx context.Context, names []string) ([]*recording.Recording, error) {
	var all []*recording.Recording
	for _, name := range names {
		o.progress("reading %s", name)
		r, err := o.read(ctx, name)
		if err != nil {
			return nil, err
		}
		for _, w := range r.Warnings {
			o.warn(r.Path + ": " + w)
		}
		for _, run := range r.Runs {
			for _, w := range run.Warnings {
				o.warn(strings.TrimSpace(r.Path+" "+run.Name) + ": " + w)
			}
		}
		if i := slices.IndexFunc(all, r.Overlap); i >= 0 {
			return nil, &UsageError{fmt.Sprintf("%s is the same recording as %s", name, names[i])}
		}
		all = append(all, r)
	}
	return all, nil
}

func (o *Options) read(ctx context.Context, name string) (*recording.Recording, error) {
	format, path := recording.Split(name)
	choice, stdin := recording.Stdin(path)
	if !stdin {
		return recording.Open(ctx, path, format)
	}
	in, err := o.Stdin()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return recording.Read(ctx, textio.Input{Name: "stdin", Path: choice, Stream: in}, format)
}

// unusedFlags warns of flags that had no effect on these recordings.
func (r *report) unusedFlags() (warnings []string) {
	o, steps := r.setup.options, len(r.setup.steps) > 0
	for _, f := range []struct {
		flag   string
		unused bool
		why    string
	}{
		{"holdout", steps && isFraction(o.Holdout), "on steps: every second step is held out"},
		{"latency", !r.fit.simulated, "on steps, or spans without arrivals: these are fitted by a line or a table"},
		{"init", !r.fit.simulated, "on steps or spans: a regression has no starting point"},
		{"shared-prefix", len(r.setup.replays) == 0, "on steps: they have no prompts"},
		{"output-tokens", len(r.setup.replays) == 0, "on steps: they have no outputs"},
	} {
		if f.unused && slices.Contains(o.Given, f.flag) {
			warnings = append(warnings, fmt.Sprintf("--%s has no effect %s", f.flag, f.why))
		}
	}
	return warnings
}
