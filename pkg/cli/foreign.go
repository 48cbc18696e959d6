package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"blis/pkg/record"
	"blis/pkg/recording"
)

// openStream opens a stream of ours, or a file that somebody else's benchmark
// wrote as the recording that it is: one of its runs, if name ends in #RUN. What
// is odd about it goes to warn.
func openStream(ctx context.Context, name string, warn func(string)) (io.ReadCloser, error) {
	if !recording.Foreign(name) {
		return openInput(ctx, name, nil)
	}
	r, err := recording.Open(ctx, name, "")
	if err != nil {
		return nil, err
	}
	run, err := r.One()
	if err != nil {
		return nil, err
	}
	odd := append(r.Warnings, run.Warnings...)
	if counts := run.OutputCounts(); counts != "" {
		odd = append(odd, counts)
	}
	for _, o := range odd {
		warn(r.Path + ": " + o)
	}
	var stream bytes.Buffer
	if err := recording.Write(&stream, run, "blis-summarize", record.Version, true); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	return &input{&stream, r.Path, func() error { return nil }}, nil
}
