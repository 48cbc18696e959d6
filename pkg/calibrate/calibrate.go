// Package calibrate fits the coefficients of a latency model to what a real server
// was seen to do, and says how far they are to be trusted: which of them the data
// can tell apart, between what values they lie, and how wrong a simulation with
// them is on data that they were not fitted to.
//
// Where there are step times, coefficients are a regression on them; where the
// server's own times of requests are known, one on phases of prefill and decode.
// What only a client saw is fitted with the simulator in the loop: the recording is
// played again, with the same arrivals, lengths and repeated prompts, until what the
// simulated clients see is what the real ones saw.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blis/pkg/hardware"
	"blis/pkg/model"
	"blis/pkg/recording"
	"blis/pkg/textio"
)

// Options are what a call of blis-calibrate may say.
type Options struct {
	Recordings   []string `arg:"" name:"recording" help:"Recordings of a real server, FILE, FORMAT:FILE or FILE#NAME; - is stdin. Several of one setup are fitted together."`
	Model        string   `placeholder:"NAME" help:"Model that was served (blis-sim --list models)."`
	GPU          string   `name:"gpu" placeholder:"NAME" help:"GPU that it ran on (blis-sim --list gpus)."`
	TP           int      `name:"tp" default:"0" placeholder:"N" help:"Tensor parallelism; absent, what the recordings say, or 1."`
	Cluster      string   `short:"c" placeholder:"FILE" help:"Cluster file of the server, with the engine's settings (max_num_seqs, preset, blocks) and the balancer; its latency is not used."`
	Hardware     []string `sep:"none" placeholder:"PATH" help:"A file or directory (*.yaml) of your own GPUs, beside the built-in ones. Repeatable."`
	Holdout      string   `default:"0.4" placeholder:"PART" help:"What the fit does not see and is judged by: the last part of the time of each stage (0.4; 0: nothing), a stage (stage:NAME), or another recording (FILE)."`
	OutputTokens int64    `placeholder:"N" help:"Every answer had N tokens, whatever the recordings say: where clients counted by tokenizing again."`
	Check        string   `placeholder:"COEFFICIENTS" help:"Fit nothing: say how wrong a simulation with these coefficients is on the recordings."`
	Refine       string   `placeholder:"COEFFICIENTS" help:"Begin where an earlier fit ended."`
	Residuals    string   `placeholder:"FILE" help:"Write what each request saw, measured and simulated, as CSV."`
	Format       string   `enum:"text,json" default:"text" help:"text: coefficients as YAML, the report as comments in it; json: the report."`
	Seed         uint64   `default:"0" help:"Seed of the resamples that intervals of steps and of server's spans come from."`

	// Given are the flags that the call names, of which those without effect are told.
	Given []string `kong:"-"`
	// Stdin is what a recording called - is read from.
	Stdin func() (io.ReadCloser, error) `kong:"-"`
	// Warn and Progress speak to the user. A nil func is silent.
	Warn     func(string) `kong:"-"`
	Progress func(string) `kong:"-"`
}

// CallError is a mistake in what a call says of the recordings.
type CallError struct{ Msg string }

func (e *CallError) Error() string { return e.Msg }

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

// Run fits coefficients to the recordings of o, or checks given ones, and writes
// what o.Format asks for.
func Run(ctx context.Context, out io.Writer, o Options) error {
	if len(o.Recordings) == 0 {
		return errors.New("name at least one recording")
	}
	if o.Residuals != "" {
		if err := writable(o.Residuals); err != nil {
			return fmt.Errorf("--residuals: %w", err)
		}
	}
	all, err := open(ctx, o.Recordings, &o)
	if err != nil {
		return err
	}
	report, err := o.calibrate(ctx, all)
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		o.warn(w)
	}
	report.warnIdle()
	if o.Residuals != "" {
		rows, err := report.residuals(o.Residuals)
		if err != nil {
			return err
		}
		if rows == 0 {
			o.warn(fmt.Sprintf("--residuals: %s has no request: none was judged by", o.Residuals))
		}
	}
	if o.Format == "json" {
		return report.writeJSON(out)
	}
	return report.writeText(out)
}

// calibrate is Run between its input and its output.
func (o *Options) calibrate(ctx context.Context, all []*recording.Recording) (*Report, error) {
	s, err := o.setup(all)
	if err != nil {
		return nil, err
	}
	if o.Check != "" {
		set, err := readSet(o.Check, s)
		if err != nil {
			return nil, err
		}
		return s.check(ctx, set)
	}
	if o.Refine != "" {
		if s.earlier, err = readSet(o.Refine, s); err != nil {
			return nil, err
		}
		if s.earlier.Latency.Model != "linear" {
			return nil, fmt.Errorf("%s: a fit can begin with the model linear, this is %s", o.Refine, s.earlier.Latency.Model)
		}
	}
	return s.fit(ctx)
}

// open reads recordings; the warnings of files are passed on.
func open(ctx context.Context, files []string, o *Options) ([]*recording.Recording, error) {
	var all []*recording.Recording
	for _, name := range files {
		o.progress("reading %s", name)
		format, path := recording.Split(name)
		r, err := o.read(ctx, path, format)
		if err != nil {
			return nil, err
		}
		path = r.Path
		for _, w := range r.Warnings {
			o.warn(fmt.Sprintf("%s: %s", path, w))
		}
		for _, run := range r.Runs {
			for _, w := range run.Warnings {
				o.warn(fmt.Sprintf("%s: %s", strings.TrimSpace(path+" "+run.Name), w))
			}
		}
		if i := slices.IndexFunc(all, func(a *recording.Recording) bool { return a.Overlap(r) }); i >= 0 {
			return nil, &CallError{fmt.Sprintf("%s is the same recording as %s", name, files[i])}
		}
		all = append(all, r)
	}
	return all, nil
}

// read reads one recording, of a file or of stdin.
func (o *Options) read(ctx context.Context, path, format string) (*recording.Recording, error) {
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

// readSet reads the coefficients that a file has for the setup: those of another model,
// GPU or parallelism are a fault, as are none, whatever else is known of the setup.
func readSet(name string, s *setup) (*hardware.Set, error) {
	sets, err := hardware.ReadSets(name, s.options.Hardware...)
	if err != nil {
		return nil, err
	}
	var have []string
	for _, set := range sets {
		if s.isOf(set) {
			return set, nil
		}
		have = append(have, served(set.Key))
	}
	if have == nil {
		have = []string{"none"}
	}
	return nil, fmt.Errorf("%s: has no coefficients for %s (has %s)", name, served(s.key), strings.Join(have, "; "))
}

// isOf reports whether coefficients are of the setup's model, GPU and parallelism.
func (s *setup) isOf(set *hardware.Set) bool {
	key := set.Key
	if a, err := model.BuiltIn(key.Model); err == nil {
		key.Model = a.Name
	}
	if strings.EqualFold(key.Model, s.key.Model) || strings.EqualFold(key.Model, s.deployment.Model) {
		key.Model = s.key.Model
	}
	return key == s.key
}

// served says for people what coefficients are of.
func served(k hardware.Key) string {
	text := fmt.Sprintf("%s on %s, tensor parallelism %d", k.Model, k.GPU, k.TensorParallelSize)
	if k.PipelineParallelSize > 1 {
		text += fmt.Sprintf(", pipeline parallelism %d", k.PipelineParallelSize)
	}
	if k.DataParallelSize > 1 {
		text += fmt.Sprintf(", data parallelism %d", k.DataParallelSize)
	}
	return text
}

// writable reports whether create can make a file, before there is anything to write.
func writable(name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if fault := (*fs.PathError)(nil); errors.As(err, &fault) {
		return fmt.Errorf("%s: %w", name, fault.Err)
	} else if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// create makes a file that appears only when write has ended well.
func create(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
