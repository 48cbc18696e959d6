// Package registry holds tables of choices: policies, importers, scenarios, latency models. Help
// texts, schemas and lookups all read the same table, so that they cannot disagree.
package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Entry is one choice: its name in files, one line of documentation, and its value.
type Entry[T any] struct {
	Name, Doc string
	Value     T
}

// Table is a list of choices in the order in which they are listed.
type Table[T any] []Entry[T]

// Get returns the value called name. what is the kind of choice, used in errors. The error suggests
// the nearest name and lists all of them.
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

// Append appends the table to text: a line for each choice, starting with its kind.
func (t Table[T]) Append(text []byte, what string) []byte {
	for _, e := range t {
		text = fmt.Appendf(text, "%-12s %-16s %s\n", what, e.Name, e.Doc)
	}
	return text
}

// Unknown returns the error for a name that is not in have.
func Unknown(what, name string, have []string) error {
	return fmt.Errorf("unknown %s %q%s (have %s)", what, name, Hint(name, have), strings.Join(have, ", "))
}

// Hint returns the end of an error about an unknown name: a suggestion, "" if none is close.
func Hint(name string, have []string) string {
	if near := Closest(name, have); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// maxName is longer than any name: the time of a comparison is proportional to the length.
const maxName = 200

// Closest returns the member of have with the smallest edit distance to name or, if none is close enough to be a likely
// typo, the only one that continues name after a separator (ttft_ms for ttft), else "".
func Closest(name string, have []string) string {
	if len(name) > maxName {
		return ""
	}
	best, at := len(name)/3+2, ""
	for _, h := range have {
		if d := distance(strings.ToLower(name), strings.ToLower(h)); d < best {
			best, at = d, h
		}
	}
	if at != "" {
		return at
	}
	var longer []string
	for _, h := range have {
		if rest, ok := strings.CutPrefix(h, name); ok && name != "" && rest != "" && strings.Contains("_-.", rest[:1]) {
			longer = append(longer, h)
		}
	}
	if len(longer) == 1 {
		return longer[0]
	}
	return ""
}

// distance returns the Levenshtein distance of two short names.
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
