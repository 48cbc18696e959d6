package calibrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/stream"
)

// holdout is the selected requests of a run, on which coefficients are evaluated.
type holdout struct {
	name      string
	run       *replay
	stage     recording.Stage
	selected  []bool   // of run.requests
	simulated []timing // nil before the evaluation
}

func isFraction(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// holdOut divides the recorded data into what the fit uses and what it is evaluated on.
func (s *setup) holdOut(ctx context.Context) ([]holdout, error) {
	text := s.options.Holdout
	if fraction, err := strconv.ParseFloat(text, 64); err == nil {
		return s.holdOutEnds(fraction), nil
	}
	if name, ok := strings.CutPrefix(text, "stage:"); ok {
		return s.holdOutStage(name)
	}
	holdouts, err := s.holdOutFile(ctx, text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--holdout must be a fraction of the time (0.4), stage:NAME, or a recording; %w", err)
	}
	return holdouts, err
}

// holdOutEnds holds out the last fraction of the time of each stage.
func (s *setup) holdOutEnds(fraction float64) (holdouts []holdout) {
	for _, h := range s.allStages() {
		h.name += fmt.Sprintf(", last %g %% of the time", 100*fraction)
		length := fraction * float64(h.stage.ToUS-h.stage.FromUS)
		h.selected = h.run.arrivalsBetween(h.stage.ToUS-stream.Micros(length), h.stage.ToUS)
		if slices.Contains(h.selected, true) {
			holdouts = append(holdouts, h.removeFromFit())
		}
	}
	return holdouts
}

// holdOutStage holds out the stages of a name.
func (s *setup) holdOutStage(name string) (holdouts []holdout, err error) {
	var have []string
	for _, h := range s.allStages() {
		if len(h.run.stages) == 0 {
			continue
		}
		have = append(have, h.stage.Name)
		if h.stage.Name == name {
			holdouts = append(holdouts, h.removeFromFit())
		}
	}
	if holdouts == nil {
		slices.Sort(have)
		return nil, fmt.Errorf("--holdout stage:%s: the recordings have no such stage (have %s)",
			name, cmp.Or(strings.Join(slices.Compact(have), ", "), "none"))
	}
	return holdouts, nil
}

// holdOutFile evaluates on all requests of another file.
func (s *setup) holdOutFile(ctx context.Context, file string) ([]holdout, error) {
	files, err := s.options.open(ctx, []string{file})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(s.files, files[0].Overlap); i >= 0 {
		return nil, &UsageError{fmt.Sprintf("--holdout %s is %s, to which coefficients are fitted",
			file, s.files[i].Path)}
	}
	other, err := newSetup(s.options, files)
	if err != nil {
		return nil, err
	}
	s.warnings = append(s.warnings, other.warnings...)
	return other.allStages(), nil
}

// allStages returns each stage of each run; a run without stages is one. The last ends with the
// last arrival.
func (s *setup) allStages() (holdouts []holdout) {
	for _, r := range s.replays {
		if len(r.requests) == 0 {
			continue
		}
		stages := slices.Clone(r.stages)
		if len(stages) == 0 {
			stages = []recording.Stage{{FromUS: r.requests[0].ArrivalUS}}
		}
		stages[len(stages)-1].ToUS = r.requests[len(r.requests)-1].ArrivalUS + 1
		for _, stage := range stages {
			h := holdout{name: r.name, run: r, stage: stage, selected: r.arrivalsBetween(stage.FromUS, stage.ToUS)}
			if stage.Name != "" {
				h.name += " stage " + stage.Name
			}
			n := 0
			for _, in := range h.selected {
				if in {
					n++
				}
			}
			if seconds := float64(stage.ToUS-stage.FromUS) / 1e6; seconds > 0 && n > 1 {
				h.name += fmt.Sprintf(" (%v requests/s)", round(float64(n)/seconds, 3))
			}
			holdouts = append(holdouts, h)
		}
	}
	return holdouts
}

// removeFromFit removes the requests of the holdout from the fit and returns it.
func (h holdout) removeFromFit() holdout {
	for i, in := range h.selected {
		if in {
			h.run.fitted[i] = false
		}
	}
	return h
}

// arrivalsBetween marks the requests that arrive from one instant on and before another.
func (r *replay) arrivalsBetween(from, to stream.Micros) []bool {
	in := make([]bool, len(r.requests))
	for i, q := range r.requests {
		in[i] = q.ArrivalUS >= from && q.ArrivalUS < to
	}
	return in
}
