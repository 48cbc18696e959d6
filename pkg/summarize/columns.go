package summarize

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
)

// column is a run beside others.
type column struct {
	name string
	*subject
	of     *candidate // nil of a run to compare with
	values map[string]float64
	order  []metrics.Value
}

// columns are the runs that a table shows: those of the call, then what they are
// compared with.
func (r *analysis) columns() (all []column) {
	if r.runs[0].workload != nil {
		return nil
	}
	add := func(x *subject, of *candidate, role string) {
		c := column{name: role + x.name, subject: x, of: of, values: map[string]float64{}}
		if x.raw != nil {
			c.order = metrics.Values(x.raw)
		}
		for _, v := range c.order {
			c.values[v.Path] = v.Value
		}
		all = append(all, c)
	}
	for _, x := range r.runs {
		for _, c := range r.candidates {
			for _, y := range c.runs {
				if x == y {
					add(x, c, "")
				}
			}
		}
	}
	for _, x := range r.baselines {
		add(x, nil, "baseline ")
	}
	for _, x := range r.parents {
		add(x, nil, "parent ")
	}
	return all
}

// mostColumns is how many runs stand side by side; more stand one below the other,
// with fewer numbers.
const mostColumns = 6

// grid is the table of the runs: its first row and its first column are heads.
func (r *analysis) grid() (grid [][]string) {
	columns := r.columns()
	lines := r.lines(columns)
	if len(columns) <= mostColumns {
		head := []string{"run"}
		for i := range columns {
			head = append(head, stream.Printable(columns[i].name))
		}
		grid = append(grid, head)
		for _, l := range lines {
			row := []string{stream.Printable(l.name)}
			for i := range columns {
				row = append(row, stream.Printable(l.cell(&columns[i])))
			}
			grid = append(grid, row)
		}
		return grid
	}
	head := []string{"run"}
	for _, l := range lines {
		if l.key {
			head = append(head, stream.Printable(l.name))
		}
	}
	grid = append(grid, head)
	for i := range columns {
		row := []string{stream.Printable(columns[i].name)}
		for _, l := range lines {
			if l.key {
				row = append(row, stream.Printable(l.cell(&columns[i])))
			}
		}
		grid = append(grid, row)
	}
	return grid
}

// sideBySide is the grid for people, with what went wrong below it.
func (r *analysis) sideBySide() []byte {
	t := &table{rows: r.grid(), color: r.options.Color}
	b := t.append(nil)
	for _, x := range r.runs {
		if x.err != nil {
			b = fmt.Appendf(b, "%-11s %s: %s\n", "error", stream.Printable(x.name), stream.Printable(x.err.Error()))
		}
	}
	var warnings []string
	for _, x := range r.runs {
		if x.summary != nil {
			for _, w := range x.warnings {
				warnings = append(warnings, x.name+": "+w)
			}
		}
		if x.result != nil && !r.assumed {
			for _, w := range x.result.Warnings {
				warnings = append(warnings, x.name+": "+w)
			}
		}
	}
	if warnings = append(warnings, r.warnings...); len(warnings) > 0 {
		b = append(b, "\nwarnings\n"...)
	}
	return (&Document{Warnings: warnings}).appendWarnings(b)
}

// errNoRuns is what the formats that are tables of runs say of a workload.
var errNoRuns = errors.New("a workload has no table of runs; --format text, table or json describe it")

// markdown is the grid as a Markdown table.
func (r *analysis) markdown(error) ([]byte, error) {
	if r.runs[0].workload != nil {
		return nil, errNoRuns
	}
	var b []byte
	for i, row := range r.grid() {
		for _, cell := range row {
			b = fmt.Appendf(b, "| %s ", strings.ReplaceAll(cell, "|", `\|`))
		}
		b = append(b, "|\n"...)
		if i == 0 {
			b = append(b, "|---"...)
			b = append(append(b, strings.Repeat("|---:", len(row)-1)...), "|\n"...)
		}
	}
	return b, nil
}

// csv has every number of the runs.
func (r *analysis) csv(error) ([]byte, error) {
	if r.runs[0].workload != nil {
		return nil, errNoRuns
	}
	columns := r.columns()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	row := []string{"metric"}
	for i := range columns {
		row = append(row, columns[i].name)
	}
	_ = w.Write(row)
	for _, l := range r.judged() {
		cell := l.exact
		if cell == nil {
			cell = l.cell
		}
		row = append(row[:0], l.name)
		for i := range columns {
			text := cell(&columns[i])
			if text == "-" {
				text = ""
			}
			row = append(row, text)
		}
		_ = w.Write(row)
	}
	for _, path := range paths(columns) {
		row = append(row[:0], path)
		for i := range columns {
			text := ""
			if x, ok := columns[i].values[path]; ok {
				text = exact(x)
			}
			row = append(row, text)
		}
		_ = w.Write(row)
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// paths are those of all columns: of the first in its order, then what others have
// beside them.
func paths(columns []column) []string {
	var all []string
	seen := map[string]bool{}
	for i := range columns {
		for _, v := range columns[i].order {
			if !seen[v.Path] {
				seen[v.Path] = true
				all = append(all, v.Path)
			}
		}
	}
	return all
}
