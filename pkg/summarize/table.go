package summarize

import (
	"fmt"
	"strings"
)

// How terminals are told to change their letters (ECMA-48).
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

// table is rows of cells, the first of them the head.
type table struct {
	rows [][]string
	// more rows there are than are shown, if positive.
	more int
	// color makes the head bold and failures red.
	color bool
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// append adds the table to b: the first column to the left, the others to the
// right.
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
	if t.more > 0 {
		b = fmt.Appendf(b, "... and %d more: --format json\n", t.more)
	}
	return b
}
