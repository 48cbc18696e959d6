package sim

import (
	"fmt"

	"blis/pkg/stream"
)

// Stopped is the error of a run that Options.StopWhen ended, at this time in µs.
type Stopped struct{ AtUS int64 }

func (e Stopped) Error() string { return fmt.Sprintf("the run was stopped at %d µs", e.AtUS) }

// stopper ends a run by the outcome of a request.
type stopper func(*stream.Outcome) bool

func (stopper) hooks() []hook { return []hook{onFinal} }

func (f stopper) observe(s *simulation, _ hook, slot int32) error {
	if f(&s.request(slot).out) {
		return Stopped{int64(s.now)}
	}
	return nil
}
