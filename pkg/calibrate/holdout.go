package calibrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/stream"
)

// part is requests of a run that coefficients are judged by.
type part struct {
	name string
	run  *run
	in   []bool // of run.requests
	// simulated is what they saw in the simulation that judges; nil before.
	simulated []seen
}

// holdOut divides what was recorded into what the fit sees and the parts that judge
// it.
func (s *setup) holdOut(ctx context.Context) ([]part, error) {
	text := s.options.Holdout
	if fraction, err := strconv.ParseFloat(text, 64); err == nil {
		if !(fraction >= 0) || fraction >= 1 {
			return nil, &CallError{fmt.Sprintf("--holdout must be at least 0 and below 1 of the time, is %s", text)}
		}
		return s.holdEnds(fraction), nil
	}
	if name, ok := strings.CutPrefix(text, "stage:"); ok {
		return s.holdStage(name)
	}
	parts, err := s.holdFile(ctx, text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--holdout must be a part of the time (0.4), stage:NAME, or a recording; %w", err)
	}
	return parts, err
}

// holdEnds holds back the last part of the time of each stage.
func (s *setup) holdEnds(fraction float64) (parts []part) {
	if fraction == 0 {
		return nil
	}
	for _, r := range s.runs {
		for _, stage := range r.stagesOrAll() {
			cut := stage.ToUS - stream.Micros(fraction*float64(stage.ToUS-stage.FromUS))
			p := part{name: fmt.Sprintf("%s, last %g %% of the time", nameOfStage(r, stage), 100*fraction), run: r, in: r.within(cut, stage.ToUS)}
			p.hold()
			if slices.Contains(p.in, true) {
				parts = append(parts, p)
			}
		}
	}
	return parts
}

// holdStage holds back the stages of a name.
func (s *setup) holdStage(name string) (parts []part, err error) {
	var have []string
	for _, r := range s.runs {
		for _, stage := range r.stagesOrAll() {
			if len(r.stages) == 0 {
				continue
			}
			have = append(have, stage.Name)
			if stage.Name == name {
				p := r.partOf(stage)
				p.hold()
				parts = append(parts, p)
			}
		}
	}
	if parts == nil {
		if have == nil {
			return nil, fmt.Errorf("--holdout stage:%s: the recordings have no stages", name)
		}
		slices.Sort(have)
		return nil, fmt.Errorf("--holdout stage:%s: the recordings have no such stage (have %s)", name, strings.Join(slices.Compact(have), ", "))
	}
	return parts, nil
}

// holdFile judges by all requests of another file.
func (s *setup) holdFile(ctx context.Context, file string) ([]part, error) {
	all, err := open(ctx, []string{file}, s.options)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		for _, f := range s.files {
			if f.Overlap(r) {
				return nil, &CallError{fmt.Sprintf("--holdout %s is %s, which is fitted to: what was fitted to judges nothing", file, f.Path)}
			}
		}
	}
	other, err := s.options.setup(all)
	if err != nil {
		return nil, err
	}
	s.warnings = append(s.warnings, other.warnings...)
	return other.everything(), nil
}

// everything is a part for each stage of each run.
func (s *setup) everything() (parts []part) {
	for _, r := range s.runs {
		for _, stage := range r.stagesOrAll() {
			parts = append(parts, r.partOf(stage))
		}
	}
	return parts
}

// within says which requests of a run arrive from an instant on and before another.
func (r *run) within(from, to stream.Micros) []bool {
	in := make([]bool, len(r.requests))
	for i, q := range r.requests {
		in[i] = q.ArrivalUS >= from && q.ArrivalUS < to
	}
	return in
}

// partOf is the part of a stage of stagesOrAll.
func (r *run) partOf(stage recording.Stage) part {
	return part{name: nameOfStage(r, stage), run: r, in: r.within(stage.FromUS, stage.ToUS)}
}

// hold keeps the part from the fit.
func (p *part) hold() {
	for i, in := range p.in {
		if in {
			p.run.used[i] = false
		}
	}
}

// stagesOrAll are the stages of a run, all of its time if it has none; the last goes
// on to the last arrival.
func (r *run) stagesOrAll() []recording.Stage {
	if len(r.requests) == 0 {
		return nil
	}
	end := r.requests[len(r.requests)-1].ArrivalUS + 1
	stages := slices.Clone(r.stages)
	if len(stages) == 0 {
		stages = []recording.Stage{{FromUS: r.requests[0].ArrivalUS, ToUS: end}}
	}
	stages[len(stages)-1].ToUS = end
	return stages
}

func nameOfStage(r *run, stage recording.Stage) string {
	name := r.name
	if stage.Name != "" {
		name += " stage " + stage.Name
	}
	n, span := 0, float64(stage.ToUS-stage.FromUS)/1e6
	for _, in := range r.within(stage.FromUS, stage.ToUS) {
		if in {
			n++
		}
	}
	if span > 0 && n > 1 {
		name += fmt.Sprintf(" (%s requests/s)", strconv.FormatFloat(round(float64(n)/span, 3), 'g', -1, 64))
	}
	return name
}

// round keeps so many significant digits.
func round(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return r
}
