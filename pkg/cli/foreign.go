package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"blis/pkg/recording"
	"blis/pkg/stream"
)

// openStream opens a stream of ours, or a file that somebody else's benchmark
// wrote as the recording that it is: one of its runs, if name ends in #RUN, of the
// format that name begins with (FORMAT:FILE), or of the one found out by the content. What
// is odd about it goes to warn, and ends the call if that returns an error.
func openStream(ctx context.Context, name string, warn func(string) error) (io.ReadCloser, error) {
	format, path := recording.Split(name)
	if format == "" && !recording.Foreign(name) {
		return openInput(ctx, name, nil)
	}
	r, err := recording.Open(ctx, path, format)
	if err != nil {
		return nil, err
	}
	return asStream(r, warn)
}

// openStdin is openStream for stdin; choice names a run of a recording, or is "".
func openStdin(ctx context.Context, in io.Reader, choice string, warn func(string) error) (io.ReadCloser, error) {
	name := "stdin"
	if named, ok := in.(interface{ Name() string }); ok {
		name = named.Name()
	}
	r, rest, err := recording.OpenStream(ctx, name, in, choice)
	switch {
	case err != nil:
		return nil, err
	case r != nil:
		return asStream(r, warn)
	case choice != "":
		return nil, fmt.Errorf("%s holds no recording of which #%s could choose a run", name, choice)
	}
	return &input{rest, name, func() error { return nil }}, nil
}

// asStream is the only run of r as a stream of ours.
func asStream(r *recording.Recording, warn func(string) error) (io.ReadCloser, error) {
	run, err := r.One()
	if err != nil {
		return nil, err
	}
	odd := append(r.Warnings, run.Warnings...)
	if counts := run.OutputCounts(); counts != "" {
		odd = append(odd, counts)
	}
	for _, o := range odd {
		if err := warn(r.Path + ": " + o); err != nil {
			return nil, err
		}
	}
	var data bytes.Buffer
	if err := recording.Write(&data, run, "blis-summarize", stream.Version, true); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	return &input{&data, r.Path, func() error { return nil }}, nil
}
