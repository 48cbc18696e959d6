package cli

import (
	"fmt"
	"io"
	"runtime/debug"

	"blis/pkg/stream"

	"github.com/alecthomas/kong"
)

// versionFlag prints what binary this is.
type versionFlag bool

// BeforeReset is called by kong where the flag is given.
func (versionFlag) BeforeReset(c *kong.Context) error {
	if err := writeVersion(c.Stdout, c.Model.Name); err != nil {
		return err
	}
	return errShown
}

// writeVersion writes the tool's version, the revision it was built from and
// the versions of the formats that it speaks, one a line.
func writeVersion(w io.Writer, tool string) error {
	revision, modified := "unknown", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " (modified)"
			}
		}
	}
	_, err := fmt.Fprintf(w, "%s %s\nrevision %s%s\nstream schema %d\n",
		tool, stream.Version, revision, modified, stream.Schema)
	return err
}
