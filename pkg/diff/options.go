package diff

import (
	"fmt"

	"blis/pkg/filter"
	"blis/pkg/record"
)

// Options are what a call of blis-diff may say.
type Options struct {
	Streams  []string `arg:"" name:"stream" help:"Two runs, zstd or plain; - is stdin."`
	Where    string   `placeholder:"CEL" help:"Only requests for which this is true in one of the two: 'slo_class == \"critical\"'."`
	FailIf   []string `placeholder:"CEL" sep:"none" help:"Exit with 1 if this is true, with 0 if not: 'd.ttft.p99.rel > 0.05'. Repeatable."`
	Unpaired bool     `help:"Compare runs of different workloads, as independent."`
	Seed     uint64   `default:"0" help:"Seed of the draws that intervals come from."`
	Format   string   `default:"text" enum:"text,json" help:"text for people, json for programs: one document."`
	Strict   bool     `help:"Warnings about the streams are errors."`

	// Progress tells the user how far the reading has come; nil is silent.
	Progress func(string) `kong:"-"`

	keeps func(*record.Outcome) (bool, error)
	gates []gate
}

// Validate says what is wrong with options that are right one by one.
func (o *Options) Validate() (err error) {
	if len(o.Streams) != 2 {
		return fmt.Errorf("two streams are compared, not %d", len(o.Streams))
	}
	if o.Streams[0] == "-" && o.Streams[1] == "-" {
		return fmt.Errorf("stdin can be only one of the two streams")
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
