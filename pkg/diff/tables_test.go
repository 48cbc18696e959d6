package diff

import (
	"slices"
	"strings"
	"testing"

	"blis/pkg/stat"
)

// TestStar: a star marks intervals without 0. An interval that begins or ends at 0 has none.
func TestStar(t *testing.T) {
	for _, c := range []struct {
		ci   *stat.Interval
		want string
	}{{nil, "  "}, {&stat.Interval{Lo: 0, Hi: 1}, "  "}, {&stat.Interval{Lo: -1, Hi: 0}, "  "},
		{&stat.Interval{Lo: -1, Hi: 1}, "  "}, {&stat.Interval{Lo: 1e-9, Hi: 1}, " *"},
		{&stat.Interval{Lo: -1, Hi: -1e-9}, " *"}} {
		if got := (&Metric{CI: c.ci}).star(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ci, got, c.want)
		}
	}
}

// TestGroupTableHasARowForEachClass: the metrics of a class are in one row, which has its name.
func TestGroupTableHasARowForEachClass(t *testing.T) {
	d := &Document{}
	for _, path := range []string{`cls["batch"].ttft.p50`, `cls["batch"].ttft.p99`, `cls["voice"].ttft.p50`,
		"ttft.p50"} {
		x := 2.0
		d.Metrics = append(d.Metrics, Metric{Path: path, A: &x, B: &x})
	}
	var names []string
	for _, row := range d.groupTable("cls").Rows[1:] {
		names = append(names, strings.TrimSpace(row[0]))
	}
	if want := []string{"batch", "voice"}; !slices.Equal(names, want) {
		t.Errorf("rows %q, want %q", names, want)
	}
}
