package cli

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"blis/pkg/stream"

	"github.com/alecthomas/kong"
)

// versionFlag prints the version of the tool and exits.
type versionFlag bool

// BeforeReset is called by kong when the flag is given.
func (versionFlag) BeforeReset(c *kong.Context) error {
	info, _ := debug.ReadBuildInfo()
	if err := writeVersion(c.Stdout, c.Model.Name, info); err != nil {
		return err
	}
	return errHelpShown
}

// writeVersion writes the tool's version, the revision it was built from with its date,
// and the version of the streams that it writes, one per line. info may be nil.
func writeVersion(w io.Writer, tool string, info *debug.BuildInfo) error {
	_, err := fmt.Fprintf(w, "%s %s\nrevision %s\nstream version %d\n", tool, stream.Version, revisionOf(info),
		stream.StreamVersion)
	return err
}

// revisionOf describes the revision of a build, which may be nil.
func revisionOf(info *debug.BuildInfo) string {
	setting := map[string]string{}
	if info != nil {
		for _, s := range info.Settings {
			setting[s.Key] = s.Value
		}
	}
	revision := "unknown: built without version control"
	switch {
	case setting["vcs.revision"] != "":
		revision = setting["vcs.revision"]
		if date, _, ok := strings.Cut(setting["vcs.time"], "T"); ok {
			revision += " of " + date
		}
		if setting["vcs.modified"] == "true" {
			revision += ", modified"
		}
	case info != nil && strings.HasPrefix(info.Main.Version, "v"): // installed as a module
		revision = info.Main.Version
	}
	return revision
}
