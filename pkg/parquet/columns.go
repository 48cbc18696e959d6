package parquet

import (
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Column is a column of a table: Texts or Numbers, in the order of the rows. A missing value is ""
// or 0.
type Column struct {
	Texts   []string
	Numbers []float64
}

// ReadColumns reads those of the named columns that a table of any kind has, and its number of rows.
func ReadColumns(r io.ReaderAt, size int64, names ...string) (columns map[string]Column, rows int, err error) {
	file, err := parquet.OpenFile(r, size)
	if err != nil {
		return nil, 0, wrap("opening", err)
	}
	columns = map[string]Column{}
	for _, name := range names {
		leaf, ok := file.Schema().Lookup(name)
		if !ok {
			continue
		}
		var c Column
		for _, group := range file.RowGroups() {
			if err := c.read(group.ColumnChunks()[leaf.ColumnIndex]); err != nil {
				return nil, 0, wrap("reading", err)
			}
		}
		columns[name] = c
	}
	return columns, int(file.NumRows()), nil
}

// read appends the values of a column in a row group.
func (c *Column) read(chunk parquet.ColumnChunk) error {
	pages := chunk.Pages()
	defer pages.Close()
	buffer := make([]parquet.Value, batchRows)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for values := page.Values(); ; {
			n, err := values.ReadValues(buffer)
			for _, v := range buffer[:n] {
				c.append(chunk.Type().Kind(), v)
			}
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
		}
	}
}

// append appends a value of a column of this kind.
func (c *Column) append(kind parquet.Kind, v parquet.Value) {
	if kind == parquet.ByteArray {
		text := ""
		if !v.IsNull() {
			text = string(v.ByteArray())
		}
		c.Texts = append(c.Texts, text)
		return
	}
	x := 0.0
	switch v.Kind() {
	case parquet.Int32:
		x = float64(v.Int32())
	case parquet.Int64:
		x = float64(v.Int64())
	case parquet.Float:
		x = float64(v.Float())
	case parquet.Double:
		x = v.Double()
	case parquet.Boolean:
		if v.Boolean() {
			x = 1
		}
	}
	c.Numbers = append(c.Numbers, x)
}
