package summarize

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"

	"blis/pkg/metrics"
	"blis/pkg/stream"
	"blis/pkg/texttab"
)

// column is a run in a table of runs.
type column struct {
	name string
	*runDoc
	values  map[string]float64
	metrics []metrics.Value
}

// columns returns the runs of a table: those to summarize, then the reference runs.
func (r *analysis) columns() (all []column) {
	if r.runs[0].workload != nil {
		return nil
	}
	add := func(x *runDoc, role string) {
		c := column{name: role + x.name, runDoc: x}
		if x.raw != nil {
			c.metrics, c.values = metrics.Values(x.raw), metrics.ByPath(x.raw)
		}
		all = append(all, c)
	}
	for _, x := range r.runs {
		add(x, "")
	}
	for i, references := range r.references {
		for _, x := range references {
			add(x, referenceKinds[i]+" ")
		}
	}
	return all
}

// maxColumns is the maximum number of runs as columns. More runs are rows, with fewer
// numbers.
const maxColumns = 6

// cells returns the table of the runs; its first row and first column are headers.
func (r *analysis) cells(columns []column) (grid [][]string) {
	many := len(columns) > maxColumns
	head := line{name: "run", key: true, text: func(c *column) string { return c.name }}
	for _, l := range append([]line{head}, r.lines(columns)...) {
		if many && !l.key {
			continue
		}
		row := []string{stream.Printable(l.name)}
		for i := range columns {
			row = append(row, stream.Printable(l.cell(&columns[i])))
		}
		grid = append(grid, row)
	}
	if many {
		grid = transpose(grid)
	}
	return grid
}

// transpose returns the table with rows and columns exchanged.
func transpose(grid [][]string) [][]string {
	exchanged := make([][]string, len(grid[0]))
	for _, row := range grid {
		for i, cell := range row {
			exchanged[i] = append(exchanged[i], cell)
		}
	}
	return exchanged
}

// sideBySide renders the table for people, with errors and warnings below it.
func (r *analysis) sideBySide(columns []column) []byte {
	t := &texttab.Table{FirstWidth: headWidth, Rows: r.cells(columns), Color: r.options.Color}
	p := page(t.Append(nil))
	var warnings []string
	for _, x := range r.runs {
		if x.err != nil {
			p.line("error", "%s: %s", x.name, x.err)
		}
		own := slices.Clone(x.warnings)
		if x.result != nil && !r.defaultFitness {
			own = append(own, x.result.Warnings...)
		}
		for _, w := range own {
			warnings = append(warnings, x.name+": "+w)
		}
	}
	warnings = append(warnings, r.warnings...)
	p.list("warnings", warnings, len(warnings))
	return p
}

// errNoRuns is the error of formats that are tables of runs, for a workload.
var errNoRuns = errors.New("a workload has no table of runs; use --format text, table or json")

// markdown renders the table in Markdown.
func (r *analysis) markdown(error) ([]byte, error) {
	if r.runs[0].workload != nil {
		return nil, errNoRuns
	}
	var b []byte
	for i, row := range r.cells(r.columns()) {
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
	lines := append([]line{{name: "metric", text: func(c *column) string { return c.name }}}, r.integrityLine()...)
	lines = append(lines, r.scoreLines()...)
	for _, path := range paths(columns) {
		lines = append(lines, line{name: path, number: func(c *column) *float64 {
			if x, ok := c.values[path]; ok {
				return &x
			}
			return nil
		}})
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, l := range lines {
		row := []string{l.name}
		for i := range columns {
			row = append(row, l.exact(&columns[i]))
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
