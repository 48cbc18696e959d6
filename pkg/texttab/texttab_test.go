package texttab

import (
	"strings"
	"testing"
)

func table() *Table {
	t := &Table{FirstWidth: 5}
	t.Row("run", "gate", "ms", "note")
	t.Row("a", "passed", "-", "x")
	t.Row("longer", "FAILED", "-", "")
	return t
}

func TestTableIsAligned(t *testing.T) {
	for want, change := range map[string]func(*Table) *Table{
		"run       gate  ms  note\na       passed   -     x\nlonger  FAILED   -\n": func(x *Table) *Table { return x },
		"run     gate    ms  note\na       passed   -     x\nlonger  FAILED   -\n": func(x *Table) *Table {
			x.LeftColumns = 2
			return x
		},
		"run       gate  note\na       passed     x\nlonger  FAILED\n... and 7 more: --format json\n": func(
			x *Table) *Table {
			x.Omitted = 7
			return x.WithoutEmpty()
		},
	} {
		if got := string(change(table()).Append(nil)); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	short := &Table{FirstWidth: 5, Rows: [][]string{{"a", "bb"}}}
	if got := string(short.Append([]byte("x\n"))); got != "x\na      bb\n" {
		t.Errorf("minimum width: %q", got)
	}
}

func TestColorChangesNoText(t *testing.T) {
	colored, plain := table(), string(table().Append(nil))
	colored.Color = true
	got := string(colored.Append(nil))
	if !strings.HasPrefix(got, Bold+"run") || !strings.Contains(got, Red+"  FAILED"+Plain) {
		t.Errorf("%q", got)
	}
	if without := strings.NewReplacer(Bold, "", Red, "", Plain, "").Replace(got); without != plain {
		t.Errorf("got\n%s\nwant\n%s", without, plain)
	}
}

// TestWithoutEmpty: a column stays if any row has something in it, be it the first or the last one.
func TestWithoutEmpty(t *testing.T) {
	x := &Table{}
	x.Add("run", "first", "none", "last")
	x.Add("a", 1, "-", "-")
	x.Add("b", "-", "-", 2.5)
	want := "run  first  last\na        1     -\nb        -   2.5\n"
	if got := string(x.WithoutEmpty().Append(nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWithoutRows: a table may have no rows, so that all its columns stay.
func TestWithoutRows(t *testing.T) {
	x := &Table{}
	x.Add("run", "ms")
	if got := string(x.WithoutEmpty().Append(nil)); got != "run  ms\n" {
		t.Errorf("%q", got)
	}
}

// TestWithoutEmptyOfOneRow: one row is enough for a column to be empty.
func TestWithoutEmptyOfOneRow(t *testing.T) {
	x := &Table{}
	x.Add("run", "none", "ms")
	x.Add("a", "-", 2.5)
	if got := string(x.WithoutEmpty().Append(nil)); got != "run   ms\na    2.5\n" {
		t.Errorf("%q", got)
	}
}
