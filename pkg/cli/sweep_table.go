package cli

import (
	"encoding/json"
	"io"
	"maps"
	"slices"

	"blis/pkg/parquet"
	"blis/pkg/sweep"
)

// resultTable writes the results of a sweep as a table with a row for each: the point, the score, and every number of
// the metrics under its path.
type resultTable struct {
	name  string
	out   io.Writer
	sheet parquet.Sheet
}

func (t *resultTable) write(r *sweep.Result) error {
	cells, err := resultCells(r)
	t.sheet.Add(cells)
	return err
}

func (t *resultTable) close() error {
	if isCSV(t.name) {
		return t.sheet.WriteCSV(t.out)
	}
	return t.sheet.WriteParquet(t.out)
}

// resultCells are the columns of a result.
func resultCells(r *sweep.Result) ([]parquet.Cell, error) {
	var cells []parquet.Cell
	number := func(column string, x float64) {
		cells = append(cells, parquet.Cell{Column: column, Number: x})
	}
	text := func(column, x string) {
		if x != "" {
			cells = append(cells, parquet.Cell{Column: column, Text: x})
		}
	}
	number("index", float64(r.Index))
	text("id", r.ID)
	text("workload", r.Workload)
	text("policies", r.Policies)
	if r.Rate > 0 {
		number("rate", r.Rate)
	}
	number("seed", float64(r.Seed))
	for _, path := range slices.Sorted(maps.Keys(r.Set)) {
		value, err := json.Marshal(r.Set[path])
		if err != nil {
			return nil, err
		}
		var x any
		if err := json.Unmarshal(value, &x); err != nil {
			return nil, err
		}
		switch x := x.(type) {
		case float64:
			number("set."+path, x)
		case string:
			text("set."+path, x)
		default:
			text("set."+path, string(value))
		}
	}
	if r.Prefix > 0 {
		number("prefix", float64(r.Prefix))
	}
	text("error", r.Error)
	if f := r.Fitness; f != nil {
		number("score", f.Score)
		for _, term := range f.Terms {
			number("term."+term.Name, term.Value)
		}
		for _, o := range f.Objectives {
			if o.Value != nil {
				number("objective."+o.Name, *o.Value)
			}
		}
		for _, o := range f.Features {
			if o.Value != nil {
				number("feature."+o.Name, *o.Value)
			}
		}
	}
	values, err := r.Values()
	for _, v := range values {
		number(v.Path, v.Value)
	}
	return cells, err
}
