package recording

import (
	"io"

	"blis/pkg/textio"
)

// forEachLine calls take with each line of a file, decoded from JSON.
func forEachLine[T any](f *file, take func(l *textio.Lines, line *T) error) error {
	l := textio.NewLines(f.Name, f)
	for {
		var line T
		err := l.ReadLenient(&line)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = take(l, &line)
		}
		if err != nil {
			return err
		}
	}
}

// forEachRow calls read for each row of a table until it returns io.EOF. A table without rows is an
// error; what names them.
func forEachRow(s *textio.Table, what string, read func() error) error {
	for n := 0; ; n++ {
		err := read()
		if err == io.EOF && n == 0 {
			return s.Errorf("is the line of column names; no %s follow", what)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
