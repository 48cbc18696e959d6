package dist

import (
	"fmt"
	"math"

	"blis/pkg/registry"
)

// Profile is a load profile, as in files: the factor on a rate at each time. Times are in µs.
// Outside of Segments the factor is 1.
type Profile struct {
	// Type is a name in Profiles.
	Type string `yaml:"type"      json:"type"`
	// Segments are the intervals with other factors, in order.
	Segments []ProfileSegment `yaml:"segments"  json:"segments,omitempty"`
	// Recovery is the time in which a spike falls from its multiplier to 1.
	Recovery int64 `yaml:"recovery"  json:"recovery,omitempty"`
	// Period is the period of a diurnal wave 1 + Amplitude·sin; the default is a day. PeakTime is the
	// time of its maximum; the default is a quarter of the period, so that it starts at 1 and rises.
	Period    int64   `yaml:"period"    json:"period,omitempty"`
	Amplitude float64 `yaml:"amplitude" json:"amplitude,omitempty"`
	PeakTime  *int64  `yaml:"peak_time" json:"peak_time,omitempty"`
}

// ProfileSegment is the interval from StartTime to EndTime. Without EndTime it lasts until the next
// segment, the last one forever.
type ProfileSegment struct {
	// StartTime and EndTime are in µs.
	StartTime int64 `yaml:"start_time" json:"start_time,omitempty"`
	EndTime   int64 `yaml:"end_time"   json:"end_time,omitempty"`
	// Multiplier is the factor on the rate.
	Multiplier *float64 `yaml:"multiplier" json:"multiplier,omitempty"`
}

// Profiles are the types of load profiles.
var Profiles = registry.Table[func(*Profile) (curve, error)]{
	{Name: "constant", Doc: "one segment without times, whose multiplier always applies", Value: (*Profile).constant},
	{Name: "step", Doc: "each segment has its multiplier", Value: (*Profile).steps},
	{Name: "ramp",
		Doc:   "in each segment a linear change to its multiplier, from that of an adjoining segment or from 1",
		Value: (*Profile).ramps},
	{Name: "diurnal", Doc: "a sine wave around 1 of amplitude and period", Value: (*Profile).wave},
	{Name: "spike", Doc: "each segment has its multiplier, then a linear return to 1 in recovery",
		Value: (*Profile).spikes},
}

const (
	maxMultiplier = 1e6
	day           = 86_400_000_000 // µs
)

// curve is a multiplier over time: non-overlapping lines in order, and 1 elsewhere; or a wave.
type curve struct {
	lines []line
	// amplitude is 0 if there is no wave; peak is less than the period.
	amplitude, period, peak float64
}

// line goes straight from one multiplier to another. The last one may have no end; then it is
// constant.
type line struct{ start, end, startValue, endValue float64 }

// curve checks p and returns its curve. An error is a *ParamError.
func (p *Profile) curve() (curve, error) {
	build, err := Profiles.Get("load profile", p.Type)
	if err != nil {
		return curve{}, &ParamError{"type", err.Error()}
	}
	for _, field := range []struct {
		name, owner string
		given       bool
	}{
		{"recovery", "spike", p.Recovery != 0},
		{"period", "diurnal", p.Period != 0},
		{"amplitude", "diurnal", p.Amplitude != 0},
		{"peak_time", "diurnal", p.PeakTime != nil},
	} {
		if field.given && p.Type != field.owner {
			return curve{}, invalid(field.name, "is not a field of %s, only of %s", p.Type, field.owner)
		}
	}
	return build(p)
}

// levelLines checks the segments and returns them as constant lines. If needEnds, every segment
// must have an end.
func (p *Profile) levelLines(needEnds bool) ([]line, error) {
	if len(p.Segments) == 0 {
		return nil, &ParamError{"segments", "must have at least one entry for " + p.Type}
	}
	var lines []line
	for i, s := range p.Segments {
		fail := func(field, format string, args ...any) ([]line, error) {
			return nil, invalid(fmt.Sprintf("segments[%d].%s", i, field), format, args...)
		}
		last := i == len(p.Segments)-1
		end := s.EndTime
		if end == 0 && !needEnds && !last {
			end = p.Segments[i+1].StartTime
		}
		switch {
		case s.Multiplier == nil:
			return fail("multiplier", "must be given")
		case !(*s.Multiplier >= 0 && *s.Multiplier <= maxMultiplier):
			return fail("multiplier", "must be between 0 and %g, is %g", float64(maxMultiplier), *s.Multiplier)
		case s.StartTime < 0 || s.StartTime > maxMicros:
			return fail("start_time", "must be between 0 and %d µs, is %d", int64(maxMicros), s.StartTime)
		case i > 0 && float64(s.StartTime) < lines[i-1].end:
			return fail("start_time", "must not be before the end of the previous segment (%.0f), is %d",
				lines[i-1].end, s.StartTime)
		case end == 0 && needEnds:
			return fail("end_time", "must be given for %s", p.Type)
		case (end != 0 || !last) && (end <= s.StartTime || end > maxMicros):
			return fail("end_time", "must be after start_time (%d) and at most %d µs, is %d", s.StartTime,
				int64(maxMicros), end)
		}
		l := line{float64(s.StartTime), float64(end), *s.Multiplier, *s.Multiplier}
		if end == 0 {
			l.end = math.Inf(1)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (p *Profile) constant() (curve, error) {
	if len(p.Segments) != 1 || p.Segments[0].StartTime != 0 || p.Segments[0].EndTime != 0 {
		return curve{}, &ParamError{"segments", "must be one segment without start_time and end_time for constant"}
	}
	return p.steps()
}

func (p *Profile) steps() (curve, error) {
	lines, err := p.levelLines(false)
	return curve{lines: lines}, err
}

func (p *Profile) ramps() (curve, error) {
	lines, err := p.levelLines(true)
	for i := range lines {
		lines[i].startValue = 1
		if i > 0 && lines[i-1].end == lines[i].start {
			lines[i].startValue = lines[i-1].endValue
		}
	}
	return curve{lines: lines}, err
}

func (p *Profile) spikes() (curve, error) {
	levels, err := p.levelLines(true)
	if err != nil {
		return curve{}, err
	}
	if p.Recovery < 0 || p.Recovery > maxMicros {
		return curve{}, invalid("recovery", "must be between 0 and %d µs, is %d", int64(maxMicros), p.Recovery)
	}
	var lines []line
	for i, l := range levels {
		lines = append(lines, l)
		if p.Recovery == 0 {
			continue
		}
		down := line{l.end, l.end + float64(p.Recovery), l.endValue, 1}
		if i+1 < len(levels) && levels[i+1].start < down.end {
			return curve{}, invalid(fmt.Sprintf("segments[%d].start_time", i+1),
				"must not be before the end of the previous recovery (%.0f)", down.end)
		}
		lines = append(lines, down)
	}
	return curve{lines: lines}, nil
}

func (p *Profile) wave() (curve, error) {
	period, peak := p.Period, p.Period/4
	if period == 0 {
		period, peak = day, day/4
	}
	if p.PeakTime != nil {
		peak = *p.PeakTime
	}
	switch {
	case p.Segments != nil:
		return curve{}, &ParamError{"segments", "is not a field of diurnal"}
	case period < 1 || period > maxMicros:
		return curve{}, invalid("period", "must be between 1 and %d µs, is %d", int64(maxMicros), period)
	case !(p.Amplitude > 0 && p.Amplitude <= 1):
		return curve{}, invalid("amplitude", "must be above 0 and at most 1, is %g", p.Amplitude)
	case peak < 0 || peak > maxMicros:
		return curve{}, invalid("peak_time", "must be between 0 and %d µs, is %d", int64(maxMicros), peak)
	}
	return curve{amplitude: p.Amplitude, period: float64(period), peak: float64(peak % period)}, nil
}
