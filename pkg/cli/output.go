package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/strictyaml"
)

// outputSink is where a call writes.
type outputSink interface {
	io.Writer
	// commit ends a complete output.
	commit() error
	// abort ends an output that err left incomplete.
	abort(t Tool, err error) error
}

// openOutput opens the file called name, or stdout if name is empty or "-". asked is true
// if the call asks for an uncompressed stream, and plain if the stream must be one.
func (t Tool) openOutput(name string, asked bool, stdout io.Writer) (p outputSink, plain bool, err error) {
	plain = asked || os.Getenv("BLIS_PLAIN") == "1"
	if name == "" || name == "-" {
		plain = plain || isTerminal(stdout)
		o := &standardOutput{w: stdout, plain: plain}
		if t.stream != "" && !plain && isPipe(stdout) {
			o.frame = stream.NewStored(stdout)
			o.w, o.plain = o.frame, true
		}
		return o, o.plain, nil
	}
	if t.stream != "" {
		if err := checkSuffix(name); err != nil {
			return nil, false, err
		}
	}
	if isTable(name) && (t.stream != "" || !isCSV(name)) && (!t.rows || isFolder(name)) {
		if !t.tables || t.rows {
			return nil, false, usageError{
				"this output has no table form; name a file that does not end in .parquet, .csv or /"}
		}
		p, err = newTables(name)
		return p, true, err
	}
	file, err := stream.Create(name)
	if err != nil {
		return nil, false, err
	}
	return namedFile{file}, plain || strings.HasSuffix(name, ".jsonl"), nil
}

// namedFile is a file that gets its name only when complete.
type namedFile struct{ *stream.File }

func (n namedFile) commit() error           { return n.Commit() }
func (n namedFile) abort(Tool, error) error { return n.Close() }

// standardOutput writes to stdout.
type standardOutput struct {
	w       io.Writer
	plain   bool
	written bool
	frame   *stream.Stored // the zstd frame of a stream in a pipe, which lines are written to
}

func (s *standardOutput) Write(p []byte) (int, error) {
	s.written = true
	return s.w.Write(p)
}

func (s *standardOutput) commit() error {
	if s.frame == nil {
		return nil
	}
	return s.frame.Close()
}

// abort writes a stream with only an error record if the configuration is invalid and
// nothing was written yet, so that the last tool of a pipe can report the error.
func (s *standardOutput) abort(t Tool, err error) error {
	fault := errorRecordOf(t.name, err)
	if t.stream == "" || fault == nil || s.written {
		return s.commit()
	}
	w := stream.NewWriter(s, s.plain)
	return errors.Join(
		w.Header(&stream.Header{Stream: t.stream, Tool: t.name, Version: stream.Version}),
		w.Any(fault),
		w.End(&stream.End{}),
		w.Close(),
		s.commit())
}

// errorRecordOf returns err as an error record if later tools of a pipe pass it on: an
// invalid configuration, a configuration file that cannot be read, or an error record of
// an earlier tool. Otherwise it returns nil.
func errorRecordOf(tool string, err error) *stream.ErrorRecord {
	if upstream, ok := errors.AsType[*stream.UpstreamError](err); ok {
		return &upstream.Fault
	}
	if bad, ok := errors.AsType[*strictyaml.Error](err); ok {
		return &stream.ErrorRecord{Kind: stream.KindError, Tool: tool,
			File: bad.File, Line: int64(bad.Line), Col: int64(bad.Col), Msg: bad.Msg}
	}
	if file, ok := errors.AsType[*fs.PathError](err); ok && file.Op == "open" {
		return &stream.ErrorRecord{Kind: stream.KindError, Tool: tool, File: file.Path, Msg: file.Err.Error()}
	}
	return nil
}
