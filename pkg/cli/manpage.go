package cli

import (
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"strings"

	"blis/pkg/stream"

	"github.com/alecthomas/kong"
)

// manFlag prints the manual page.
type manFlag bool

// BeforeReset is called by kong when the flag is given.
func (manFlag) BeforeReset(c *kong.Context, t Tool) error {
	page, err := t.manPage(c.Model)
	if err != nil {
		return err
	}
	if _, err := c.Stdout.Write(page); err != nil {
		return err
	}
	return errHelpShown
}

// manPage writes the manual page in the macros of man(7): the package comment of the tool's main.go, and the
// flags and examples of the help text.
func (t Tool) manPage(model *kong.Application) ([]byte, error) {
	const mode = parser.ParseComments | parser.PackageClauseOnly
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", t.source, mode)
	if err != nil {
		return nil, fmt.Errorf("the manual of %s: %w", t.name, err)
	}
	var p page
	p.macro("TH", strings.ToUpper(t.name), "1", "", "BLIS "+stream.Version, "BLIS")
	p.macro("SH", "NAME")
	p.line(t.name + ` \- ` + escapeRoff(strings.TrimSuffix(t.about, ".")))
	p.macro("SH", "SYNOPSIS")
	p.line(`\fB` + escapeRoff(t.name) + `\fR` + escapeRoff(model.Summary()))
	p.macro("SH", "DESCRIPTION")
	var parser comment.Parser
	p.blocks(parser.Parse(file.Doc.Text()).Content)
	p.macro("SH", "OPTIONS")
	for _, g := range groupFlags(model.Flags) {
		p.macro("SS", g.title)
		for _, f := range g.flags {
			name := `\fB\-\-` + escapeRoff(f.Name) + `\fR`
			if f.Short != 0 {
				name = `\fB\-` + string(f.Short) + `\fR, ` + name
			}
			if !f.IsBool() {
				name += `=\fI` + escapeRoff(f.FormatPlaceHolder()) + `\fR`
			}
			p.macro("TP")
			p.line(name)
			p.line(escapeRoff(f.Help))
		}
	}
	p.macro("SH", "EXAMPLES")
	for _, e := range t.examples {
		p.macro("PP")
		p.line(escapeRoff(e.about) + ":")
		p.code(e.command)
	}
	p.macro("SH", "SEE ALSO")
	var others []string
	for _, name := range toolNames {
		if name != t.name {
			others = append(others, `\fB`+escapeRoff(name)+`\fR(1)`)
		}
	}
	p.line(strings.Join(others, ", "))
	return []byte(p.String()), nil
}

// toolNames are all tools of the toolkit, which the manual pages name.
var toolNames = []string{"blis-gen", "blis-sim", "blis-summarize", "blis-diff", "blis-calibrate"}

// page is a manual page that is being written.
type page struct {
	strings.Builder
	// titled: nothing follows the last heading yet, which begins a paragraph itself.
	titled bool
}

// macro writes a request line.
func (p *page) macro(name string, args ...string) {
	if name == "PP" && p.titled {
		return
	}
	p.titled = name == "SH" || name == "SS"
	p.WriteString("." + name)
	for _, a := range args {
		p.WriteString(` "` + strings.ReplaceAll(escapeRoff(a), `"`, `\(dq`) + `"`)
	}
	p.WriteByte('\n')
}

// line writes escaped text.
func (p *page) line(text string) {
	p.titled = false
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	p.WriteString(text + "\n")
}

// code writes lines as they are.
func (p *page) code(text string) {
	p.macro("PP")
	p.macro("RS", "4")
	p.macro("nf")
	for line := range strings.Lines(text) {
		p.line(escapeRoff(strings.TrimSuffix(line, "\n")))
	}
	p.macro("fi")
	p.macro("RE")
}

func (p *page) blocks(all []comment.Block) {
	for _, b := range all {
		switch b := b.(type) {
		case *comment.Heading:
			p.macro("SS", plainText(b.Text))
		case *comment.Paragraph:
			p.macro("PP")
			p.text(b.Text)
		case *comment.Code:
			p.code(strings.TrimSuffix(strings.ReplaceAll(b.Text, "\t", "    "), "\n"))
		case *comment.List:
			for _, item := range b.Items {
				mark := `\(bu`
				if item.Number != "" {
					mark = item.Number + "."
				}
				p.WriteString(".IP " + mark + " 4\n")
				for _, block := range item.Content {
					p.text(block.(*comment.Paragraph).Text) // lists contain no other blocks
				}
			}
		}
	}
}

// text writes the lines of a paragraph.
func (p *page) text(all []comment.Text) {
	for line := range strings.Lines(plainText(all)) {
		p.line(escapeRoff(strings.TrimSuffix(line, "\n")))
	}
}

func plainText(all []comment.Text) string {
	var b strings.Builder
	for _, t := range all {
		switch t := t.(type) {
		case comment.Plain:
			b.WriteString(string(t))
		case comment.Italic:
			b.WriteString(string(t))
		case *comment.Link:
			b.WriteString(plainText(t.Text))
		case *comment.DocLink:
			b.WriteString(plainText(t.Text))
		}
	}
	return b.String()
}

// escapeRoff escapes what roff would interpret or typeset.
var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "\\`", "^", `\(ha`, "~", `\(ti`, "'", `\(aq`)

func escapeRoff(text string) string { return roffEscapes.Replace(text) }
