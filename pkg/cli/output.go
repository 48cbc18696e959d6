package cli

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"blis/pkg/config"
	"blis/pkg/record"
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
		below := &counter{w: stdout}
		return &standard{bufio.NewWriterSize(below, heldBack), below, plain}, plain, nil
	}
	if isTable(name) && !t.tables {
		return nil, false, wrongCall{"no table can be made of this; name a file that does not end in .parquet"}
	}
	file, err := record.Create(name)
	if err != nil {
		return nil, false, err
	}
	if isTable(name) {
		return newOutcomes(file), true, nil
	}
	return namedFile{file}, plain || strings.HasSuffix(name, ".jsonl"), nil
}

// namedFile is a product with a name, which it bears only when it is whole.
type namedFile struct{ *record.File }

func (n namedFile) commit() error             { return n.Commit() }
func (n namedFile) abandon(Tool, error) error { return n.Abort() }

// heldBack is how much of a product stdout holds back: more than any header.
const heldBack = 64 << 10

// standard is a product on stdout. It holds back the beginning, so that an
// error that comes early can still take its place.
type standard struct {
	*bufio.Writer
	below *counter
	plain bool
}

func (s *standard) commit() error { return s.Flush() }

// abandon lets out what there is. But a fault in a configuration, as long as
// nothing has left, becomes a stream of its own, so that the pipe ends in one
// document.
func (s *standard) abandon(t Tool, err error) error {
	fault := faultOf(t.name, err)
	if t.stream == "" || fault == nil || s.below.written > 0 {
		s.Flush() // should that fail too, err is the error to report
		return nil
	}
	s.Reset(s.below)
	w := record.NewWriter(s, s.plain)
	return errors.Join(
		w.Header(&record.Header{Stream: t.stream, Schema: record.Schema, Tool: t.name, Version: record.Version}),
		w.Any(fault),
		w.End(&record.End{}),
		w.Close(),
		s.Flush())
}

// faultOf returns err as a record if it is one that stages pass on: a fault in
// a configuration, a file of it that cannot be read, or the fault that an
// earlier stage reported.
func faultOf(tool string, err error) *record.Fault {
	var upstream *record.FaultError
	if errors.As(err, &upstream) {
		return &upstream.Fault
	}
	fault := &record.Fault{Kind: record.KindError, Tool: tool}
	var bad *config.Error
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

// counter counts what passes through it.
type counter struct {
	w       io.Writer
	written int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.written += int64(n)
	return n, err
}
