package summarize

import (
	"fmt"
	"strings"
)

// Terminal escape sequences (ECMA-48).
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// table is a list of rows of cells, the first of them the header.
type table struct {
	rows [][]string
	// omitted is the number of rows that are not shown, if positive.
	omitted int
	// color makes the header bold and failures red.
	color bool
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// append appends the table: the first column is left-aligned, the others right-aligned.
func (t *table) append(b []byte) []byte {
	width := make([]int, len(t.rows[0]))
	width[0] = 11
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	for n, row := range t.rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			cell = fmt.Sprintf("  %*s", width[i+1], cell)
			if t.color && strings.Contains(cell, "FAILED") {
				cell = red + cell + plain
			}
			line += cell
		}
		if line = strings.TrimRight(line, " "); t.color && n == 0 {
			line = bold + line + plain
		}
		b = append(append(b, line...), '\n')
	}
	if t.omitted > 0 {
		b = fmt.Appendf(b, "... and %d more: --format json\n", t.omitted)
	}
	return b
}
