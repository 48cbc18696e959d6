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

// Options are what a call of blis-gen may say.
type Options struct {
	Spec         string   `arg:"" optional:"" help:"Workload spec (YAML or JSON); - is stdin."`
	Scenario     Scenario `placeholder:"NAME" help:"Use a built-in spec; chat is the one used without any source."`
	Import       []Import `sep:"none" placeholder:"FORMAT:FILE" help:"Turn a public trace into a workload; FILE - is stdin. Several are merged in the order of time."`
	Seed         *uint64  `placeholder:"N" help:"Use this seed instead of the spec's, or 0 where an import draws."`
	Requests     Count    `placeholder:"N" help:"Make N requests instead of what the spec says."`
	Limit        Count    `placeholder:"N" help:"Import N requests or sessions at most."`
	TimeScale    Factor   `placeholder:"X" help:"Multiply the arrival times of an import; delays inside sessions stay."`
	Rate         Factor   `placeholder:"R" help:"Scale the arrival times of an import so that R requests or sessions arrive per second in the mean; those without times arrive evenly."`
	Loop         Count    `placeholder:"N" help:"Import N times, one after the other."`
	Sample       Share    `placeholder:"P" help:"Keep each request or session of an import with probability P, by --seed and its id."`
	BlockSize    Count    `placeholder:"N" help:"Tokens that a hash id of an import stands for (mooncake: 512, bailian: 16)."`
	OutputTokens Count    `placeholder:"N" help:"Give every request of an import N output tokens, where all asked for N and the trace counted otherwise."`
	Where        Filter   `placeholder:"CEL" help:"Keep the requests for which this is true, such as 'input_tokens < 8192'. Of an import it sees the trace's own times."`
	List         string   `enum:"scenarios,importers," default:"" placeholder:"WHAT" help:"List scenarios or importers and exit."`
	PrintSpec    bool     `help:"Print the spec that would be used and exit."`
	Plain        bool     `help:"Write the stream uncompressed."`

	// Version goes into the header; Warn and Progress speak to the user. A nil
	// func is silent.
	Version  string       `kong:"-"`
	Warn     func(string) `kong:"-"`
	Progress func(string) `kong:"-"`
}

// Count is a number of things, from 1; 0 is not given.
type Count int64

// UnmarshalText reads a whole number from 1.
func (c *Count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("must be a whole number from 1, is %q", text)
	}
	*c = Count(n)
	return nil
}

// Factor is a finite number above 0; 0 is not given.
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

// Share is a number above 0 and at most 1; 0 is not given.
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

// UnmarshalText looks the name up.
func (s *Scenario) UnmarshalText(text []byte) error {
	*s = Scenario(text)
	_, err := Scenarios.Get("scenario", string(text))
	return err
}

// Import names a trace and its format.
type Import struct{ Format, File string }

// UnmarshalText reads FORMAT:FILE.
func (i *Import) UnmarshalText(text []byte) error {
	i.Format, i.File, _ = strings.Cut(string(text), ":")
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

// Validate reports options that do not go together. Whoever parses a command
// line calls it as part of that; Run calls it again.
func (o *Options) Validate() error {
	imports := len(o.Import) > 0
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
		return errors.New("--requests and --print-spec are for specs, not for --import (--limit cuts one)")
	case !imports && (o.Limit != 0 || o.TimeScale != 0 || o.Rate != 0 || o.Loop != 0 || o.Sample != 0 || o.BlockSize != 0 || o.OutputTokens != 0):
		return errors.New("--limit, --time-scale, --rate, --loop, --sample, --block-size and --output-tokens are for --import only (--requests bounds a spec)")
	case o.Rate != 0 && o.TimeScale != 0:
		return errors.New("give one of --rate and --time-scale")
	case imports:
		return o.validateImports()
	}
	return nil
}

// validateImports is Validate for what the formats of the imports decide.
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
	sized := func(f trace.Format) bool { return f.BlockSize != 0 }
	drawn := func(f trace.Format) bool { return f.Drawn }
	untimed := func(f trace.Format) bool { return f.Untimed }
	timed := func(f trace.Format) bool { return !f.Untimed }
	switch {
	case stdins > 1:
		return errors.New("--import can read stdin only once")
	case o.BlockSize != 0 && !slices.ContainsFunc(used, sized):
		return fmt.Errorf("--block-size is for the hash ids of %s", formatsThat(sized))
	case o.Seed != nil && o.Sample == 0 && !slices.ContainsFunc(used, drawn):
		return fmt.Errorf("--seed changes nothing in an import without --sample, but for %s", formatsThat(drawn))
	case o.Rate != 0 && slices.ContainsFunc(used, untimed) && slices.ContainsFunc(used, timed):
		return fmt.Errorf("--rate can space arrivals of %s only without others beside them", formatsThat(untimed))
	case o.TimeScale != 0 && !slices.ContainsFunc(used, timed):
		return fmt.Errorf("--time-scale changes nothing where no arrival has a time, as in %s; --rate spaces them", formatsThat(untimed))
	}
	return nil
}

// formatsThat are the names of formats with a property.
func formatsThat(have func(trace.Format) bool) string {
	var names []string
	for _, e := range trace.Formats {
		if have(e.Value) {
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
