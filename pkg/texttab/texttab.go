// Package texttab writes tables as aligned text.
package texttab

import (
	"fmt"
	"strings"
)

// Terminal escape sequences (ECMA-48).
const (
	Bold  = "\x1b[1m"
	Red   = "\x1b[31m"
	Plain = "\x1b[0m"
)

// Table is a list of rows of ASCII cells, the first of them the header. All rows are as
// long as the header.
type Table struct {
	Rows [][]string
	// LeftColumns is the number of left-aligned columns, 1 if it is 0; the others are
	// right-aligned. FirstWidth is the minimum width of the first column.
	LeftColumns, FirstWidth int
	// Omitted is the number of rows that are not shown, if positive.
	Omitted int
	// Color makes the header bold and cells with FAILED red.
	Color bool
}

// Row adds a row.
func (t *Table) Row(first string, others ...string) {
	t.Rows = append(t.Rows, append([]string{first}, others...))
}

// Add adds a row of cells, which may be numbers.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.Rows = append(t.Rows, row)
}

// Lines returns the rows as lines without trailing blanks.
func (t *Table) Lines() []string {
	width := make([]int, len(t.Rows[0]))
	width[0] = t.FirstWidth
	for _, row := range t.Rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var lines []string
	for n, row := range t.Rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			if i+1 < t.LeftColumns {
				cell = fmt.Sprintf("  %-*s", width[i+1], cell)
			} else {
				cell = fmt.Sprintf("  %*s", width[i+1], cell)
			}
			if t.Color && strings.Contains(cell, "FAILED") {
				cell = Red + cell + Plain
			}
			line += cell
		}
		if line = strings.TrimRight(line, " "); t.Color && n == 0 {
			line = Bold + line + Plain
		}
		lines = append(lines, line)
	}
	if t.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("... and %d more: --format json", t.Omitted))
	}
	return lines
}

// Append appends the table to b.
func (t *Table) Append(b []byte) []byte {
	for _, line := range t.Lines() {
		b = append(append(b, line...), '\n')
	}
	return b
}

// WithoutEmpty returns the table without the columns that hold only dashes. A table that has only a header keeps it.
func (t *Table) WithoutEmpty() *Table {
	kept := *t
	kept.Rows = make([][]string, len(t.Rows))
	for c := range t.Rows[0] {
		empty := len(t.Rows) > 1
		for _, row := range t.Rows[1:] {
			empty = empty && row[c] == "-"
		}
		for i, row := range t.Rows {
			if !empty {
				kept.Rows[i] = append(kept.Rows[i], row[c])
			}
		}
	}
	return &kept
}
