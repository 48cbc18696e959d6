package summarize

import (
	"fmt"
	"time"

	"blis/pkg/filter"
	"blis/pkg/record"
)

// Options are what a call of blis-summarize may say.
type Options struct {
	Input   string  `arg:"" optional:"" default:"-" name:"stream" help:"Run or workload, zstd or plain; - is stdin."`
	Cluster *string `short:"c" placeholder:"FILE" help:"Of a workload: how much of this cluster it takes. '' is the built-in one."`
	Where   Where   `placeholder:"CEL" help:"Of a run: only the requests for which this is true: 'slo_class == \"critical\" && ttft_ms > 200'."`
	From    Instant `placeholder:"DURATION" help:"Only requests that arrive at this time (30s, 5m) or later."`
	To      Instant `placeholder:"DURATION" help:"Only requests that arrive before this time."`
	Format  string  `default:"text" enum:"text,json" help:"text for people, json for programs: one document."`
	Strict  bool    `help:"Warnings about the stream are errors."`

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
	return nil
}

// part reports whether the metrics are to be of a part of the run.
func (o *Options) part() bool { return o.Where.keeps != nil || o.From.given || o.To.given }

// within reports whether what arrives at that instant is asked for.
func (o *Options) within(at record.Micros) bool {
	return at >= o.From.at && (!o.To.given || at < o.To.at)
}

// Where is a condition on outcomes.
type Where struct {
	src   string
	keeps func(*record.Outcome) (bool, error)
}

// UnmarshalText compiles a CEL expression; see package expr.
func (w *Where) UnmarshalText(text []byte) (err error) {
	w.src = string(text)
	w.keeps, err = filter.CompileOutcome(w.src)
	return err
}

// Instant is a simulated time since the workload's origin.
type Instant struct {
	at    record.Micros
	given bool
}

// UnmarshalText reads a Go duration.
func (i *Instant) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("must be a duration such as 90s or 10m, not negative, is %q", text)
	}
	i.at, i.given = record.Micros(d.Microseconds()), true
	return nil
}

func (i Instant) String() string { return (time.Duration(i.at) * time.Microsecond).String() }
