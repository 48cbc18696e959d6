package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"blis/pkg/registry"
)

// readHeader decodes the current line as the header.
func (r *Reader) readHeader() (*Header, error) {
	// The version is checked first: another version may have other fields.
	var about struct {
		Stream  int64 `json:"stream_version"`
		Schema  int64 // its name in version 1
		Version string
	}
	if err := json.Unmarshal(r.line, &about); err != nil {
		return nil, describeJSONError(err, about)
	}
	version := about.Stream + about.Schema
	if version < minSchema || version > StreamVersion {
		return nil, fmt.Errorf("the stream has stream_version %d; this program reads versions %d to %d: "+
			"read it with tools of version %q, which wrote it", version, minSchema, StreamVersion, about.Version)
	}
	var decoded struct {
		Header
		Version1 int64 `json:"schema,omitempty"`
	}
	target := any(&decoded)
	if version == StreamVersion {
		target = &decoded.Header
	}
	if err := decodeStrictly(r.line, target); err != nil {
		return nil, err
	}
	h := &decoded.Header
	h.StreamVersion = version
	if !slices.Contains(streams, h.Stream) {
		return nil, registry.Unknown("stream", h.Stream, streams)
	}
	if h.StreamVersion < StreamVersion {
		effect := "all its records can be read"
		if h.Stream == StreamRun {
			effect = "its " + strings.Join(changedKinds, ", ") + " records cannot be read, all others can"
		}
		r.warn("it has stream_version %d, not %d: %s; write it again to update it", h.StreamVersion, StreamVersion,
			effect)
	}
	return h, nil
}

// checkVersion returns an error if the current record has another format than this
// package reads.
func (r *Reader) checkVersion() error {
	if r.header == nil || r.header.StreamVersion == StreamVersion || !slices.Contains(changedKinds, r.kind) {
		return nil
	}
	return r.Errorf("the %s record has stream_version %d; this program reads version %d: "+
		"simulate again, or read it with tools of version %q, which wrote it",
		r.kind, r.header.StreamVersion, StreamVersion, r.header.Version)
}

// Integrity says whether a stream holds the records that were written.
type Integrity string

// The values of Integrity, best first. Filtered streams lack records; damaged ones have others than were written,
// or an end record of another stream.
const (
	IntegrityOK       Integrity = "ok"
	IntegrityFiltered Integrity = "filtered"
	IntegrityDamaged  Integrity = "damaged"
)

// Worse returns the worse one.
func (i Integrity) Worse(x Integrity) Integrity {
	for _, worst := range []Integrity{IntegrityDamaged, IntegrityFiltered} {
		if i == worst || x == worst {
			return worst
		}
	}
	return IntegrityOK
}

// readEnd decodes the current line as the end record and compares its counts.
func (r *Reader) readEnd() {
	end := new(End)
	if err := r.Decode(end); err != nil {
		r.stop(err)
		return
	}
	r.digest = r.Digest()
	r.end = end
	switch {
	case end.Records > r.records:
		r.differs(IntegrityFiltered, "the end record counts %d records, but the stream has %d: "+
			"records were filtered out", end.Records, r.records)
	case end.Records < r.records:
		r.differs(IntegrityDamaged, "the end record counts %d records, but the stream has %d: "+
			"records were added, or the end record is of another stream", end.Records, r.records)
	case end.Digest != r.digest:
		r.differs(IntegrityDamaged, "the records do not match the digest in the end record: records were changed")
	}
}

// differs notes how the records differ from those that were written.
func (r *Reader) differs(i Integrity, format string, args ...any) {
	r.warn("%s: "+format, append([]any{i}, args...)...)
	r.integrity, r.difference = i, r.warnings[len(r.warnings)-1]
}

func (r *Reader) warn(format string, args ...any) {
	r.warnings = append(r.warnings, r.name+": "+fmt.Sprintf(format, args...))
}

// endError returns the error of a stream whose reading ended with err, nil if it is
// complete.
func (r *Reader) endError(err error) error {
	var corrupt corruptError
	var path *fs.PathError
	switch {
	case errors.Is(err, errTruncated):
		return r.truncated("the compressed data ends early")
	case errors.As(err, &corrupt):
		msg := fmt.Sprintf("the compressed data are corrupt after line %d: %v", r.lines, corrupt.decoder)
		return &SyntaxError{r.name, 0, msg}
	case errors.Is(err, errLineTooLong):
		r.lines++
		return r.Errorf("the line is longer than %d MiB", maxLine>>20)
	case errors.As(err, &path):
		return fmt.Errorf("%s: %w", r.name, path.Err)
	case err != io.EOF:
		return fmt.Errorf("%s: %w", r.name, err)
	case r.records == 0:
		return &SyntaxError{r.name, 0, "truncated: the stream is empty, without a header; " + writerFailed}
	case r.end == nil && !r.headerless:
		return r.truncated("no end record")
	}
	return nil
}

const writerFailed = "the program that wrote it stopped early or failed"

func (r *Reader) truncated(what string) error {
	return &SyntaxError{r.name, 0, fmt.Sprintf("truncated: %s after line %d; %s", what, r.lines, writerFailed)}
}
