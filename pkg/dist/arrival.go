package dist

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// Arrival is an arrival process and its parameters, as in files. Each process takes some of them.
type Arrival struct {
	// Process is a name in Arrivals.
	Process string `yaml:"process"    json:"process"`
	// CV is the coefficient of variation of the gaps between arrivals: standard deviation / mean, 1 for
	// Poisson, above 1 for bursts. Shape is the tail index of Pareto gaps, above 1; the CV is infinite
	// up to 2 and 1/√(shape·(shape − 2)) beyond.
	CV    *float64 `yaml:"cv"         json:"cv,omitempty"`
	Shape *float64 `yaml:"shape"      json:"shape,omitempty"`
	// Jitter is the maximum delay of an arrival as a fraction of a gap, 0 to 1.
	Jitter *float64 `yaml:"jitter"     json:"jitter,omitempty"`
	// A spike is the last DurationS of every IntervalS seconds, with Multiplier times the rate outside.
	IntervalS  *float64 `yaml:"interval_s" json:"interval_s,omitempty"`
	DurationS  *float64 `yaml:"duration_s" json:"duration_s,omitempty"`
	Multiplier *float64 `yaml:"multiplier" json:"multiplier,omitempty"`
	// BurstSize is the number of arrivals at one instant.
	BurstSize *float64 `yaml:"burst_size" json:"burst_size,omitempty"`
	// File is the file with the times of a trace.
	File string `yaml:"file"       json:"file,omitempty"`
}

// process is a kind of arrival process.
type process struct {
	// takes lists its parameters.
	takes []string
	// gaps returns the gaps, of mean 1, if they are independent draws; else arrivals returns the times
	// of arrivals with a mean gap of gapUS.
	gaps     func(p *params) variate
	arrivals func(p *params, gapUS float64) Times
}

// Arrivals are the arrival processes.
var Arrivals = registry.Table[process]{
	{Name: "poisson", Doc: "exponential gaps (memoryless arrivals)", Value: process{gaps: poisson}},
	{Name: "gamma", Doc: "gamma gaps of the given cv", Value: process{takes: []string{"cv"}, gaps: gamma}},
	{Name: "weibull", Doc: "Weibull gaps of the given cv", Value: process{takes: []string{"cv"}, gaps: weibull}},
	{Name: "bursty", Doc: "Pareto gaps of the given cv or shape: many short, a few very long",
		Value: process{takes: []string{"cv", "shape"}, gaps: bursty}},
	{Name: "constant", Doc: "equal gaps", Value: process{gaps: equalGaps}},
	{Name: "periodic", Doc: "equal gaps, each arrival delayed by up to jitter of a gap",
		Value: process{takes: []string{"jitter"}, arrivals: periodic}},
	{Name: "spikes", Doc: "Poisson, with a spike of duration_s in every interval_s that multiplies the rate",
		Value: process{takes: []string{"interval_s", "duration_s", "multiplier"}, arrivals: spikes}},
	{Name: "adversarial", Doc: "burst_size arrivals at one instant, then none until the next burst",
		Value: process{takes: []string{"burst_size"}, arrivals: adversarial}},
	{Name: traceName, Doc: "the times in file", Value: process{takes: []string{"file"}}},
}

const traceName = "trace"

// IsTrace reports whether the times come from File, independent of the rate.
func (a Arrival) IsTrace() bool { return a.Process == traceName }

// Times returns the time of the next arrival in µs since 0, not rounded and not before the previous
// one; +Inf after the last.
type Times func(*rand.Rand) float64

// Times checks a and returns its arrivals at a rate in arrivals per second, which must be above 0.
// The times of a trace are recorded, in µs and in order. An error is a *ParamError.
func (a Arrival) Times(rate float64, recorded []float64) (Times, error) {
	process, p, err := a.lookup()
	if err != nil {
		return nil, err
	}
	var times Times
	switch {
	case a.IsTrace():
		times = replay(recorded)
	case process.gaps != nil:
		times = renewal(process.gaps(p).scaled(1e6 / rate))
	default:
		times = process.arrivals(p, 1e6/rate)
	}
	if p.err != nil {
		return nil, p.err
	}
	return times, nil
}

// Gaps draws the gap to the next arrival in µs, not rounded.
type Gaps func(*rand.Rand) float64

// Gaps checks a, a process with independent gaps, and returns them at a rate in arrivals per
// second, which must be above 0. An error is a *ParamError.
func (a Arrival) Gaps(rate float64) (Gaps, error) {
	process, p, err := a.lookup()
	if err != nil {
		return nil, err
	}
	if process.gaps == nil {
		return nil, &ParamError{"process", "the gaps of " + a.Process + " are not independent"}
	}
	gaps := process.gaps(p)
	if p.err != nil {
		return nil, p.err
	}
	return gaps.scaled(1e6 / rate), nil
}

// scaled returns gaps of the mean meanUS from those of mean 1.
func (v variate) scaled(meanUS float64) Gaps {
	return func(r *rand.Rand) float64 { return v(r) * meanUS }
}

// renewal returns arrivals with independent gaps.
func renewal(g Gaps) Times {
	us := 0.0
	return func(r *rand.Rand) float64 {
		us += g(r)
		return us
	}
}

// lookup returns the process and its parameters, and rejects those it does not take.
func (a Arrival) lookup() (process, *params, error) {
	process, err := Arrivals.Get("arrival process", a.Process)
	if err != nil {
		return process, nil, &ParamError{"process", err.Error()}
	}
	p := &params{given: map[string]float64{}, limits: limits{0, maxMicros}}
	for _, field := range []struct {
		name  string
		value *float64
	}{
		{"cv", a.CV}, {"shape", a.Shape}, {"jitter", a.Jitter}, {"interval_s", a.IntervalS},
		{"duration_s", a.DurationS}, {"multiplier", a.Multiplier}, {"burst_size", a.BurstSize},
	} {
		if field.value == nil {
			continue
		}
		if !slices.Contains(process.takes, field.name) {
			return process, nil, a.untaken(field.name)
		}
		p.given[field.name] = *field.value
	}
	switch {
	case a.IsTrace() && a.File == "":
		return process, nil, &ParamError{"file", "must be given for " + a.Process}
	case !a.IsTrace() && a.File != "":
		return process, nil, a.untaken("file")
	}
	return process, p, nil
}

// untaken is the error of a parameter that the process does not take.
func (a Arrival) untaken(name string) *ParamError {
	var names []string
	for _, e := range Arrivals {
		if slices.Contains(e.Value.takes, name) {
			names = append(names, e.Name)
		}
	}
	last := len(names) - 1
	owners := names[last]
	if last > 0 {
		owners = strings.Join(names[:last], ", ") + " and " + owners
	}
	return invalid(name, "is not a parameter of %s, only of %s", a.Process, owners)
}

// replay returns recorded times.
func replay(recorded []float64) Times {
	return func(*rand.Rand) float64 {
		if len(recorded) == 0 {
			return math.Inf(1)
		}
		next := recorded[0]
		recorded = recorded[1:]
		return next
	}
}
