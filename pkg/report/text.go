package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/llmtext"
	"blis/pkg/texttab"
)

// section is one kind of section. write writes nothing if there is nothing to say.
type section struct {
	name  string
	write func(*writer)
	// explains: it is about findings, and left out without any.
	explains bool
	// listsExamples: it shows decisions one by one.
	listsExamples bool
}

// Section is one that was written.
type Section struct {
	// Name is that of its first line, without brackets; Text ends with a line feed.
	Name, Text string

	listsExamples bool
	// essential is what a text says of the section even if it leaves it out; "" for most sections.
	essential string
}

// Text is the whole text.
func Text(in *Input, o *Options) []byte {
	limit := cmp.Or(o.MaxTokens, defaultTokens)
	// Fewer examples are better than none.
	var text []byte
	var kept []Section
	for n := cmp.Or(o.Examples, defaultExamples); n > 0; n-- {
		fewer := *o
		fewer.Examples = n
		text, kept = truncateToBudget(Sections(in, &fewer), limit)
		if slices.ContainsFunc(kept, func(s Section) bool { return s.listsExamples }) {
			return text
		}
	}
	fewer := *o
	fewer.Examples = 1
	if len(kept) <= 3 {
		fewer.fewHints = true
		text, kept = truncateToBudget(Sections(in, &fewer), limit)
	}
	if len(kept) <= 2 {
		fewer.brief = true
		text, _ = truncateToBudget(Sections(in, &fewer), limit)
	}
	return text
}

// Sections are all sections of the text that have something to say; the first is the title.
func Sections(in *Input, o *Options) []Section {
	selected, others := o.sections()
	all := []Section{{Name: title, Text: titleLine(in)}}
	for _, s := range selected {
		w := &writer{Input: in, Options: o, limit: maxSectionLength, others: others}
		if o.brief && s.name == headline.name {
			w.limit = beginningLength - len(all[0].Text)
		}
		if s.explains && in.Findings == nil {
			continue
		}
		w.line("[%s]", s.name)
		empty := len(w.text)
		s.write(w)
		if len(w.text) > empty {
			all = append(all, Section{s.name, string(w.text), s.listsExamples, w.essential})
		}
	}
	return all
}

// truncateToBudget leaves out sections from the end until the text has at most limit tokens, and
// names those. It also returns the sections that it keeps.
func truncateToBudget(all []Section, limit int) (text []byte, kept []Section) {
	for n := len(all); ; n-- {
		text = text[:0]
		for _, s := range all[:n] {
			text = append(text, s.Text...)
		}
		if n < len(all) {
			text = fmt.Appendf(text, "[CUT] at --max-tokens %d: %s\n", limit, list(all[n:], Section.leftOut))
		}
		if llmtext.Tokens(text) <= limit || n <= 2 {
			return text, all[:n]
		}
	}
}

// leftOut is what a text says of a section that it leaves out.
func (s Section) leftOut() string { return s.Name + parenthesized(s.essential) }

// Leading is as many sections from the beginning as have maxSectionLength characters together.
func Leading(all []Section) (text []byte) {
	for _, s := range all {
		if len(text)+len(s.Text) > maxSectionLength {
			break
		}
		text = append(text, s.Text...)
	}
	return text
}

// writer writes one section, in whole lines as long as there is room.
type writer struct {
	*Input
	*Options
	text  []byte
	limit int // characters
	full  bool
	// essential is that of the section.
	essential string
	// others are the strategies that this text does not follow.
	others string
}

// line adds a line without trailing blanks; if there is no room, it and all later lines are left out.
func (w *writer) line(format string, args ...any) {
	line := llmtext.BreakCredentials(fmt.Sprintf(format, args...)) // a name may precede a colon of the format
	line = strings.TrimRight(line, " ")
	if w.full = w.full || len(w.text)+len(line)+1 > w.limit; !w.full {
		w.text = append(append(w.text, line...), '\n')
	}
}

// omitted adds a line about rows that are not shown, if there are any.
func (w *writer) omitted(n int, what string) {
	if n > 0 {
		w.line("and %d more %s", n, what)
	}
}

// table adds a table, the first column aligned left, the others right.
func (w *writer) table(t *texttab.Table) {
	for _, line := range t.Lines() {
		w.line("%s", line)
	}
}

func newTable(head ...string) *texttab.Table { return &texttab.Table{Rows: [][]string{head}} }

// list joins the texts of some values by commas.
func list[T any](of []T, text func(T) string) string {
	var parts []string
	for _, x := range of {
		parts = append(parts, text(x))
	}
	return strings.Join(parts, ", ")
}

// Short forms for the many lines below.

func name(s string) string             { return llmtext.Name(s) }
func nameOr(s, fallback string) string { return llmtext.NameOr(s, fallback) }
func short(s string, n int) string     { return llmtext.Short(s, n) }
func percent(share float64) string     { return llmtext.Percent(share) }
func number(x float64) string          { return llmtext.Number(x) }
