package diff

import (
	"fmt"

	"blis/pkg/filter"
	"blis/pkg/recording"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// Options are the arguments and flags of blis-diff.
type Options struct {
	Streams      []string `arg:"" name:"stream" help:"Two runs, or a run and a recording of a real server (FILE, FORMAT:FILE, FILE#NAME, recording:DIR); - is stdin (-#NAME after --)."`
	Where        string   `group:"Requests:" placeholder:"CEL" help:"Compare only requests for which this is true on either side: 'slo_class == \"critical\"'."`
	FailIf       []string `group:"Comparison:" placeholder:"CEL" sep:"none" help:"Exit with 1 if this is true, else with 0: 'd.ttft.p99.relative_diff > 0.05'. Repeatable."`
	Unpaired     bool     `group:"Comparison:" help:"Compare runs of different workloads, as independent samples."`
	OutputTokens int64    `rare:"" group:"Requests:" placeholder:"N" help:"Use N output tokens for every completed request of a recording instead of its counts."`
	Rank         bool     `group:"Comparison:" help:"Compare the order of several runs with that of their recordings, given as pairs."`
	RankBy       string   `rare:"" group:"Comparison:" default:"ttft.p99" placeholder:"METRIC" help:"Metric to rank by, with --rank: ${default}, e2e.mean, goodput.ratio."`
	Seed         uint64   `rare:"" group:"Comparison:" default:"0" help:"Seed of the bootstrap samples for intervals."`
	Format       string   `group:"Output:" default:"text" enum:"text,json" help:"text for people, or json: one document for programs."`
	Strict       bool     `rare:"" group:"Comparison:" help:"Treat warnings about the streams as errors."`

	// Progress receives the progress of reading; nil is silent.
	Progress func(string) `kong:"-"`

	selects func(*stream.Outcome) (bool, error)
	gates   []gate
}

// Validate checks combinations of options and compiles expressions.
func (o *Options) Validate() (err error) {
	switch n := len(o.Streams); {
	case o.Rank && (n < 4 || n%2 != 0):
		return fmt.Errorf("--rank needs at least two pairs of streams (RUN RECORDING RUN RECORDING), got %d streams", n)
	case o.Rank && (o.Where != "" || len(o.FailIf) > 0):
		return fmt.Errorf("--where and --fail-if have no effect with --rank")
	case !o.Rank && n != 2:
		more := ""
		if n > 2 {
			more = "; blis-summarize --html FILE and --format table compare more"
		}
		return fmt.Errorf("expected two streams, got %d%s", n, more)
	}
	if o.Rank {
		if err := o.checkDuplicatePairs(); err != nil {
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
		return fmt.Errorf("stdin can be used for one stream only")
	}
	if o.OutputTokens < 0 || o.OutputTokens > textio.MaxTokens {
		return fmt.Errorf("--output-tokens must be between 1 and %d, is %d", textio.MaxTokens, o.OutputTokens)
	}
	if err := checkMetric(o.RankBy); err != nil {
		return fmt.Errorf("--rank-by: %w", err)
	}
	if o.Where != "" {
		if o.selects, err = filter.CompileOutcome(o.Where); err != nil {
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

// checkDuplicatePairs returns an error for a pair that is given twice, which would count
// twice.
func (o *Options) checkDuplicatePairs() error {
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
