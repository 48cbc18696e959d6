package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"blis/pkg/stream"
	"blis/pkg/strictyaml"
	"blis/pkg/textio"
)

// describeMistaken appends to an error about a file of settings what the file is instead, if that is known, and what
// to do with it.
func (t Tool) describeMistaken(err error) {
	var of *strictyaml.Error
	if !errors.As(err, &of) || of.Line > 1 {
		return
	}
	if info, err := os.Stat(of.File); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := textio.Input{Name: of.File, Path: of.File}.Open()
	if err != nil {
		return
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(f, head)
	first, _, _ := bytes.Cut(head[:n], []byte("\n"))
	switch {
	case bytes.Contains(first, []byte(`"stream":"`+stream.StreamWorkload+`"`)):
		of.Msg += "; it is a workload"
		if t.stream == stream.StreamWorkload {
			of.Msg += ": --import blis:" + of.File + " reads it, and --rate R changes its load"
		}
	case bytes.Contains(first, []byte(`"stream":"`+stream.StreamRun+`"`)):
		of.Msg += "; it is a run"
	case strings.HasSuffix(of.File, ".csv"):
		of.Msg += "; it is a table"
		if t.stream == stream.StreamWorkload {
			of.Msg += ": --import FORMAT:" + of.File + " reads traces"
		}
	}
}
