package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// helpAllFlag prints the help text with the rare flags.
type helpAllFlag bool

// BeforeReset is called by kong when the flag is given.
func (helpAllFlag) BeforeReset(c *kong.Context) error {
	for _, f := range c.Model.Flags {
		f.Hidden = false
	}
	if err := c.PrintUsage(false); err != nil {
		return err
	}
	return errHelpShown
}

// hideRare hides the flags with the tag rare, which only --help-all shows.
func hideRare(p *kong.Kong) {
	for _, f := range p.Model.Flags {
		f.Hidden = f.Hidden || f.Tag.Has("rare")
	}
}

// printHelp prints the help text of kong and the tool's examples.
func (t Tool) printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	var text strings.Builder
	if len(t.examples) > 0 {
		text.WriteString("\nExamples:\n")
	}
	for _, e := range t.examples {
		fmt.Fprintf(&text, "  # %s\n  %s\n", e.about, e.command)
	}
	rare := 0
	for _, f := range c.Model.Flags {
		if f.Hidden {
			rare++
		}
	}
	if rare > 0 {
		fmt.Fprintf(&text, "\n%d more flags: %s --help-all. The manual page: %[2]s --man | man -l -\n", rare, t.name)
	}
	_, err := c.Stdout.Write([]byte(text.String()))
	return err
}

// usageExample is a command with a line that describes it.
type usageExample struct{ about, command string }

// flagGroup is a titled part of the flags.
type flagGroup struct {
	title string
	flags []*kong.Flag
}

// groupFlags divides flags by their groups, in the order of appearance.
func groupFlags(flags []*kong.Flag) (groups []flagGroup) {
	for _, f := range flags {
		title := "Flags"
		if f.Group != nil {
			title = strings.TrimSuffix(f.Group.Title, ":")
		}
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.title == title })
		if i < 0 {
			i = len(groups)
			groups = append(groups, flagGroup{title: title})
		}
		groups[i].flags = append(groups[i].flags, f)
	}
	return groups
}
