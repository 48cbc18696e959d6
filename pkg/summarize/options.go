package summarize

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"blis/pkg/attribution"
	"blis/pkg/filter"
	"blis/pkg/fitness"
	"blis/pkg/report"
	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// Options are what a call of blis-summarize may say.
type Options struct {
	Streams  []string             `arg:"" optional:"" sep:"none" name:"stream" help:"Runs or one workload, zstd or plain; - or none is stdin. NAME=FILE names a run, which else has its file's name."`
	Fitness  *Fitness             `placeholder:"CEL|FILE" help:"What to score runs by: an expression in [0, 1), such as 'm.goodput.ratio', or a file (*.yaml, *.json) with gates, objectives and more."`
	Baseline []string             `sep:"none" placeholder:"RUN" help:"A run to compare with: base.* in expressions. Repeatable: each run is compared with the one of its workload."`
	Parent   []string             `sep:"none" placeholder:"RUN" help:"Likewise parent.*, such as the run that a policy was bred from."`
	Cluster  *string              `short:"c" placeholder:"FILE" help:"Of a workload: how much of this cluster it takes. -c \"\" is the built-in one."`
	Where    Where                `placeholder:"CEL" help:"Of a run: only the requests for which this is true: 'slo_class == \"critical\" && ttft_ms > 200'."`
	From     Instant              `placeholder:"DURATION" help:"Only requests that arrive at this time (30s, 5m) or later."`
	To       Instant              `placeholder:"DURATION" help:"Only requests that arrive before this time."`
	Format   string               `default:"text" enum:"${formats}" help:"One of: ${formats}. Several runs stand side by side."`
	Strict   bool                 `help:"Warnings about the stream are errors."`
	Explain  attribution.Question `placeholder:"WHAT" help:"Say what happened in one decision (dec-000913), request (its id) or time (11.8s:14.2s)."`
	Telling  report.Options       `embed:""`

	// Open opens the streams that the options name, where there is more than one.
	Open func(name string) (io.ReadCloser, error) `kong:"-"`
	// Color says that a person looks, at a terminal.
	Color bool `kong:"-"`
	// Warn tells the user what is odd about the call; nil is silent.
	Warn func(string) `kong:"-"`
	// Progress tells the user how far the reading has come; nil is silent.
	Progress func(string) `kong:"-"`
}

// Validate says what is wrong with options that are right one by one.
func (o *Options) Validate() error {
	if o.To.given && o.To.at == 0 {
		return fmt.Errorf("--to must be above 0, is %v", o.To)
	}
	if o.To.given && o.From.at >= o.To.at {
		return fmt.Errorf("--from (%v) must be before --to (%v)", o.From, o.To)
	}
	for i, data := range slices.Concat(o.Streams, o.Baseline, o.Parent) {
		if _, file := nameOf(data); file == "-" && (i > 0 || len(o.Streams) == 0) {
			return fmt.Errorf("stdin (-) can be one stream, the first; name files for the others")
		}
	}
	if err := o.Telling.Validate(); err != nil {
		return err
	}
	for _, streams := range [][]string{o.Streams, o.Baseline, o.Parent} {
		names := namesOf(streams)
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				return fmt.Errorf("two streams are called %s: name them, as in %s=FILE other=FILE", name, name)
			}
		}
	}
	if o.Explain.Asked() && o.Format != "text" {
		return fmt.Errorf("--explain is a text; it does not go with --format %s", o.Format)
	}
	if o.Fitness != nil && o.Fitness.compiled != nil {
		return o.Fitness.compiled.RefuseReferences(len(o.Baseline) > 0, len(o.Parent) > 0)
	}
	return nil
}

// First is the file of the first stream, which the caller of Run opens.
func (o *Options) First() string {
	_, file := nameOf(o.first())
	return file
}

func (o *Options) first() string {
	if len(o.Streams) == 0 {
		return "-"
	}
	return o.Streams[0]
}

// nameOf takes NAME=FILE apart. A file without a name has its own, without
// folders and the endings of streams.
func nameOf(data string) (name, file string) {
	if before, after, ok := strings.Cut(data, "="); ok && before != "" && !strings.ContainsAny(before, "/.#") {
		return before, after
	}
	if data == "-" {
		return "stdin", data
	}
	name = path.Base(data)
	for _, ending := range []string{".zst", ".jsonl"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name, data
}

// namesOf are the names of streams. Files that have the same name without folders have
// their whole one.
func namesOf(streams []string) (names []string) {
	count := map[string]int{}
	for _, data := range streams {
		name, _ := nameOf(data)
		names = append(names, name)
		count[name]++
	}
	for i, data := range streams {
		if _, file := nameOf(data); count[names[i]] > 1 && file == data {
			names[i] = file
		}
	}
	return names
}

// Fitness is an expression, or the name of a file.
type Fitness struct {
	src string
	// compiled is nil of a file, which is read when the runs are.
	compiled *fitness.Fitness
}

// UnmarshalText compiles an expression; see package fitness.
func (f *Fitness) UnmarshalText(text []byte) (err error) {
	f.src = string(text)
	for _, ending := range []string{".yaml", ".yml", ".json"} {
		if strings.HasSuffix(f.src, ending) {
			return nil
		}
	}
	f.compiled, err = fitness.Expression("--fitness", f.src)
	var fault *strictyaml.Error
	if errors.As(err, &fault) && fault.Line > 0 {
		return fmt.Errorf("%d:%d: %s", fault.Line, fault.Col, fault.Msg)
	}
	return err
}

// load is the fitness, read if it is in a file.
func (f *Fitness) load() (*fitness.Fitness, error) {
	if f.compiled != nil {
		return f.compiled, nil
	}
	return fitness.Load(f.src)
}

// part reports whether the metrics are to be of a part of the run.
func (o *Options) part() bool { return o.Where.keeps != nil || o.From.given || o.To.given }

// within reports whether what arrives at that instant is asked for.
func (o *Options) within(at stream.Micros) bool {
	return at >= o.From.at && (!o.To.given || at < o.To.at)
}

// Where is a condition on outcomes.
type Where struct {
	src   string
	keeps func(*stream.Outcome) (bool, error)
}

// UnmarshalText compiles a CEL expression; see package filter.
func (w *Where) UnmarshalText(text []byte) (err error) {
	w.src = string(text)
	w.keeps, err = filter.CompileOutcome(w.src)
	return err
}

// Instant is a simulated time since the workload's origin.
type Instant struct {
	at    stream.Micros
	given bool
}

// UnmarshalText reads a Go duration.
func (i *Instant) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("must be a duration such as 90s or 10m, not negative, is %q", text)
	}
	i.at, i.given = stream.Micros(d.Microseconds()), true
	return nil
}

func (i Instant) String() string { return (time.Duration(i.at) * time.Microsecond).String() }
