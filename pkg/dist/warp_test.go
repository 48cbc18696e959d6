package dist

import (
	"errors"
	"math"
	"strings"
	"testing"

	_ "blis/pkg/internal/fixedseed"

	"pgregory.net/rapid"
)

const second = 1_000_000 // µs

// segmentOf returns a segment with times in seconds; end 0 is none.
func segmentOf(start, end int64, multiplier float64) ProfileSegment {
	return ProfileSegment{start * second, end * second, &multiplier}
}

// multiplierOf is a direct implementation of a profile: the factor on the rate at t µs.
func multiplierOf(p *Profile, t float64) float64 {
	if p == nil {
		return 1
	}
	if p.Type == "diurnal" {
		return 1 + p.Amplitude*math.Sin(2*math.Pi*t/float64(p.Period))
	}
	level := 1.0 // of the previous segment, if adjoining
	for i, s := range p.Segments {
		end := float64(s.EndTime)
		if end == 0 && i+1 < len(p.Segments) {
			end = float64(p.Segments[i+1].StartTime)
		} else if end == 0 {
			end = math.Inf(1)
		}
		start := float64(s.StartTime)
		if i > 0 && p.Segments[i-1].EndTime != s.StartTime {
			level = 1
		}
		switch {
		case t >= start && t < end && p.Type == "ramp":
			return level + (*s.Multiplier-level)*(t-start)/(end-start)
		case t >= start && t < end:
			return *s.Multiplier
		case p.Type == "spike" && t >= end && t < end+float64(p.Recovery):
			return *s.Multiplier + (1-*s.Multiplier)*(t-end)/float64(p.Recovery)
		}
		level = *s.Multiplier
	}
	return 1
}

// TestWarp checks areas computed by hand: the time in s at which an area in s is reached.
func TestWarp(t *testing.T) {
	for _, c := range []struct {
		name        string
		profiles    []*Profile
		area, after float64 // in s
	}{
		{"none", nil, 7, 7},
		{"nil", []*Profile{nil, nil}, 7, 7},
		{"constant", []*Profile{{Type: "constant", Segments: []ProfileSegment{segmentOf(0, 0, 4)}}}, 8, 2},
		// 1 + 3 + 2·0.5
		{"step", []*Profile{{Type: "step", Segments: []ProfileSegment{segmentOf(1, 0, 3), segmentOf(2, 0, 0.5)}}},
			5, 4},
		// 1 + 3 + 1
		{"step with an end", []*Profile{{Type: "step", Segments: []ProfileSegment{segmentOf(1, 2, 3)}}}, 5, 3},
		// 1 + 0 + 0.5
		{"zero rate for a while", []*Profile{{Type: "step", Segments: []ProfileSegment{segmentOf(1, 5, 0)}}}, 1.5, 5.5},
		// means never
		{"zero rate forever", []*Profile{{Type: "step", Segments: []ProfileSegment{segmentOf(1, 0, 0)}}}, 1.5, 1e9},
		// 2 seconds from 1 to 2, on average 1.5
		{"ramp", []*Profile{{Type: "ramp", Segments: []ProfileSegment{segmentOf(0, 4, 3)}}}, 3, 2},
		// a triangle
		{"ramp to zero", []*Profile{{Type: "ramp", Segments: []ProfileSegment{segmentOf(0, 4, 0)}}}, 2, 4},
		// 1 + 5 + 2·3 + 1
		{"spike", []*Profile{{Type: "spike", Segments: []ProfileSegment{segmentOf(1, 2, 5)}, Recovery: 2e6}}, 13, 5},
		// a whole wave has mean 1
		{"diurnal", []*Profile{{Type: "diurnal", Period: 8e6, Amplitude: 1}}, 8, 8},
		// ∫ sin over half of it is 8/π
		{"half a wave", []*Profile{{Type: "diurnal", Period: 8e6, Amplitude: 0.5}}, 4 + 4/math.Pi, 4},
		// ∫ cos over a quarter
		{"peak at once", []*Profile{{Type: "diurnal", Period: 8e6, Amplitude: 1, PeakTime: new(int64)}},
			2 + 4/math.Pi, 2},
		{"a day", []*Profile{{Type: "diurnal", Amplitude: 1}}, 43200 + 86400/math.Pi, 43200},
		{"two", []*Profile{{Type: "constant", Segments: []ProfileSegment{segmentOf(0, 0, 4)}},
			{Type: "step", Segments: []ProfileSegment{segmentOf(1, 2, 0.5)}}}, 10, 3},
	} {
		w, err := NewWarp(c.profiles...)
		if err != nil {
			t.Fatal(err)
		}
		got := w.Time(c.area*second) / second
		if c.after == 1e9 {
			if !math.IsInf(got, 1) {
				t.Errorf("%s: reached at %g", c.name, got)
			}
		} else {
			assertNear(t, c.name, got, c.after, 1e-9)
		}
	}
}

// TestWarpOfTwo: the area up to the returned time is the requested one for the product of any two
// profiles, and times do not decrease.
func TestWarpOfTwo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawProfile(rt, "first"), drawProfile(rt, "second")
		w, err := NewWarp(a, b)
		if err != nil {
			rt.Fatalf("%v: %+v and %+v", err, a, b)
		}
		const step = 1000.0 // µs
		// areaOf integrates an interval without jumps with Gauss' two points, which are exact for cubic
		// rates and need no value at the ends. The middle alone errs by several µs in half a wave.
		areaOf := func(from, to float64) float64 {
			middle, off := (from+to)/2, (to-from)/2/math.Sqrt(3)
			rate := func(t float64) float64 { return multiplierOf(a, t) * multiplierOf(b, t) }
			return (rate(middle-off) + rate(middle+off)) / 2 * (to - from)
		}
		us, time, sum, want := 0.0, 0.0, 0.0, 0.0
		for range 5 {
			want += float64(rapid.IntRange(700, 3000).Draw(rt, "area in ms")) * 1000
			next := w.Time(want)
			if next < us {
				rt.Fatalf("%g comes after %g", next, us)
			}
			if us = next; us > 100*second { // the rest has little area or none
				break
			}
			// Steps are at integer seconds, which are multiples of step.
			for ; time+step <= us; time += step {
				sum += areaOf(time, time+step)
			}
			if got := sum + areaOf(time, us); math.Abs(got-want) > 1e-9*want+0.1 {
				rt.Fatalf("up to %g the area is %g, want %g: %+v and %+v", us, got, want, a, b)
			}
		}
	})
}

// drawProfile draws a profile of any type, or none. Multipliers have two decimals, so that none is
// close to zero.
func drawProfile(rt *rapid.T, name string) *Profile {
	kind := rapid.SampledFrom(append(Profiles.Names(), "")).Draw(rt, name)
	p := &Profile{Type: kind}
	switch kind {
	case "":
		return nil
	case "diurnal":
		p.Period = rapid.Int64Range(1, 40).Draw(rt, "period") * second / 2
		p.Amplitude = float64(rapid.IntRange(1, 100).Draw(rt, "amplitude")) / 100
		return p
	case "constant":
		p.Segments = []ProfileSegment{segmentOf(0, 0, 1.5)}
		return p
	case "spike":
		p.Recovery = rapid.Int64Range(0, 2).Draw(rt, "recovery") * second
	}
	end := int64(0)
	for range rapid.IntRange(1, 4).Draw(rt, "segments") {
		start := end + rapid.Int64Range(0, 2).Draw(rt, "pause") + p.Recovery/second
		end = start + rapid.Int64Range(1, 3).Draw(rt, "length")
		p.Segments = append(p.Segments,
			segmentOf(start, end, float64(rapid.IntRange(0, 400).Draw(rt, "multiplier"))/100))
	}
	return p
}

// TestWarpedCounts: Poisson arrivals remain Poisson. Counts in each second have the mean of the
// profile, and a variance equal to the mean.
func TestWarpedCounts(t *testing.T) {
	const runs, rate = 3000, 20
	profile := &Profile{Type: "diurnal", Period: 6 * second, Amplitude: 0.8}
	counts := make([][]float64, 6)
	for i := range counts {
		counts[i] = make([]float64, runs)
	}
	times, err := Arrival{Process: "poisson"}.Times(rate, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWarp(profile)
	if err != nil {
		t.Fatal(err)
	}
	r := NewStream(9, "warp")
	times = times.Warped(w)
	for us := times(r); us < runs*6*second; us = times(r) {
		s := int(us / second)
		counts[s%6][s/6]++
	}
	for s, list := range counts {
		// ∫ sin from s to s + 1 seconds of 6.
		want := rate * (1 + 0.8*3/math.Pi*(math.Cos(float64(s)*math.Pi/3)-math.Cos(float64(s+1)*math.Pi/3)))
		mean, deviation := moments(list)
		assertNear(t, "the mean count", mean, want, 4/math.Sqrt(want*runs))
		assertNear(t, "the variance of counts", deviation*deviation, want, 4*math.Sqrt(2.0/runs)+1/want)
	}
}

// Gaps in the middle of a level are as bursty as without the profile.
func TestWarpKeepsBursts(t *testing.T) {
	w, err := NewWarp(&Profile{Type: "constant", Segments: []ProfileSegment{segmentOf(0, 0, 3)}})
	if err != nil {
		t.Fatal(err)
	}
	times, err := Arrival{Process: "gamma", CV: ptr(2.5)}.Times(20, nil)
	if err != nil {
		t.Fatal(err)
	}
	times = times.Warped(w)
	r := NewStream(5, "gaps")
	v := make([]float64, samples)
	last := 0.0
	for i := range v {
		us := times(r)
		v[i], last = us-last, us
	}
	mean, deviation := moments(v)
	assertNear(t, "the mean gap", mean, second/60.0, 0.02)
	assertNear(t, "the cv", deviation/mean, 2.5, 0.03)
}

func TestBadProfiles(t *testing.T) {
	at := func(v int64) *int64 { return &v }
	for _, c := range []struct {
		profile   Profile
		path, msg string
	}{
		{Profile{Type: "stepp"}, "type",
			`unknown load profile "stepp"; did you mean "step"? (have constant, step, ramp, diurnal, spike)`},
		{Profile{Type: "step"}, "segments", "must have at least one entry for step"},
		{Profile{Type: "step", Segments: []ProfileSegment{{}}}, "segments[0].multiplier", "must be given"},
		{Profile{Type: "step", Segments: []ProfileSegment{segmentOf(0, 1, -1)}}, "segments[0].multiplier",
			"must be between 0 and 1e+06, is -1"},
		{Profile{Type: "step", Segments: []ProfileSegment{segmentOf(-1, 1, 1)}}, "segments[0].start_time",
			"must be between 0 and"},
		{Profile{Type: "step", Segments: []ProfileSegment{segmentOf(5, 3, 1)}}, "segments[0].end_time",
			"must be after start_time (5000000)"},
		{Profile{Type: "step", Segments: []ProfileSegment{segmentOf(1, 3, 1), segmentOf(2, 4, 1)}},
			"segments[1].start_time", "must not be before the end of the previous segment (3000000), is 2000000"},
		{Profile{Type: "step", Segments: []ProfileSegment{segmentOf(1, 0, 1), segmentOf(1, 0, 1)}},
			"segments[0].end_time", "must be after start_time"},
		{Profile{Type: "ramp", Segments: []ProfileSegment{segmentOf(1, 0, 1)}}, "segments[0].end_time",
			"must be given for ramp"},
		{Profile{Type: "constant", Segments: []ProfileSegment{segmentOf(0, 1, 1)}}, "segments",
			"must be one segment without start_time and end_time"},
		{Profile{Type: "spike", Segments: []ProfileSegment{segmentOf(0, 1, 1), segmentOf(2, 3, 1)},
			Recovery: 2 * second}, "segments[1].start_time",
			"must not be before the end of the previous recovery (3000000)"},
		{Profile{Type: "spike", Segments: []ProfileSegment{segmentOf(0, 1, 1)}, Recovery: -1}, "recovery",
			"must be between 0"},
		{Profile{Type: "step", Segments: []ProfileSegment{segmentOf(0, 1, 1)}, Recovery: 1}, "recovery",
			"is not a field of step, only of spike"},
		{Profile{Type: "diurnal"}, "amplitude", "must be above 0 and at most 1, is 0"},
		{Profile{Type: "diurnal", Amplitude: 1.5}, "amplitude", "is 1.5"},
		{Profile{Type: "diurnal", Amplitude: 1, Period: -1}, "period", "must be between 1"},
		{Profile{Type: "diurnal", Amplitude: 1, PeakTime: at(-1)}, "peak_time", "must be between 0"},
		{Profile{Type: "diurnal", Amplitude: 1, Segments: []ProfileSegment{segmentOf(0, 1, 1)}}, "segments",
			"is not a field of diurnal"},
		{Profile{Type: "ramp", Segments: []ProfileSegment{segmentOf(0, 1, 1)}, PeakTime: at(0)}, "peak_time",
			"is not a field of ramp, only of diurnal"},
	} {
		_, err := NewWarp(nil, &c.profile)
		var bad *ParamError
		if !errors.As(err, &bad) || bad.Path != c.path || !strings.Contains(bad.Msg, c.msg) {
			t.Errorf("%+v: %v; want %s: %s", c.profile, err, c.path, c.msg)
		}
	}
}
