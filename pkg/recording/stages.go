package recording

import (
	"slices"

	"blis/pkg/textio"
)

// rows are the calls of one run, as they are read.
type rows struct {
	// setup is what tells them from other runs, in the order of the table setup.
	setup []string
	calls []call
	// stages are those of the calls, in order.
	stages []string
}

// add takes a call of a stage, which is "" where there are none. It stands in
// Step until the stages are cut.
func (r *rows) add(c call, stage string) {
	if !slices.Contains(r.stages, stage) {
		r.stages = append(r.stages, stage)
	}
	c.Step = stage
	r.calls = append(r.calls, c)
}

// fill gives a run its outcomes and stages; errors call the file by name.
func (r *rows) fill(run *Run, name string) error {
	where := &textio.Place{Name: name}
	if err := outcomes(where, r.calls, run); err != nil {
		return err
	}
	return run.cutStages(r.stages, where)
}

// cutStages finds the stages, which must follow each other. Until then they stand
// in Step of the outcomes.
func (r *Run) cutStages(stages []string, p *textio.Place) error {
	defer func() {
		for i := range r.Outcomes {
			r.Outcomes[i].Step = ""
		}
	}()
	if len(stages) < 2 || !r.Arrivals {
		return nil
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		n := len(r.Stages)
		if n > 0 && r.Stages[n-1].Name == o.Step {
			continue
		}
		if slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Name == o.Step }) {
			return p.Errorf("the stage %s goes on after another one has begun (request %s)", o.Step, o.ID)
		}
		if n > 0 {
			r.Stages[n-1].ToUS = o.ArrivalUS
		}
		r.Stages = append(r.Stages, Stage{Name: o.Step, FromUS: o.ArrivalUS})
	}
	r.Stages[len(r.Stages)-1].ToUS = r.Outcomes[len(r.Outcomes)-1].ArrivalUS + 1
	return nil
}
