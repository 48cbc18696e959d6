package gen

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/trace"
)

// Options are the command line options of blis-gen.
type Options struct {
	Spec         string   `arg:"" optional:"" help:"Workload spec (YAML or JSON); - is stdin."`
	AllowPaths   bool     `rare:"" group:"Source:" env:"BLIS_ALLOW_PATHS" help:"Let the spec name files outside of its folder."`
	Scenario     Scenario `group:"Source:" choices:"scenarios" placeholder:"NAME" help:"Built-in spec (chat if no source is given)."`
	Import       []Import `group:"Source:" choices:"importers" sep:"none" placeholder:"FORMAT:FILE" help:"Convert traces, merged by time; FILE - is stdin."`
	Seed         *uint64  `group:"Load:" placeholder:"N" help:"Seed, instead of the spec's (imports: 0)."`
	Set          []string `group:"Load:" sep:"none" placeholder:"PATH=VALUE" help:"Override one value of the spec, or all values in @FILE. Repeatable."`
	Requests     Count    `group:"Load:" placeholder:"N" help:"Number of requests and sessions, instead of the spec's."`
	Limit        Count    `rare:"" group:"Source:" placeholder:"N" help:"Import at most N requests or sessions."`
	TimeScale    Factor   `group:"Load:" placeholder:"X" help:"Multiply arrival times by X, not delays in sessions."`
	Rate         Factor   `group:"Load:" placeholder:"R" help:"Mean arrivals per second: scales or spaces an import, replaces aggregate_rate of a spec."`
	Repeat       Count    `rare:"" group:"Load:" placeholder:"N" help:"Repeat the import N times."`
	Sample       Share    `rare:"" group:"Load:" placeholder:"P" help:"Keep each imported arrival with probability P (see --seed)."`
	BlockSize    Count    `rare:"" group:"Source:" placeholder:"N" help:"Tokens per hash id of an import (mooncake: 512, bailian: 16)."`
	OutputTokens Count    `rare:"" group:"Source:" placeholder:"N" help:"Set the output tokens of every imported request to N."`
	SharedPrefix Count    `rare:"" group:"Source:" placeholder:"N" help:"All prompts of a recording begin with the same N tokens (a system prompt)."`
	Where        Filter   `group:"Requests:" placeholder:"CEL" help:"Keep only requests for which this is true: 'input_tokens < 8192'."`
	SLO          []SLO    `group:"Requests:" name:"slo" sep:"none" placeholder:"CLASS:ttft=500ms,tpot=50ms" help:"Targets of an SLO class; requests without a class get the first one."`
	Shard        Shard    `rare:"" group:"Requests:" placeholder:"K/N" help:"Only part K of N, for a fleet of N independent cells. The parts together are the workload."`
	ShardBy      string   `rare:"" group:"Requests:" enum:"${shardkeys}" default:"${shardkey}" help:"What stays in one part of --shard: ${shardkeys}."`
	List         string   `group:"Output:" enum:"scenarios,importers," default:"" placeholder:"WHAT" help:"List these and exit: scenarios, importers."`
	Export       string   `group:"Output:" enum:"${exports}," default:"" placeholder:"CLIENT" help:"Write the requests for a real load generator: ${exported}."`
	PrintSpec    bool     `group:"Output:" help:"Print the spec that would be used and exit."`
	Plain        bool     `group:"Output:" help:"Write the stream uncompressed."`

	// Version goes into the header. Warn and Progress report messages; nil discards them.
	Version  string       `kong:"-"`
	Warn     func(string) `kong:"-"`
	Progress func(string) `kong:"-"`
}

func (o *Options) warn(warnings ...string) {
	for _, w := range warnings {
		if o.Warn != nil {
			o.Warn(w)
		}
	}
}

// Count is a number of things, at least 1; 0 means not given.
type Count int64

// UnmarshalText reads an integer of at least 1.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("must be an integer of at least 1, is %q", text)
	}
	*c = Count(n)
	return nil
}

// Factor is a finite number above 0; 0 means not given.
type Factor float64

// UnmarshalText reads a number above 0.
func (f *Factor) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("must be a number above 0, is %q", text)
	}
	*f = Factor(v)
	return nil
}

// Share is a number above 0 and at most 1; 0 means not given.
type Share float64

// UnmarshalText reads a number above 0 and at most 1.
func (s *Share) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v > 0 && v <= 1) {
		return fmt.Errorf("must be a number above 0 and at most 1, is %q", text)
	}
	*s = Share(v)
	return nil
}

// Scenario is the name of a built-in spec.
type Scenario string

// UnmarshalText looks up the name.
func (s *Scenario) UnmarshalText(text []byte) error {
	*s = Scenario(text)
	_, err := Scenarios.Get("scenario", string(text))
	return err
}

// Import names a trace and its format.
type Import struct{ Format, File string }

// UnmarshalText reads FORMAT:FILE.
func (i *Import) UnmarshalText(text []byte) error {
	var hasFormat bool
	i.Format, i.File, hasFormat = strings.Cut(string(text), ":")
	if !hasFormat && !slices.Contains(trace.Formats.Names(), i.Format) {
		return fmt.Errorf("must be FORMAT:FILE, is %q (formats: %s)", text, strings.Join(trace.Formats.Names(), ", "))
	}
	if _, err := trace.Formats.Get("importer", i.Format); err != nil {
		return err
	}
	if i.File == "" {
		return fmt.Errorf("must be FORMAT:FILE, is %q", text)
	}
	return nil
}

func (i Import) isStdin() bool {
	format, err := trace.Formats.Get("importer", i.Format)
	return err == nil && format.Stdin(i.File)
}

// ReadsStdin reports whether Run will read its input.
func (o *Options) ReadsStdin() bool {
	return o.List == "" && (o.Spec == "-" || slices.ContainsFunc(o.Import, Import.isStdin))
}

// seed is --seed, 0 if it is not given. It does not see the seed in a spec.
func (o *Options) seed() uint64 {
	if o.Seed == nil {
		return 0
	}
	return *o.Seed
}

// Validate reports options that cannot be combined. A command line parser may call it early; Run
// calls it in any case.
func (o *Options) Validate() error {
	imports := len(o.Import) > 0
	for _, set := range o.Set {
		if !strings.Contains(set, "=") && !strings.HasPrefix(set, "@") {
			return fmt.Errorf("--set %s: must be PATH=VALUE or @FILE", set)
		}
	}
	sources := 0
	for _, given := range []bool{o.Spec != "", o.Scenario != "", imports} {
		if given {
			sources++
		}
	}
	switch {
	case sources > 1:
		return errors.New("give one of SPEC, --scenario and --import")
	case imports && (o.Requests != 0 || o.PrintSpec):
		return errors.New("--requests and --print-spec are for specs, not for --import (use --limit)")
	case imports && len(o.Set) > 0:
		return errors.New("--set overrides a value of a spec, which --import does not have (use --rate, --slo, " +
			"--where)")
	case !imports && (o.Limit != 0 || o.Repeat != 0 || o.Sample != 0 ||
		o.BlockSize != 0 && o.Export != "mooncake" || o.OutputTokens != 0 || o.SharedPrefix != 0):
		return errors.New("--limit, --repeat, --sample, --block-size, --output-tokens and --shared-prefix are for " +
			"--import only (use --requests with a spec)")
	case o.TimeScale != 0 && o.PrintSpec:
		return errors.New("--time-scale has no effect with --print-spec: it changes the arrival times of the workload")
	case o.Shard != Shard{} && o.PrintSpec:
		return errors.New("--shard has no effect with --print-spec: a spec is of the whole workload")
	case o.Export != "" && o.PrintSpec:
		return errors.New("--print-spec has no effect with --export")
	case o.Rate != 0 && o.TimeScale != 0:
		return errors.New("give one of --rate and --time-scale")
	case imports:
		return o.validateImports()
	}
	return nil
}

// validateImports is the part of Validate that depends on the trace formats.
func (o *Options) validateImports() error {
	var used []trace.Format
	stdins := 0
	for _, i := range o.Import {
		format, err := trace.Formats.Get("importer", i.Format)
		if err != nil {
			return err
		}
		used = append(used, format)
		if i.isStdin() {
			stdins++
		}
	}
	hasBlocks := func(f trace.Format) bool { return f.BlockSize != 0 }
	isRecorded := func(f trace.Format) bool { return f.Recorded }
	isDrawn := func(f trace.Format) bool { return f.Sampled }
	isUntimed := func(f trace.Format) bool { return f.Untimed }
	isTimed := func(f trace.Format) bool { return !f.Untimed }
	switch {
	case stdins > 1:
		return errors.New("--import can read stdin only once")
	case o.BlockSize != 0 && !slices.ContainsFunc(used, hasBlocks):
		return fmt.Errorf("--block-size is only for formats with hash ids: %s", formatsThat(hasBlocks))
	case o.SharedPrefix != 0 && !slices.ContainsFunc(used, isRecorded):
		return fmt.Errorf("--shared-prefix is only for recordings: %s", formatsThat(isRecorded))
	case o.Seed != nil && o.Sample == 0 && !slices.ContainsFunc(used, isDrawn):
		return fmt.Errorf("--seed has no effect on an import without --sample, except for %s", formatsThat(isDrawn))
	case o.Rate != 0 && slices.ContainsFunc(used, isUntimed) && slices.ContainsFunc(used, isTimed):
		return fmt.Errorf("--rate cannot space arrivals of %s together with traces that have arrival times",
			formatsThat(isUntimed))
	case o.TimeScale != 0 && !slices.ContainsFunc(used, isTimed):
		return fmt.Errorf("--time-scale has no effect on traces without arrival times (%s); use --rate",
			formatsThat(isUntimed))
	}
	return nil
}

// formatsThat returns the names of the formats for which have is true.
func formatsThat(condition func(trace.Format) bool) string {
	var names []string
	for _, e := range trace.Formats {
		if condition(e.Value) {
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, ", ")
}

// list prints the scenarios or the importers.
func list(out io.Writer, what string) error {
	text := trace.Formats.Append(nil, "importer")
	if what == "scenarios" {
		text = Scenarios.Append(nil, "scenario")
	}
	_, err := out.Write(text)
	return err
}
