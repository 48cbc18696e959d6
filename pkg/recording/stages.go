package recording

import (
	"slices"

	"blis/pkg/textio"
)

// rows collects the requests of one run.
type rows struct {
	// setup holds the run's values of the columns in the table setup.
	setup    []string
	requests []request
	// stages holds the stages of the requests, in order.
	stages []string
}

// add adds a request of a stage; "" if there are none. The stage is kept in Step until splitStages.
func (r *rows) add(c request, stage string) {
	if !slices.Contains(r.stages, stage) {
		r.stages = append(r.stages, stage)
	}
	c.Step = stage
	r.requests = append(r.requests, c)
}

// finish sets the outcomes and stages of a run; name is the file for errors.
func (r *rows) finish(run *Run, name string) error {
	where := &textio.Position{Name: name}
	if err := outcomes(where, r.requests, run); err != nil {
		return err
	}
	return run.splitStages(r.stages, where)
}

// splitStages sets the stages, which must not interleave, and clears the Step of outcomes.
func (r *Run) splitStages(stages []string, p *textio.Position) error {
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
			return p.Errorf("the stage %s continues after another stage has begun (request %s)", o.Step, o.ID)
		}
		if n > 0 {
			r.Stages[n-1].ToUS = o.ArrivalUS
		}
		r.Stages = append(r.Stages, Stage{Name: o.Step, FromUS: o.ArrivalUS})
	}
	r.Stages[len(r.Stages)-1].ToUS = r.Outcomes[len(r.Outcomes)-1].ArrivalUS + 1
	return nil
}
