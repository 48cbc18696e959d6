package scale

import "testing"

func TestForMean(t *testing.T) {
	target := Target{0.6, 0.1}
	for _, c := range []struct {
		name string
		f    Fleet
		want int
	}{
		{"grows: mean 0.8 / 0.6 · 4 = 5.33", Fleet{Values: []float64{0.9, 0.8, 0.7, 0.8}}, 6},
		{"two that do not run turn the direction",
			Fleet{Values: []float64{0.75, 0.75, 0.75, 0.75}, Provisioning: 2}, 6},
		{"shrinks: 0.5 / 0.6 · 6 = 5", Fleet{Values: []float64{0.5, 0.5, 0.5, 0.5, 0.5, 0.5}}, 5},
		{"0.65 is inside the tolerance", Fleet{Values: []float64{0.65, 0.65}}, 2},
		{"so is its edge, 0.66", Fleet{Values: []float64{0.66, 0.66}}, 2},
		{"0.67 is not", Fleet{Values: []float64{0.67, 0.67}}, 3},
		{"one that loads has the target when it shrinks: (0.2 + 0.6) / 2 / 0.6 · 2 = 1.33",
			Fleet{Values: []float64{0.2}, Loading: 1}, 2},
		{"and 0 when it grows: 1.8 / 3 / 0.6 is the target", Fleet{Values: []float64{0.9, 0.9}, Loading: 1}, 3},
		{"one that does not run counts 0 when it grows: 6.9 / 11 / 0.6 is inside the tolerance",
			Fleet{Values: []float64{0.69, 0.69, 0.69, 0.69, 0.69, 0.69, 0.69, 0.69, 0.69, 0.69}, Provisioning: 1}, 11},
		{"without values there is no change", Fleet{Loading: 2, Provisioning: 1}, 3},
		{"shrinking ignores those that do not run: 0.15 / 0.6 · 4 = 1",
			Fleet{Values: []float64{0.15, 0.15, 0.15, 0.15}, Provisioning: 2}, 1},
	} {
		if got := target.ForMean(&c.f); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestForTotal(t *testing.T) {
	target := Target{10, 0.1}
	for _, c := range []struct {
		total      float64
		current    int
		activation float64
		want       int
	}{
		{45, 4, 0, 5}, {44, 4, 0, 4}, {36, 4, 0, 4}, {35, 4, 0, 4}, {30, 4, 0, 3}, {0, 4, 0, 0},
		{0, 0, 0, 0}, {1, 0, 0, 1}, {5, 0, 5, 0}, {25, 0, 5, 3},
	} {
		if got := target.ForTotal(c.total, c.current, c.activation); got != c.want {
			t.Errorf("total %g on %d replicas: %d, want %d", c.total, c.current, got, c.want)
		}
	}
}

// TestScaler plays the story of the defaults of an HPA: it doubles at once, and shrinks after 300 s.
func TestScaler(t *testing.T) {
	b := Behavior{Min: 2, Max: 16,
		Up:   Direction{Limits: []Limit{{Percent: 100, PeriodUS: 15e6}, {Replicas: 4, PeriodUS: 15e6}}},
		Down: Direction{StabilizationUS: 300e6, Limits: []Limit{{Percent: 100, PeriodUS: 15e6}}}}
	s, current := NewScaler(b), 4
	for _, c := range []struct {
		atS, recommended, want int
	}{
		{0, 6, 6},
		{15, 6, 6},
		{30, 5, 6},    // the 6 of 15 s is in the window
		{314, 5, 6},   // still: 14 s is its end
		{315, 5, 5},   // the 6 of 15 s has just left it
		{330, 20, 10}, // 5 + 100 %
		{335, 20, 10}, // the same period
		{345, 20, 16}, // 10 + 100 %, then the maximum
		{360, 1, 16},  // 20 is in the window
		{646, 0, 2},   // it shrinks to nothing at once, but for the minimum
	} {
		got := s.Next(int64(c.atS)*1e6, current, c.recommended)
		if got != c.want {
			t.Errorf("at %d s: %d replicas for a recommendation of %d, want %d", c.atS, got, c.recommended, c.want)
		}
		s.Changed(int64(c.atS)*1e6, got-current)
		current = got
	}
}

func TestScalerCooldown(t *testing.T) {
	s := NewScaler(Behavior{CooldownUS: 60e6})
	for _, c := range []struct{ atS, current, recommended, want int }{
		{0, 2, 3, 3}, {59, 3, 5, 3}, {60, 3, 5, 5},
	} {
		if got := s.Next(int64(c.atS)*1e6, c.current, c.recommended); got != c.want {
			t.Errorf("at %d s: %d, want %d", c.atS, got, c.want)
		}
		s.Changed(int64(c.atS)*1e6, c.want-c.current)
	}
}

func TestWarmup(t *testing.T) {
	for _, c := range []struct {
		curve Curve
		ageUS int64
		want  float64 // of a step of 1000 µs, rounded up
	}{
		{linear, 0, 1500}, {linear, 30e6, 1250}, {exponential, 30e6, 1041.0424993}, {step, 59_999_000, 1500},
		{linear, 60e6, 1000}, {exponential, 60e6, 1000}, {step, 60e6, 1000},
	} {
		w := Warmup{c.curve, 1.5, 60e6}
		if got := 1000 * w.At(c.ageUS); got < c.want-1e-6 || got > c.want+1e-6 {
			t.Errorf("curve %d at %d µs: %.9g, want %.9g", c.curve, c.ageUS, got, c.want)
		}
	}
}

// TestLimitsOfPeriods: a replica in 10 s and three in 30 s, of which the smaller number holds. What changed 10 s ago is
// in the longer period only.
func TestLimitsOfPeriods(t *testing.T) {
	s := NewScaler(Behavior{Up: Direction{Select: selectMin, Limits: []Limit{{Replicas: 1, PeriodUS: 10e6},
		{Replicas: 3, PeriodUS: 30e6}}}})
	current := 4
	for _, c := range []struct{ atS, want int }{{0, 5}, {9, 5}, {10, 6}, {20, 7}, {29, 7}, {30, 8}} {
		got := s.Next(int64(c.atS)*1e6, current, 100)
		if got != c.want {
			t.Errorf("at %d s: %d, want %d", c.atS, got, c.want)
		}
		s.Changed(int64(c.atS)*1e6, got-current)
		current = got
	}
}

// TestFirstReplica: no limit holds it up, and it is one.
func TestFirstReplica(t *testing.T) {
	s := NewScaler(Behavior{Up: Direction{Limits: []Limit{{Percent: 100, PeriodUS: 15e6}}}})
	if got := s.Next(0, 0, 5); got != 1 {
		t.Errorf("%d replicas, want 1", got)
	}
}
