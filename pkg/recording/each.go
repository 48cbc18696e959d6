package recording

import (
	"io"

	"blis/pkg/textio"
)

// eachLine gives take each of a file's lines, decoded from JSON.
func eachLine[T any](f *file, take func(l *textio.Lines, line *T) error) error {
	l := textio.NewLines(f.Name, f)
	for {
		var line T
		err := l.ReadSome(&line)
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

// eachRow calls read for each row of a table until it returns io.EOF. There must be
// one; what says what the rows are.
func eachRow(s *textio.Sheet, what string, read func() error) error {
	for n := 0; ; n++ {
		err := read()
		if err == io.EOF && n == 0 {
			return s.Errorf("is the line of column names; no %s follow it", what)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
