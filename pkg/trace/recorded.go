package trace

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"blis/pkg/recording"
	"blis/pkg/registry"
	"blis/pkg/stream"
	"blis/pkg/textio"
)

// recorded replays a recording of a real server: its requests, the first at 0.
type recorded struct {
	textio.Position
	requests    []stream.Request
	next        int
	hasArrivals bool
	// commonOutput is what CommonOutput returns.
	commonOutput int64
}

// HasArrivals reports whether the recording has arrival times.
func (p *recorded) HasArrivals() bool { return p.hasArrivals }

// recordings appends the formats of recordings that contain requests to own, except names that own
// already has, and a format that detects the format by content.
func recordings(own registry.Table[Format]) registry.Table[Format] {
	list := append(own, registry.Entry[Format]{Name: "recording", Doc: "a recording of a real server in any format " +
		"that blis-calibrate reads; FORMAT:FILE sets the format, FILE#NAME the run", Value: recordedFormat("")})
	taken := own.Names()
	for _, e := range recording.Formats {
		if !e.Value.Steps && !slices.Contains(taken, e.Name) {
			list = append(list, registry.Entry[Format]{Name: e.Name, Doc: e.Doc, Value: recordedFormat(e.Name)})
		}
	}
	return list
}

// recordedFormat is the format of recordings called name; "" means detection by content.
func recordedFormat(name string) Format {
	return Format{Recorded: true,
		Open: func(in Input, o Options) (Reader, error) { return openRecorded(in, o, name) }}
}

// Stdin reports whether file is stdin in this format: -, and for recordings also -#NAME and
// FORMAT:-.
func (f Format) Stdin(file string) bool {
	if f.Recorded && !textio.Exists(file) {
		_, file = recording.Split(file)
		file, _, _ = strings.Cut(file, "#")
	}
	return file == "-"
}

// openRecorded reads a recording, which must have or select a single run.
func openRecorded(in Input, o Options, format string) (Reader, error) {
	if format == "" && !textio.Exists(in.Path) {
		if format, in.Path = recording.Split(in.Path); format != "" {
			in.Name = strings.TrimPrefix(in.Name, format+":")
		}
	}
	if in.Stream != nil {
		in.Path = strings.TrimPrefix(in.Path, "-")
	}
	r, err := recording.Read(context.Background(), in, format)
	if err != nil {
		return nil, err
	}
	p := &recorded{Position: textio.Position{Name: r.Path}}
	run, err := r.Single()
	if err != nil {
		return nil, err
	}
	for _, warning := range append(r.Warnings, run.Warnings...) {
		p.Warnf("%s", warning)
	}
	if o.OutputTokens > 0 {
		run.SetOutputTokens(o.OutputTokens)
	} else if warning := run.OutputCounts(); warning != "" {
		p.Warnf("%s", warning)
	}
	p.commonOutput = run.CommonOutput()
	period, share := run.Period()
	if period > 0 {
		p.Warnf("prompts repeat with a period of %d (%.1f %% of the lengths match): requests a period apart share "+
			"their prompt", period, 100*share)
	}
	p.hasArrivals = run.HasArrivalTimes()
	if !p.hasArrivals && !o.EvenlySpaced {
		return nil, p.Position.Errorf("has no arrival times; --rate R spaces requests evenly, R per second")
	}
	run.SetSharedPrefix(o.SharedPrefix)
	p.requests = run.Requests(period)
	if left := len(run.Outcomes) - len(p.requests); left > 0 {
		p.Warnf("left out %d requests that failed without output", left)
	}
	return p, nil
}

func (p *recorded) Next(a *stream.Arrival) (float64, error) {
	if p.next == len(p.requests) {
		return 0, io.EOF
	}
	r := request(a)
	prompt := r.Prompt
	*r = p.requests[p.next]
	r.Prompt = append(prompt, r.Prompt...)
	p.next++
	if r.DeadlineUS != stream.Never {
		r.DeadlineUS -= r.ArrivalUS
	}
	return float64(r.ArrivalUS), nil
}

// CommonOutput is the number of output tokens that most requests have if others have wrong counts; else 0.
func (p *recorded) CommonOutput() int64 { return p.commonOutput }

// Errorf makes an error about the current request.
func (p *recorded) Errorf(format string, args ...any) error {
	if p.next == 0 {
		return p.Position.Errorf(format, args...)
	}
	return p.Position.Errorf("request %s: %s", p.requests[p.next-1].ID, fmt.Sprintf(format, args...))
}
