package scale

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestPlanOfDefaults: 16 GB of weights load in 8 s at 2 GB/s, after 30 s.
func TestPlanOfDefaults(t *testing.T) {
	c := DefaultConfig()
	p, err := c.Plan(1, 8, 16e9)
	if err != nil {
		t.Fatal(err)
	}
	double := Limit{Percent: 100, PeriodUS: 15e6}
	want := Plan{IntervalUS: 15e6, Behavior: Behavior{Min: 1, Max: 8,
		Up:   Direction{Limits: []Limit{double, {Replicas: 4, PeriodUS: 15e6}}},
		Down: Direction{StabilizationUS: 300e6, Limits: []Limit{double}}},
		Provision: p.Provision, Load: p.Load, Warmup: Warmup{linear, 1.5, 60e6}, Drain: DrainWait, DrainTimeoutUS: 60e6,
		RouteWhileWarming: true}
	if !reflect.DeepEqual(*p, want) {
		t.Errorf("%+v, want %+v", *p, want)
	}
	if provision, load := p.Provision.Quantile(0.5), p.Load.Quantile(0.5); provision != 30e6 || load != 38e6 {
		t.Errorf("provisioning %d µs and loading %d µs, want 30 s and 38 s", provision, load)
	}
}

// TestPlanWithTrigger: its condition is checked, instead of looks at intervals.
func TestPlanWithTrigger(t *testing.T) {
	c := DefaultConfig()
	c.Interval, c.Trigger, c.Activation, c.Cooldown = "", &Trigger{When: "true", For: "3s", CheckEvery: "2s"}, 5, "7s"
	c.Actuation.Load = Delay{Type: "uniform", Params: map[string]any{"min": "1ms", "max": int64(3000)}}
	c.Actuation.RouteWhileWarming, c.Limits.Select = false, "min"
	p, err := c.Plan(0, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p.IntervalUS != 2e6 || p.HoldUS != 3e6 || p.Activation != 5 || p.Behavior.CooldownUS != 7e6 ||
		p.RouteWhileWarming || p.Behavior.Up.Select != selectMin || p.Behavior.Down.Select != selectMin {
		t.Errorf("%+v", *p)
	}
	if middle := p.Load.Quantile(0.5); middle != 2000 {
		t.Errorf("loading takes %d µs, want 2000", middle)
	}
}

// TestPlanErrors: a wrong value is an error at its path, and the largest ones allowed are none.
func TestPlanErrors(t *testing.T) {
	for _, c := range []struct {
		change    func(*Config)
		path, msg string
	}{
		{func(c *Config) { c.Interval = "-1s" }, "interval", "must be a duration in whole µs"},
		{func(c *Config) { c.Interval = "1ns" }, "interval", "must be a duration in whole µs"},
		{func(c *Config) { c.Interval = "soon" }, "interval", "must be a duration in whole µs"},
		{func(c *Config) { c.Interval = "1000001s" }, "interval", "of at most eleven days"},
		{func(c *Config) { c.Interval = "1000000s" }, "", ""},
		{func(c *Config) { c.Interval = "0s" }, "interval", "must be above 0"},
		{func(c *Config) { c.Trigger = &Trigger{For: "1s", CheckEvery: "1s"} }, "interval", "no effect with a trigger"},
		{func(c *Config) { c.Activation = -1 }, "activation", "at least 0, is -1"},
		{func(c *Config) { c.Cost.PerGPUHour = -1 }, "cost.per_gpu_hour", "must be between"},
		{func(c *Config) { c.Limits.Up[1].Percent = 5 }, "limits.up[1]", "replicas or percent"},
		{func(c *Config) { c.Limits.Down[0].Percent = 0 }, "limits.down[0]", "replicas or percent"},
		{func(c *Config) { c.Limits.Down[0].Period = "0s" }, "limits.down[0].period", "must be above 0"},
		{func(c *Config) { c.Limits.Select = "most" }, "limits.select", `unknown choice "most"`},
		{func(c *Config) { c.Actuation.Drain.Mode = "max" }, "actuation.drain.mode", `unknown choice "max"`},
		{func(c *Config) { c.Actuation.Drain.Timeout = "" }, "actuation.drain.timeout", "must be a duration"},
		{func(c *Config) { c.Actuation.Warmup.Factor = 0.5 }, "actuation.warmup.factor", "between 1 and 1000"},
		{func(c *Config) { c.Actuation.Load.Params = map[string]any{"value": 1} }, "actuation.load.params",
			"auto has no parameters"},
		{func(c *Config) { c.Actuation.LoadGBPerS = 0 }, "actuation.load_gb_per_s", "must be between"},
		{func(c *Config) { c.Actuation.Provision.Params["value"] = true }, "actuation.provision", "is true"},
	} {
		config := DefaultConfig()
		c.change(&config)
		_, err := config.Plan(1, 8, 1e9)
		var wrong *Error
		if c.path == "" && err != nil || c.path != "" && (!errors.As(err, &wrong) || wrong.Path != c.path ||
			!strings.Contains(wrong.Msg, c.msg)) {
			t.Errorf("error %v, want %q at %q", err, c.msg, c.path)
		}
	}
	c := DefaultConfig()
	_, err := c.Plan(1, 8, 0)
	if err == nil || err.Error() != "actuation.load: auto needs a known model; set a duration" {
		t.Errorf("unknown weights: %v", err)
	}
}
