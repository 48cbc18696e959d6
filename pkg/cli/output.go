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

// product is where a call writes, and how that ends.
type product interface {
	io.Writer
	// commit ends a product that is whole.
	commit() error
	// abandon ends one that err has cut short.
	abandon(t Tool, err error) error
}

// openOutput opens the file called name, stdout if it is "" or "-". plain says
// whether a stream is to be written uncompressed, which the call may ask for.
func (t Tool) openOutput(name string, asked bool, stdout io.Writer) (p product, plain bool, err error) {
	plain = asked || os.Getenv("BLIS_PLAIN") == "1"
	if name == "" || name == "-" {
		plain = plain || isTerminal(stdout)
		return &standard{w: stdout, plain: plain}, plain, nil
	}
	if isTable(name) {
		if !t.tables {
			return nil, false, wrongCall{"no table can be made of this; name a file that does not end in .parquet or /"}
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

// namedFile is a product with a name, which it bears only when it is whole.
type namedFile struct{ *stream.File }

func (n namedFile) commit() error             { return n.Commit() }
func (n namedFile) abandon(Tool, error) error { return n.Abort() }

// standard is a product on stdout.
type standard struct {
	w       io.Writer
	plain   bool
	written bool
}

func (s *standard) Write(p []byte) (int, error) {
	s.written = true
	return s.w.Write(p)
}

func (s *standard) commit() error { return nil }

// abandon makes of a fault in a configuration, as long as nothing has left, a
// stream of its own, so that the pipe ends in one document.
func (s *standard) abandon(t Tool, err error) error {
	fault := faultOf(t.name, err)
	if t.stream == "" || fault == nil || s.written {
		return nil
	}
	w := stream.NewWriter(s, s.plain)
	return errors.Join(
		w.Header(&stream.Header{Stream: t.stream, Tool: t.name, Version: stream.Version}),
		w.Any(fault),
		w.End(&stream.End{}),
		w.Close())
}

// faultOf returns err as a record if it is one that stages pass on: a fault in
// a configuration, a file of it that cannot be read, or the fault that an
// earlier stage reported.
func faultOf(tool string, err error) *stream.Fault {
	var upstream *stream.FaultError
	if errors.As(err, &upstream) {
		return &upstream.Fault
	}
	fault := &stream.Fault{Kind: stream.KindError, Tool: tool}
	var bad *strictyaml.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &bad):
		fault.File, fault.Line, fault.Col, fault.Msg = bad.File, int64(bad.Line), int64(bad.Col), bad.Msg
	case errors.As(err, &file) && file.Op == "open":
		fault.File, fault.Msg = file.Path, file.Err.Error()
	default:
		return nil
	}
	return fault
}
