package recording

import (
	"context"
	"errors"
	"testing"

	"blis/pkg/stream"
)

// FuzzFormats: for any input, reading ends with a positioned error or with valid runs.
func FuzzFormats(f *testing.F) {
	all := samples(f)
	for i, e := range Formats {
		f.Add(uint8(i), all[e.Name])
	}
	f.Add(uint8(len(Formats)), all["csv"])
	f.Fuzz(func(t *testing.T, format uint8, in string) {
		name := "" // detect
		if i := int(format) % (len(Formats) + 1); i < len(Formats) {
			name = Formats[i].Name
		}
		r, err := Read(context.Background(), text(in), name)
		if err != nil {
			var located *stream.SyntaxError
			if !errors.As(err, &located) && name != "blis" && name != "" { // package stream has its own fuzz tests
				t.Errorf("%v says not where", err)
			}
			return
		}
		for _, run := range r.Runs {
			checkRun(t, run)
		}
		for _, s := range r.Steps {
			if s.Prefill < 0 || s.Decode < 0 || !(s.US >= 0) || s.Context < Unknown {
				t.Errorf("a step %+v", s)
			}
		}
	})
}

// checkRun checks what is true of every run.
func checkRun(t *testing.T, run *Run) {
	t.Helper()
	seen := map[string]bool{}
	for i := range run.Outcomes {
		o := &run.Outcomes[i]
		switch done := o.State == completed; {
		case i > 0 && o.ArrivalUS < run.Outcomes[i-1].ArrivalUS:
			t.Errorf("request %d arrives before the one above it", i)
		case o.ArrivalUS < 0 || o.InputTokens < 0 || o.OutputTokens < 0:
			t.Errorf("%+v", o)
		case o.FirstTokenUS != stream.Never && o.FirstTokenUS < o.ArrivalUS:
			t.Errorf("a first token before the arrival: %+v", o)
		case done && (o.CompletedUS == stream.Never || o.CompletedUS < o.FirstTokenUS || o.InputTokens < 1):
			t.Errorf("completed: %+v", o)
		case !done && o.CompletedUS != stream.Never:
			t.Errorf("not completed: %+v", o)
		case run.Clock != clientClock && run.Clock != ServerClock:
			t.Errorf("a clock %q", run.Clock)
		}
		seen[o.ID] = true
	}
	if len(seen) != len(run.Outcomes) {
		t.Errorf("%d ids for %d requests", len(seen), len(run.Outcomes))
	}
	period, _ := run.Period()
	run.OutputCounts()
	if list := run.Requests(period); len(list) > len(run.Outcomes) {
		t.Errorf("%d requests of %d", len(list), len(run.Outcomes))
	}
}
