package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"blis/pkg/recording"
	"blis/pkg/stream"
)

// openStream opens a BLIS stream, the tables of a run, or the recording of another benchmark tool as such a
// stream. The name may begin with the recording's format (FORMAT:FILE), which is detected
// by content otherwise, or be recording:DIR with the output folder of a load generator, and may end with the run to
// read (FILE#RUN). The run of a recording is passed through change. Problems of the recording that remain go to warn;
// an error from warn ends the call.
func openStream(ctx context.Context, name string, change func(*recording.Run), warn func(string) error) (io.ReadCloser,
	error) {
	format, path := recording.Split(name)
	switch {
	case format != "" || path != name: // FORMAT:FILE, or recording:FILE or recording:DIR
	case tablesIn(name) != "":
		return openTables(ctx, name)
	case !recording.IsForeign(name):
		return openInput(ctx, name, nil)
	}
	r, err := recording.Open(ctx, path, format)
	if err != nil {
		return nil, err
	}
	return asStream(r, change, warn)
}

// openStdinStream is openStream for stdin; choice names a run of a recording or is empty.
func openStdinStream(ctx context.Context, in io.Reader, choice string, change func(*recording.Run),
	warn func(string) error) (io.ReadCloser, error) {
	const name = "stdin"
	r, rest, err := recording.OpenStream(ctx, name, in, choice)
	switch {
	case err != nil:
		return nil, err
	case r != nil:
		return asStream(r, change, warn)
	case choice != "":
		return nil, fmt.Errorf("%s is not a recording, so that #%s cannot select a run of it", name, choice)
	}
	return &input{Reader: rest, name: name}, nil
}

// asStream returns the single run of r as a BLIS stream.
func asStream(r *recording.Recording, change func(*recording.Run), warn func(string) error) (io.ReadCloser, error) {
	run, err := r.Single()
	if err != nil {
		return nil, err
	}
	change(run)
	for _, w := range slices.Concat(r.Warnings, run.Warnings, run.RepairOutputTokens()) {
		if err := warn(r.Path + ": " + w); err != nil {
			return nil, err
		}
	}
	var data bytes.Buffer
	if err := recording.Write(&data, run, "blis-summarize", stream.Version, true); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	return &input{Reader: &data, name: r.Path}, nil
}
