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
	// gaps makes the gaps, of mean 1, where they are independent draws; else clock
	// makes arrivals that are gapUS apart in the mean.
	gaps     func(p *params) variate
	arrivals func(p *params, gapUS float64) arrivalClock
}

// Arrivals are the arrival processes.
var Arrivals = registry.Table[process]{
	{Name: "poisson", Doc: "exponential gaps: arrivals without memory", Value: process{gaps: poisson}},
	{Name: "gamma", Doc: "gamma gaps of the given cv", Value: process{takes: []string{"cv"}, gaps: gamma}},
	{Name: "weibull", Doc: "Weibull gaps of the given cv", Value: process{takes: []string{"cv"}, gaps: weibull}},
	{Name: "bursty", Doc: "Pareto gaps of the given cv or shape: many short ones, a few very long", Value: process{takes: []string{"cv", "shape"}, gaps: bursty}},
	{Name: "constant", Doc: "equal gaps", Value: process{gaps: equalGaps}},
	{Name: "periodic", Doc: "equal gaps, each arrival late by up to jitter of one", Value: process{takes: []string{"jitter"}, arrivals: periodic}},
	{Name: "spikes", Doc: "Poisson, with a spike of duration_s in every interval_s that multiplies the rate", Value: process{takes: []string{"interval_s", "duration_s", "multiplier"}, arrivals: spikes}},
	{Name: "adversarial", Doc: "burst_size arrivals at one instant, then none until the next burst", Value: process{takes: []string{"burst_size"}, arrivals: adversarial}},
	{Name: traceName, Doc: "the times in file", Value: process{takes: []string{"file"}}},
}

const traceName = "trace"

// IsTrace reports whether the times are those of File, whatever the rate.
func (a Arrival) IsTrace() bool { return a.Process == traceName }

// arrivalClock returns the time of the next arrival in µs, not rounded and not before
// the last one's; +Inf after the last.
type arrivalClock func(*rand.Rand) float64

// Times are the times of arrivals, one after the other.
type Times struct{ next arrivalClock }

// Times checks a and returns its arrivals at a rate in arrivals per second,
// which must be above 0; those of a trace are recorded, in µs and in order. An
// error is a *ParamError.
func (a Arrival) Times(rate float64, recorded []float64) (*Times, error) {
	process, p, err := a.lookup()
	if err != nil {
		return nil, err
	}
	var next arrivalClock
	switch {
	case a.IsTrace():
		next = replay(recorded)
	case process.gaps != nil:
		next = renewal(Gaps{process.gaps(p), 1e6 / rate})
	default:
		next = process.arrivals(p, 1e6/rate)
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Times{next}, nil
}

// Gaps draws gaps between arrivals, independent of each other.
type Gaps struct {
	draw   variate
	meanUS float64
}

// Gaps checks a, a process whose gaps are independent draws, and returns them at
// a rate in arrivals per second, which must be above 0. An error is a
// *ParamError.
func (a Arrival) Gaps(rate float64) (*Gaps, error) {
	process, p, err := a.lookup()
	if err != nil {
		return nil, err
	}
	if process.gaps == nil {
		return nil, &ParamError{"process", "the gaps of " + a.Process + " are not independent"}
	}
	g := &Gaps{process.gaps(p), 1e6 / rate}
	if p.err != nil {
		return nil, p.err
	}
	return g, nil
}

// Draw returns the gap to the next arrival in µs, not rounded.
func (g *Gaps) Draw(r *rand.Rand) float64 { return g.draw(r) * g.meanUS }

// renewal is arrivals after gaps.
func renewal(g Gaps) arrivalClock {
	us := 0.0
	return func(r *rand.Rand) float64 {
		us += g.Draw(r)
		return us
	}
}

// Next returns when the next arrival is, in µs since 0, not rounded; +Inf after
// the last.
func (t *Times) Next(r *rand.Rand) float64 { return t.next(r) }

// lookup looks the process up and returns its parameters, of which it takes all.
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
			return process, nil, &ParamError{field.name, a.Process + " has none; " + processesTaking(field.name)}
		}
		p.given[field.name] = *field.value
	}
	switch {
	case a.IsTrace() && a.File == "":
		return process, nil, &ParamError{"file", "must be given for " + a.Process}
	case !a.IsTrace() && a.File != "":
		return process, nil, &ParamError{"file", a.Process + " has none; " + processesTaking("file")}
	}
	return process, p, nil
}

// processesTaking says which processes take a parameter.
func processesTaking(name string) string {
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
func replay(recorded []float64) arrivalClock {
	at := 0
	return func(*rand.Rand) float64 {
		if at == len(recorded) {
			return math.Inf(1)
		}
		at++
		return recorded[at-1]
	}
}
