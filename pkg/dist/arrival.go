package dist

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// Arrival names an arrival process and its parameters, as files do. Each
// process takes some of them.
type Arrival struct {
	// Process is one of Arrivals.
	Process string `yaml:"process" json:"process"`
	// CV is the coefficient of variation of the gaps between arrivals: standard
	// deviation by mean, 1 for Poisson, above 1 for bursts. Shape is the tail index
	// of Pareto gaps, above 1; their CV is infinite up to 2 and 1/√(shape·(shape − 2))
	// beyond.
	CV    *float64 `yaml:"cv" json:"cv,omitempty"`
	Shape *float64 `yaml:"shape" json:"shape,omitempty"`
	// Jitter is by what part of a gap an arrival is late at most, 0 to 1.
	Jitter *float64 `yaml:"jitter" json:"jitter,omitempty"`
	// A spike is the last DurationS of every IntervalS seconds. In it the rate is
	// Multiplier times what it is outside.
	IntervalS  *float64 `yaml:"interval_s" json:"interval_s,omitempty"`
	DurationS  *float64 `yaml:"duration_s" json:"duration_s,omitempty"`
	Multiplier *float64 `yaml:"multiplier" json:"multiplier,omitempty"`
	// BurstSize is how many arrive at one instant.
	BurstSize *float64 `yaml:"burst_size" json:"burst_size,omitempty"`
	// File holds the times of a trace.
	File string `yaml:"file" json:"file,omitempty"`
}

// process is one way in which arrivals follow each other.
type process struct {
	// takes are the parameters that it takes.
	takes []string
	// unit makes the gaps, of mean 1, where they are independent draws; else clock
	// makes arrivals that are gapUS apart in the mean.
	unit  func(p *params) variate
	clock func(p *params, gapUS float64) clock
}

// Arrivals are the arrival processes.
var Arrivals = registry.Table[process]{
	{Name: "poisson", Doc: "exponential gaps: arrivals without memory", Value: process{unit: poisson}},
	{Name: "gamma", Doc: "gamma gaps of the given cv", Value: process{takes: []string{"cv"}, unit: gamma}},
	{Name: "weibull", Doc: "Weibull gaps of the given cv", Value: process{takes: []string{"cv"}, unit: weibull}},
	{Name: "bursty", Doc: "Pareto gaps of the given cv or shape: many short ones, a few very long", Value: process{takes: []string{"cv", "shape"}, unit: bursty}},
	{Name: "constant", Doc: "equal gaps", Value: process{unit: equal}},
	{Name: "periodic", Doc: "equal gaps, each arrival late by up to jitter of one", Value: process{takes: []string{"jitter"}, clock: periodic}},
	{Name: "spikes", Doc: "Poisson, with a spike of duration_s in every interval_s that multiplies the rate", Value: process{takes: []string{"interval_s", "duration_s", "multiplier"}, clock: spikes}},
	{Name: "adversarial", Doc: "burst_size arrivals at one instant, then none until the next burst", Value: process{takes: []string{"burst_size"}, clock: adversarial}},
	{Name: traceName, Doc: "the times in file", Value: process{takes: []string{"file"}}},
}

const traceName = "trace"

// IsTrace reports whether the times are those of File, whatever the rate.
func (a Arrival) IsTrace() bool { return a.Process == traceName }

// clock returns the time of the next arrival in µs, not rounded and not before
// the last one's; +Inf after the last.
type clock func(*rand.Rand) float64

// Times are the times of arrivals, one after the other.
type Times struct{ next clock }

// Times checks a and returns its arrivals at a rate in arrivals per second,
// which must be above 0; those of a trace are recorded, in µs and in order. An
// error is a *ParamError.
func (a Arrival) Times(rate float64, recorded []float64) (*Times, error) {
	process, p, err := a.read()
	if err != nil {
		return nil, err
	}
	var next clock
	switch {
	case a.IsTrace():
		next = replay(recorded)
	case process.unit != nil:
		next = renewal(Gaps{process.unit(p), 1e6 / rate})
	default:
		next = process.clock(p, 1e6/rate)
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Times{next}, nil
}

// Gaps draws gaps between arrivals, independent of each other.
type Gaps struct {
	unit   variate
	meanUS float64
}

// Gaps checks a, a process whose gaps are independent draws, and returns them at
// a rate in arrivals per second, which must be above 0. An error is a
// *ParamError.
func (a Arrival) Gaps(rate float64) (*Gaps, error) {
	process, p, err := a.read()
	if err != nil {
		return nil, err
	}
	if process.unit == nil {
		return nil, &ParamError{"process", "the gaps of " + a.Process + " are not independent"}
	}
	g := &Gaps{process.unit(p), 1e6 / rate}
	if p.err != nil {
		return nil, p.err
	}
	return g, nil
}

// Draw returns the gap to the next arrival in µs, not rounded.
func (g *Gaps) Draw(r *rand.Rand) float64 { return g.unit(r) * g.meanUS }

// renewal is arrivals after gaps.
func renewal(g Gaps) clock {
	us := 0.0
	return func(r *rand.Rand) float64 {
		us += g.Draw(r)
		return us
	}
}

// Next returns when the next arrival is, in µs since 0, not rounded; +Inf after
// the last.
func (t *Times) Next(r *rand.Rand) float64 { return t.next(r) }

// read looks the process up and returns its parameters, of which it takes all.
func (a Arrival) read() (process, *params, error) {
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
			return process, nil, &ParamError{field.name, a.Process + " has none; " + takers(field.name)}
		}
		p.given[field.name] = *field.value
	}
	switch {
	case a.IsTrace() && a.File == "":
		return process, nil, &ParamError{"file", "must be given for " + a.Process}
	case !a.IsTrace() && a.File != "":
		return process, nil, &ParamError{"file", a.Process + " has none; " + takers("file")}
	}
	return process, p, nil
}

// takers says which processes take a parameter.
func takers(name string) string {
	var who []string
	for _, e := range Arrivals {
		if slices.Contains(e.Value.takes, name) {
			who = append(who, e.Name)
		}
	}
	if len(who) == 1 {
		return who[0] + " has"
	}
	last := len(who) - 1
	return fmt.Sprintf("%s and %s have", strings.Join(who[:last], ", "), who[last])
}

// replay hands out recorded times.
func replay(recorded []float64) clock {
	at := 0
	return func(*rand.Rand) float64 {
		if at == len(recorded) {
			return math.Inf(1)
		}
		at++
		return recorded[at-1]
	}
}
