package diff

import (
	"fmt"

	"blis/pkg/filter"
	"blis/pkg/recording"
	"blis/pkg/stream"
)

// Options are what a call of blis-diff may say.
type Options struct {
	Streams      []string `arg:"" name:"stream" help:"Two runs, or a run and a recording of a real server (FILE, FORMAT:FILE, FILE#NAME); - is stdin, after -- also -#NAME."`
	Where        string   `placeholder:"CEL" help:"Only requests for which this is true in one of the two: 'slo_class == \"critical\"'."`
	FailIf       []string `placeholder:"CEL" sep:"none" help:"Exit with 1 if this is true, with 0 if not: 'd.ttft.p99.rel > 0.05'. Repeatable."`
	Unpaired     bool     `help:"Compare runs of different workloads, as independent."`
	OutputTokens int64    `placeholder:"N" help:"Every request that a recording completed had N output tokens, whatever it counts."`
	Rank         bool     `help:"Of pairs of streams, a run and the recording of it each: does the simulation rank them as the recordings do?"`
	By           string   `default:"ttft.p99" placeholder:"METRIC" help:"What --rank ranks by: ${default}, e2e.mean, goodput.ratio."`
	Seed         uint64   `default:"0" help:"Seed of the draws that intervals come from."`
	Format       string   `default:"text" enum:"text,json" help:"text for people, json for programs: one document."`
	Strict       bool     `help:"Warnings about the streams are errors."`

	// Progress tells the user how far the reading has come; nil is silent.
	Progress func(string) `kong:"-"`

	keeps func(*stream.Outcome) (bool, error)
	gates []gate
}

// Validate says what is wrong with options that are right one by one.
func (o *Options) Validate() (err error) {
	switch n := len(o.Streams); {
	case o.Rank && (n < 4 || n%2 != 0):
		return fmt.Errorf("--rank takes two or more pairs of streams, RUN RECORDING RUN RECORDING, not %d streams", n)
	case o.Rank && (o.Where != "" || len(o.FailIf) > 0):
		return fmt.Errorf("--where and --fail-if have no effect with --rank")
	case !o.Rank && n != 2:
		return fmt.Errorf("two streams are compared, not %d", n)
	}
	if o.Rank {
		if err := o.checkPairs(); err != nil {
			return err
		}
	}
	stdin := 0
	for _, name := range o.Streams {
		_, path := recording.Split(name)
		if _, ok := recording.Stdin(path); ok {
			stdin++
		}
	}
	if stdin > 1 {
		return fmt.Errorf("stdin can be only one of the streams")
	}
	if o.OutputTokens < 0 {
		return fmt.Errorf("--output-tokens must be above 0, is %d", o.OutputTokens)
	}
	if err := checkMetric(o.By); err != nil {
		return fmt.Errorf("--by: %w", err)
	}
	if o.Where != "" {
		if o.keeps, err = filter.CompileOutcome(o.Where); err != nil {
			return fmt.Errorf("--where: %w", err)
		}
	}
	o.gates = nil
	for _, src := range o.FailIf {
		g, err := compileGate(src)
		if err != nil {
			return fmt.Errorf("--fail-if: %w", err)
		}
		o.gates = append(o.gates, g)
	}
	return nil
}

// checkPairs refuses a pair that is there twice, which would count twice.
func (o *Options) checkPairs() error {
	seen := map[[2]string]bool{}
	for i := 0; i < len(o.Streams); i += 2 {
		a, b := o.Streams[i], o.Streams[i+1]
		if seen[[2]string{a, b}] || seen[[2]string{b, a}] {
			return fmt.Errorf("--rank: the pair %s %s is given twice", a, b)
		}
		seen[[2]string{a, b}] = true
	}
	return nil
}
