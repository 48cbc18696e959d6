package parquet

import (
	"bufio"
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"blis/pkg/stream"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Sheet is a table in memory whose columns are those that any row has, in the order in which they appear first. A
// column has numbers if all its cells do, else texts; a row without a cell has a null there.
type Sheet struct {
	columns []sheetColumn
	index   map[string]int // of columns
	rows    [][]Cell       // by column, shorter than columns if later rows have more
}

type sheetColumn struct {
	name   string
	isText bool
}

// Cell is a value of a row. It is a number if its text is empty.
type Cell struct {
	Column, Text string
	Number       float64
	known        bool
}

// Add adds a row. Of two cells in a column the last one counts.
func (s *Sheet) Add(cells []Cell) {
	if s.index == nil {
		s.index = map[string]int{}
	}
	row := make([]Cell, len(s.columns), len(s.columns)+len(cells))
	for _, c := range cells {
		i, ok := s.index[c.Column]
		if !ok {
			i = len(s.columns)
			s.index[c.Column] = i
			s.columns = append(s.columns, sheetColumn{name: c.Column})
		}
		if i >= len(row) {
			row = append(row, make([]Cell, i+1-len(row))...)
		}
		c.known = true
		row[i] = c
		s.columns[i].isText = s.columns[i].isText || c.Text != ""
	}
	s.rows = append(s.rows, row)
}

// text is a cell as text, "" for null.
func (c *Cell) text() string {
	if !c.known || c.Text != "" {
		return c.Text
	}
	return strconv.FormatFloat(c.Number, 'g', -1, 64)
}

// WriteCSV writes a line of names and a line for each row. A null is an empty cell.
func (s *Sheet) WriteCSV(w io.Writer) error {
	out := bufio.NewWriter(w)
	lines := csv.NewWriter(out)
	cells := make([]string, len(s.columns))
	for i := range s.columns {
		cells[i] = s.columns[i].name
	}
	if err := lines.Write(cells); err != nil {
		return err
	}
	for _, row := range s.rows {
		for i := range cells {
			cells[i] = ""
			if i < len(row) {
				cells[i] = row[i].text()
			}
		}
		if err := lines.Write(cells); err != nil {
			return err
		}
	}
	lines.Flush()
	if err := lines.Error(); err != nil {
		return err
	}
	return out.Flush()
}

// WriteParquet writes a Parquet table. Its columns are in alphabetical order.
func (s *Sheet) WriteParquet(w io.Writer) error {
	group := parquet.Group{}
	for _, c := range s.columns {
		leaf := parquet.Leaf(parquet.DoubleType)
		if c.isText {
			leaf = parquet.String()
		}
		group[c.name] = parquet.Optional(leaf)
	}
	order := make([]int, len(s.columns))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if s.columns[a].name < s.columns[b].name {
			return -1
		}
		return 1
	})
	out := parquet.NewGenericWriter[any](w, parquet.NewSchema("sheet", group),
		parquet.Compression(&zstd.Codec{Level: zstd.SpeedFastest}), parquet.CreatedBy("blis", stream.Version, ""))
	row := make(parquet.Row, len(order))
	for _, cells := range s.rows {
		for column, i := range order {
			row[column] = parquet.NullValue().Level(0, 0, column)
			if i >= len(cells) || !cells[i].known {
				continue
			}
			value := parquet.DoubleValue(cells[i].Number)
			if s.columns[i].isText {
				value = parquet.ByteArrayValue([]byte(cells[i].text()))
			}
			row[column] = value.Level(0, 1, column)
		}
		if _, err := out.WriteRows([]parquet.Row{row}); err != nil {
			return wrap("writing", err)
		}
	}
	return wrap("writing", out.Close())
}
