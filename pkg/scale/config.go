package scale

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"blis/pkg/dist"
	"blis/pkg/registry"
)

// Config says when an auto-scaler looks at a deployment and what follows from its recommendations. The defaults are
// those of Kubernetes' Horizontal Pod Autoscaler (autoscaling/v2 and kube-controller-manager v1.34) where it has
// them.
type Config struct {
	// Interval is the time between two looks. The first one is at its end. With a Trigger there is none.
	Interval      Duration      `yaml:"interval" json:"interval,omitempty"`
	Trigger       *Trigger      `yaml:"trigger" json:"trigger,omitempty"`
	Stabilization Stabilization `yaml:"stabilization" json:"stabilization"`
	// Cooldown is the time after a change in which there is no other.
	Cooldown Duration `yaml:"cooldown" json:"cooldown"`
	// Activation is the number of requests that may wait before a deployment without replicas gets one.
	Activation int       `yaml:"activation" json:"activation,omitempty"`
	Limits     Limits    `yaml:"limits" json:"limits"`
	Actuation  Actuation `yaml:"actuation" json:"actuation"`
	Cost       Cost      `yaml:"cost" json:"cost,omitzero"`
}

// Trigger is a condition, a CEL expression, that is checked at the multiples of CheckEvery. The auto-scaler looks when
// it has held at all checks for the time For. That time then begins again.
type Trigger struct {
	When       string   `yaml:"when" json:"when"`
	For        Duration `yaml:"for" json:"for"`
	CheckEvery Duration `yaml:"check_every" json:"check_every"`
}

// UnmarshalYAML decodes a trigger over the defaults.
func (t *Trigger) UnmarshalYAML(decode func(any) error) error {
	type plain Trigger
	*t = Trigger{For: "0s", CheckEvery: "1s"}
	return decode((*plain)(t))
}

// Stabilization has the windows of Direction.StabilizationUS.
type Stabilization struct {
	Up   Duration `yaml:"up" json:"up"`
	Down Duration `yaml:"down" json:"down"`
}

// Limits are those of Direction. Select is max, min or disabled.
type Limits struct {
	Up     []LimitConfig `yaml:"up" json:"up,omitempty"`
	Down   []LimitConfig `yaml:"down" json:"down,omitempty"`
	Select string        `yaml:"select" json:"select"`
}

// LimitConfig is a Limit: by a number of replicas or by a percentage.
type LimitConfig struct {
	Replicas int      `yaml:"replicas" json:"replicas,omitempty"`
	Percent  float64  `yaml:"percent" json:"percent,omitempty"`
	Period   Duration `yaml:"period" json:"period"`
}

// Actuation is what it takes to start and to stop a replica.
type Actuation struct {
	// Provision is the time until a new replica has its GPUs, Load the time that it then takes to load the model: auto
	// is the bytes of the weights at LoadGBPerS (10⁹ bytes/s) and 30 s.
	Provision  Delay        `yaml:"provision" json:"provision"`
	Load       Delay        `yaml:"load" json:"load"`
	LoadGBPerS float64      `yaml:"load_gb_per_s" json:"load_gb_per_s"`
	Warmup     WarmupConfig `yaml:"warmup" json:"warmup"`
	Drain      DrainConfig  `yaml:"drain" json:"drain"`
	// RouteWhileWarming sends requests to replicas that warm up.
	RouteWhileWarming bool `yaml:"route_while_warming" json:"route_while_warming"`
}

// WarmupConfig is a Warmup; without a Duration there is none. Curve is linear, exponential or step.
type WarmupConfig struct {
	Curve    string   `yaml:"curve" json:"curve"`
	Duration Duration `yaml:"duration" json:"duration"`
	Factor   float64  `yaml:"factor" json:"factor"`
}

// DrainConfig says what happens to the requests of a replica that is to go: with Mode wait it completes them, until
// the Timeout unless that is 0; with immediate they fail; with redirect they go to other replicas.
type DrainConfig struct {
	Mode    string   `yaml:"mode" json:"mode"`
	Timeout Duration `yaml:"timeout" json:"timeout"`
}

// Cost is the price of a GPU for an hour, in the user's currency.
type Cost struct {
	PerGPUHour float64 `yaml:"per_gpu_hour" json:"per_gpu_hour,omitempty"`
}

// MaxPrice bounds prices of a GPU for an hour.
const MaxPrice = 1e6

// The modes of DrainConfig.
const (
	DrainWait      = "wait"
	DrainImmediate = "immediate"
	DrainRedirect  = "redirect"
)

// drainModes, selects and curves are the values in files. The last two are in the order of Select and Curve.
var (
	drainModes = []string{DrainWait, DrainImmediate, DrainRedirect}
	selects    = []string{"max", "min", "disabled"}
	curves     = []string{"linear", "exponential", "step"}
)

// DefaultConfig returns the defaults of a file.
func DefaultConfig() Config {
	all := LimitConfig{Percent: 100, Period: "15s"}
	return Config{Interval: "15s", Stabilization: Stabilization{"0s", "300s"}, Cooldown: "0s",
		Limits: Limits{[]LimitConfig{all, {Replicas: 4, Period: "15s"}}, []LimitConfig{all}, selects[selectMax]},
		Actuation: Actuation{Provision: Delay{Type: "constant", Params: map[string]any{"value": "30s"}},
			Load: Delay{Type: loadAuto}, LoadGBPerS: 2, Warmup: WarmupConfig{curves[linear], "60s", 1.5},
			Drain: DrainConfig{DrainWait, "60s"}, RouteWhileWarming: true}}
}

// maxUS bounds all times: eleven days.
const maxUS = 1_000_000_000_000

// Duration is a Go duration in whole µs, such as 90s.
type Duration string

// parse returns the duration in µs.
func (d Duration) parse() (int64, error) {
	t, err := time.ParseDuration(string(d))
	if err != nil || t < 0 || t%time.Microsecond != 0 || t.Microseconds() > maxUS {
		return 0, fmt.Errorf("must be a duration in whole µs, such as 90s, of at most eleven days, is %q", string(d))
	}
	return t.Microseconds(), nil
}

// Delay is a distribution of durations (dist.Lengths). Parameters that are durations are Go durations or numbers of
// µs. A duration alone is a constant.
type Delay struct {
	Type   string         `yaml:"type" json:"type"`
	Params map[string]any `yaml:"params" json:"params,omitempty"`
}

// loadAuto is the type of a load time that follows from the weights.
const loadAuto = "auto"

// UnmarshalYAML decodes a delay, which may be just a duration or auto.
func (d *Delay) UnmarshalYAML(decode func(any) error) error {
	type plain Delay
	var value any
	if err := decode(&value); err != nil {
		return err
	}
	text, ok := value.(string)
	switch {
	case !ok:
		*d = Delay{}
		return decode((*plain)(d))
	case text == loadAuto:
		*d = Delay{Type: loadAuto}
	default:
		*d = Delay{Type: "constant", Params: map[string]any{"value": text}}
	}
	return nil
}

// build returns the distribution.
func (d *Delay) build() (*dist.Length, error) {
	s := dist.Spec{Type: d.Type, Params: map[string]float64{}}
	for _, name := range slices.Sorted(maps.Keys(d.Params)) {
		switch v := d.Params[name].(type) {
		case string:
			us, err := Duration(v).parse()
			if err != nil {
				return nil, fmt.Errorf("params.%s %w", name, err)
			}
			s.Params[name] = float64(us)
		case float64:
			s.Params[name] = v
		case int:
			s.Params[name] = float64(v)
		case int64:
			s.Params[name] = float64(v)
		case uint64:
			s.Params[name] = float64(v)
		default:
			return nil, fmt.Errorf("params.%s must be a duration or a number, is %v", name, v)
		}
	}
	return s.Duration()
}

// Error is an invalid value of a Config, at its path.
type Error struct{ Path, Msg string }

func (e *Error) Error() string { return e.Path + ": " + e.Msg }

// Plan is a Config that was checked, for one deployment.
type Plan struct {
	// IntervalUS is the time between two looks or, with a trigger, between two checks of its condition, which must hold
	// for HoldUS.
	IntervalUS        int64
	HoldUS            int64
	Activation        int
	Behavior          Behavior
	Provision, Load   *dist.Length
	Warmup            Warmup
	Drain             string
	DrainTimeoutUS    int64 // 0 is none
	RouteWhileWarming bool
}

// Plan checks c. weightBytes are those of the deployment's model, 0 if they are not known. An error is an *Error.
func (c *Config) Plan(lowest, highest int, weightBytes int64) (p *Plan, err error) {
	b := &planner{}
	b.between("cost.per_gpu_hour", c.Cost.PerGPUHour, 0, MaxPrice)
	p = &Plan{RouteWhileWarming: c.Actuation.RouteWhileWarming, Drain: c.Actuation.Drain.Mode,
		DrainTimeoutUS: b.duration("actuation.drain.timeout", c.Actuation.Drain.Timeout)}
	p.IntervalUS, p.HoldUS = b.looks(c)
	if p.Activation = c.Activation; p.Activation < 0 {
		b.fail("activation", "must be at least 0, is %d", p.Activation)
	}
	p.Behavior = Behavior{Min: lowest, Max: highest, CooldownUS: b.duration("cooldown", c.Cooldown),
		Up:   b.direction("up", c.Stabilization.Up, c.Limits.Up, c.Limits.Select),
		Down: b.direction("down", c.Stabilization.Down, c.Limits.Down, c.Limits.Select)}
	b.choice("actuation.drain.mode", p.Drain, drainModes)
	a := &c.Actuation
	p.Provision = b.delay("actuation.provision", a.Provision)
	rate := b.between("actuation.load_gb_per_s", a.LoadGBPerS, 1e-3, 1e6)
	load := a.Load
	if load.Type == loadAuto {
		if len(load.Params) > 0 {
			b.fail("actuation.load.params", "auto has no parameters; set load_gb_per_s")
		}
		if weightBytes == 0 {
			b.fail("actuation.load", "auto needs a known model; set a duration")
		}
		const start = 30e6
		us := math.Round(float64(weightBytes)/rate/1000 + start)
		load = Delay{Type: "constant", Params: map[string]any{"value": us}}
	}
	p.Load = b.delay("actuation.load", load)
	p.Warmup = Warmup{Curve(b.choice("actuation.warmup.curve", a.Warmup.Curve, curves)),
		b.between("actuation.warmup.factor", a.Warmup.Factor, 1, 1000),
		b.duration("actuation.warmup.duration", a.Warmup.Duration)}
	return p, b.err()
}

// looks returns the time between two looks or checks, and the time for which the condition of a trigger must hold.
func (b *planner) looks(c *Config) (intervalUS, holdUS int64) {
	path, interval := "interval", c.Interval
	if c.Trigger != nil {
		if c.Interval != "" {
			b.fail("interval", "has no effect with a trigger; remove one of them")
		}
		path, interval = "trigger.check_every", c.Trigger.CheckEvery
		holdUS = b.duration("trigger.for", c.Trigger.For)
	}
	if intervalUS = b.duration(path, interval); intervalUS == 0 {
		b.fail(path, "must be above 0")
	}
	return intervalUS, holdUS
}

// planner keeps the first error.
type planner struct{ first *Error }

func (b *planner) err() error {
	if b.first == nil {
		return nil
	}
	return b.first
}

func (b *planner) fail(path, format string, args ...any) {
	if b.first == nil {
		b.first = &Error{path, fmt.Sprintf(format, args...)}
	}
}

func (b *planner) duration(path string, d Duration) int64 {
	us, err := d.parse()
	if err != nil {
		b.fail(path, "%v", err)
	}
	return us
}

func (b *planner) delay(path string, d Delay) *dist.Length {
	l, err := d.build()
	if err != nil {
		b.fail(path, "%v", err)
	}
	return l
}

func (b *planner) between(path string, x, least, most float64) float64 {
	if !(x >= least && x <= most) {
		b.fail(path, "must be between %g and %g, is %g", least, most, x)
	}
	return x
}

// choice returns the position of a name.
func (b *planner) choice(path, name string, have []string) int {
	i := slices.Index(have, name)
	if i < 0 {
		b.fail(path, "%v", registry.Unknown("choice", name, have))
	}
	return i
}

// direction converts the limits of one direction.
func (b *planner) direction(name string, window Duration, limits []LimitConfig, selected string) Direction {
	d := Direction{StabilizationUS: b.duration("stabilization."+name, window),
		Select: Select(b.choice("limits.select", selected, selects))}
	for i, l := range limits {
		path := fmt.Sprintf("limits.%s[%d]", name, i)
		period := b.duration(path+".period", l.Period)
		switch {
		case period == 0:
			b.fail(path+".period", "must be above 0")
		case (l.Replicas > 0) == (l.Percent > 0) || l.Replicas < 0 || l.Percent < 0:
			b.fail(path, "must have replicas or percent, above 0")
		}
		d.Limits = append(d.Limits, Limit{l.Replicas, l.Percent, period})
	}
	return d
}
