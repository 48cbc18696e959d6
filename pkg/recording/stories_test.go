package recording

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"blis/pkg/stream"
	"blis/pkg/textio"

	"github.com/cockroachdb/datadriven"
)

// text is an input stream.
func text(s string) textio.Input {
	return textio.Input{Name: "in", Stream: strings.NewReader(s)}
}

// formatRecording formats a recording: a line for each run, outcome, step and warning.
func formatRecording(r *Recording) string {
	var b strings.Builder
	warn := func(list []string) {
		for _, w := range list {
			b.WriteString("warning: " + w + "\n")
		}
	}
	warn(r.Warnings)
	for _, run := range r.Runs {
		fmt.Fprintf(&b, "run %q clock=%s arrivals=%v model=%q gpu=%q engine=%q tp=%d replicas=%d rps=%g\n",
			run.Name, run.Clock, run.Arrivals, run.Model, run.GPU, run.Engine, run.TensorParallel, run.Replicas,
			run.TargetRPS)
		for _, s := range run.Stages {
			fmt.Fprintf(&b, "stage %q from %d to %d\n", s.Name, s.FromUS, s.ToUS)
		}
		for i := range run.Outcomes {
			o := &run.Outcomes[i]
			fmt.Fprintf(&b, "%s %s in=%d out=%d at=%d", o.ID, o.State, o.InputTokens, o.OutputTokens, o.ArrivalUS)
			for _, t := range []struct {
				name string
				us   stream.Micros
			}{{"queued", o.EnqueuedUS}, {"scheduled", o.ScheduledUS}, {"first", o.FirstTokenUS},
				{"last", o.CompletedUS}, {"ended", o.EndedUS}} {
				if t.us != stream.Never {
					fmt.Fprintf(&b, " %s=%d", t.name, t.us)
				}
			}
			for _, w := range []struct{ name, text string }{{"reason", o.Reason}, {"tenant", o.Tenant},
				{"class", o.SLOClass}, {"session", o.Session}, {"model", o.Model}} {
				if w.text != "" {
					fmt.Fprintf(&b, " %s=%q", w.name, w.text)
				}
			}
			if len(o.ITLUS) > 0 {
				fmt.Fprintf(&b, " itl=%v", o.ITLUS)
			}
			b.WriteString("\n")
		}
		warn(run.Warnings)
	}
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "%+v\n", s)
	}
	return b.String()
}

// TestStories reads small synthetic files of each format. The command is the format, or auto for
// detection.
func TestStories(t *testing.T) {
	seen := map[string]bool{}
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			format := d.Cmd
			if format == "auto" {
				format = ""
			}
			r, err := Read(context.Background(), text(strings.ReplaceAll(d.Input, "\\\n", "")+"\n"), format)
			if err != nil {
				var located *stream.SyntaxError
				if !errors.As(err, &located) {
					t.Errorf("%v says not where", err)
				}
				return "error: " + err.Error() + "\n"
			}
			seen[r.Format] = true
			if format == "" {
				return "format " + r.Format + "\n" + formatRecording(r)
			}
			return formatRecording(r)
		})
	})
	for _, name := range Formats.Names() {
		if !seen[name] {
			t.Errorf("%s has no story", name)
		}
	}
}
