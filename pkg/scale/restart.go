package scale

import "strings"

// Restart is what it takes to bring back a replica that was down, where no auto-scaler says that.
type Restart struct {
	// Load, LoadGBPerS, Warmup and RouteWhileWarming are as in Actuation.
	Load              Delay        `yaml:"load" json:"load"`
	LoadGBPerS        float64      `yaml:"load_gb_per_s" json:"load_gb_per_s"`
	Warmup            WarmupConfig `yaml:"warmup" json:"warmup"`
	RouteWhileWarming bool         `yaml:"route_while_warming" json:"route_while_warming"`
}

// DefaultRestart returns the defaults of a file, which are those of an auto-scaler.
func DefaultRestart() Restart {
	a := DefaultConfig().Actuation
	return Restart{a.Load, a.LoadGBPerS, a.Warmup, a.RouteWhileWarming}
}

// UnmarshalYAML decodes a restart over the defaults.
func (r *Restart) UnmarshalYAML(decode func(any) error) error {
	type plain Restart
	*r = DefaultRestart()
	return decode((*plain)(r))
}

// Plan checks r. Of the plan, only what concerns loading and warming matters. weightBytes is as in Config.Plan. An
// error is an *Error.
func (r *Restart) Plan(weightBytes int64) (*Plan, error) {
	c := DefaultConfig()
	c.Actuation.Load, c.Actuation.LoadGBPerS = r.Load, r.LoadGBPerS
	c.Actuation.Warmup, c.Actuation.RouteWhileWarming = r.Warmup, r.RouteWhileWarming
	p, err := c.Plan(1, 1, weightBytes)
	if invalid, ok := err.(*Error); ok {
		return nil, &Error{strings.TrimPrefix(invalid.Path, "actuation."), invalid.Msg}
	}
	return p, err
}

// Micros returns the duration in µs.
func (d Duration) Micros() (int64, error) { return d.parse() }
