// Package registry holds tables of choices: policies, importers, scenarios,
// latency models. A table is written once and read by everything that lists
// or looks up its names, so that help texts, schemas and errors cannot
// disagree.
package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Entry is one choice: its name on the wire, one line of documentation, and
// what it stands for.
type Entry[T any] struct {
	Name, Doc string
	Value     T
}

// Table is an ordered list of choices. The order is the order in which they
// are shown.
type Table[T any] []Entry[T]

// Get returns the value called name. what says what kind of thing is looked
// up; the error names the nearest choice and all of them.
func (t Table[T]) Get(what, name string) (T, error) {
	for _, e := range t {
		if e.Name == name {
			return e.Value, nil
		}
	}
	var zero T
	return zero, Unknown(what, name, t.Names())
}

// Names returns the names in table order.
func (t Table[T]) Names() []string {
	names := make([]string, len(t))
	for i, e := range t {
		names[i] = e.Name
	}
	return names
}

// Append adds the table to text: a line for each choice, headed by what it is a
// choice of.
func (t Table[T]) Append(text []byte, what string) []byte {
	for _, e := range t {
		text = fmt.Appendf(text, "%-12s %-16s %s\n", what, e.Name, e.Doc)
	}
	return text
}

// Unknown is the error for a name that is not among have.
func Unknown(what, name string, have []string) error {
	hint := ""
	if near := Closest(name, have); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("unknown %s %q%s (have %s)", what, name, hint, strings.Join(have, ", "))
}

// Closest returns the member of have that is nearest to name by edit distance,
// or "" when none is near enough to be a likely slip.
func Closest(name string, have []string) string {
	best, at := len(name)/3+2, ""
	for _, h := range have {
		if d := distance(strings.ToLower(name), strings.ToLower(h)); d < best {
			best, at = d, h
		}
	}
	return at
}

// distance is the Levenshtein distance of two short names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = slices.Min([]int{change, row[j] + 1, row[j+1] + 1})
		}
	}
	return row[len(b)]
}
