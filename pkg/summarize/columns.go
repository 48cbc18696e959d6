package summarize

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// column is a run in a table of runs.
type column struct {
	name string
	*runDoc
	candidate *candidate // nil for a reference run
	values    map[string]float64
	metrics   []metrics.Value
}

// columns returns the runs of a table: those to summarize, then the reference runs.
func (r *analysis) columns() (all []column) {
	if r.runs[0].workload != nil {
		return nil
	}
	add := func(x *runDoc, of *candidate, role string) {
		c := column{name: role + x.name, runDoc: x, candidate: of, values: map[string]float64{}}
		if x.raw != nil {
			c.metrics = metrics.Values(x.raw)
		}
		for _, v := range c.metrics {
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

// maxColumns is the maximum number of runs as columns. More runs are rows, with fewer
// numbers.
const maxColumns = 6

// cells returns the table of the runs; its first row and first column are headers.
func (r *analysis) cells() (grid [][]string) {
	columns := r.columns()
	lines := r.lines(columns)
	if len(columns) <= maxColumns {
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

// sideBySide renders the table for people, with errors and warnings below it.
func (r *analysis) sideBySide() []byte {
	t := &texttab.Table{FirstWidth: headWidth, Rows: r.cells(), Color: r.options.Color}
	b := t.Append(nil)
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
		if x.result != nil && !r.defaultFitness {
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

// errNoRuns is the error of formats that are tables of runs, for a workload.
var errNoRuns = errors.New("a workload has no table of runs; use --format text, table or json")

// markdown renders the table in Markdown.
func (r *analysis) markdown(error) ([]byte, error) {
	if r.runs[0].workload != nil {
		return nil, errNoRuns
	}
	var b []byte
	for i, row := range r.cells() {
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

// csv renders every number of the runs.
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
	for _, l := range r.scoreLines() {
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

// paths returns the paths of all columns: those of the first column in its order, then
// additional ones.
func paths(columns []column) []string {
	var all []string
	seen := map[string]bool{}
	for i := range columns {
		for _, v := range columns[i].metrics {
			if !seen[v.Path] {
				seen[v.Path] = true
				all = append(all, v.Path)
			}
		}
	}
	return all
}
