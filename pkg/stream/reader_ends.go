package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"blis/pkg/registry"
)

// readHeader decodes the line at hand as the header.
func (r *Reader) readHeader() (*Header, error) {
	// The version comes first: what else it may have changed is of no interest.
	var about struct{ Schema int64 }
	if err := json.Unmarshal(r.line, &about); err != nil {
		return nil, plainer(err, about)
	}
	if about.Schema != Schema {
		return nil, fmt.Errorf("the stream has schema version %d; this program reads %d", about.Schema, Schema)
	}
	h := new(Header)
	if err := decodeStrictly(r.line, h); err != nil {
		return nil, err
	}
	if !slices.Contains(streams, h.Stream) {
		return nil, registry.Unknown("stream", h.Stream, streams)
	}
	return h, nil
}

// readEnd takes the line at hand as the end record.
func (r *Reader) readEnd() {
	end := new(End)
	if err := r.Decode(end); err != nil {
		r.stop(err)
		return
	}
	r.end = end
	switch {
	case end.Records != r.records:
		r.warn("the end record counts %d records, but there are %d: something was filtered out or added on the way", end.Records, r.records)
	case end.Digest != r.sum():
		r.warn("the records do not match the digest in the end record: something changed them on the way")
	}
}

func (r *Reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, r.name+": "+fmt.Sprintf(format, args...))
}

// ending is the error, or none, of a stream whose reading ended with err.
func (r *Reader) ending(err error) error {
	var corrupt corruptError
	var path *fs.PathError
	switch {
	case errors.Is(err, errCut):
		return r.truncated("the compressed data break off")
	case errors.As(err, &corrupt):
		return &SyntaxError{r.name, 0, fmt.Sprintf("the zstd data are corrupt after line %d: %v", r.lines, corrupt.error)}
	case errors.Is(err, errLong):
		r.lines++
		return r.Errorf("is longer than %d MiB", maxLine>>20)
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w", r.name, path.Err)
	case err != io.EOF:
		return fmt.Errorf("%s: %w", r.name, err)
	case r.records == 0:
		return &SyntaxError{r.name, 0, "truncated: it is empty, without even a header; the program that was to write it was stopped or failed"}
	case r.end == nil && !r.bare:
		return r.truncated("no end record")
	}
	return nil
}

func (r *Reader) truncated(what string) error {
	return &SyntaxError{r.name, 0, fmt.Sprintf("truncated: %s after line %d; the program that wrote it was stopped or failed", what, r.lines)}
}
