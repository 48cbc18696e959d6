package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// svgPaths returns the points of the paths of a color, dashed or not, and the texts of an SVG, which must be
// well-formed.
func svgPaths(t *testing.T, svg []byte, color string, dashed bool) (paths [][]Point, texts map[string]bool) {
	t.Helper()
	texts = map[string]bool{}
	number := regexp.MustCompile(`[ML](-?[\d.e+-]+),(-?[\d.e+-]+)`)
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return paths, texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.CharData:
			texts[string(x)] = true
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range x.Attr {
				attributes[a.Name.Local] = a.Value
			}
			style := attributes["style"]
			if x.Name.Local != "path" || !strings.Contains(style, "stroke:"+color) ||
				strings.Contains(style, "stroke-dasharray") != dashed {
				continue
			}
			var points []Point
			for _, m := range number.FindAllStringSubmatch(attributes["d"], -1) {
				a, errA := strconv.ParseFloat(m[1], 64)
				b, errB := strconv.ParseFloat(m[2], 64)
				if errA != nil || errB != nil {
					t.Fatal(m)
				}
				points = append(points, Point{X: a, Y: b})
			}
			paths = append(paths, points)
		}
	}
}

// checkScale checks that places are a linear function of values, to the digits of an SVG.
func checkScale(t *testing.T, what string, values, places []float64) {
	t.Helper()
	if len(values) != len(places) {
		t.Fatalf("%s: %d values at %d places", what, len(values), len(places))
	}
	low, high := 0, 0
	for i := range values {
		if values[i] < values[low] {
			low = i
		}
		if values[i] > values[high] {
			high = i
		}
	}
	slope := (places[high] - places[low]) / (values[high] - values[low])
	for i := range values {
		if want := places[low] + slope*(values[i]-values[low]); math.Abs(places[i]-want) > 0.02 {
			t.Errorf("%s: %v is at %v, not %v", what, values[i], places[i], want)
		}
	}
}

// The lines of an SVG are at the places of their values, on linear and logarithmic scales, and rules are at theirs.
func TestSVGShowsTheValues(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := Chart{Title: "a <title> & more", X: Axis{Label: "x", Log: log},
			Y:     Axis{Label: "share", Percent: true, Zero: true},
			Rules: []Rule{{X: 7, Line: 1}, {X: 12, Line: -1}},
			Lines: []Line{
				{Name: "first", Points: []Point{{X: 1, Y: 0.1}, {X: 3, Y: 0.15}, {X: 30, Y: 0.5}, {X: 200, Y: 1}}},
				{Name: "second", Points: []Point{{X: 2, Y: 0.9}, {X: 100, Y: 0.2, Mark: Circle}}}}}
		var svg, again bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		if err := c.SVG(&again); err != nil || !bytes.Equal(svg.Bytes(), again.Bytes()) {
			t.Errorf("the second SVG differs: %v", err)
		}
		paths, texts := svgPaths(t, svg.Bytes(), "#1F77B4", false)
		for _, text := range []string{"a <title> & more", "x", "share", "first", "second", "40 %"} {
			if !texts[text] {
				t.Errorf("no text %q in %v", text, texts)
			}
		}
		second, _ := svgPaths(t, svg.Bytes(), "#D62728", false)
		ruled, _ := svgPaths(t, svg.Bytes(), "#D62728", true)
		neutral, _ := svgPaths(t, svg.Bytes(), "#5A5A5A", true)
		if len(ruled) != 1 || len(neutral) != 1 || len(second) < 2 {
			t.Fatalf("%d and %d rules, %d paths of the second line", len(ruled), len(neutral), len(second))
		}
		var x, y, atX, atY []float64
		for i, line := range [][]Point{paths[0], second[0]} {
			for k, p := range line {
				x, y = append(x, scale(log).of(c.Lines[i].Points[k].X)), append(y, c.Lines[i].Points[k].Y)
				atX, atY = append(atX, p.X), append(atY, p.Y)
			}
		}
		for i, rule := range [][]Point{ruled[0], neutral[0]} {
			x, atX = append(x, scale(log).of(c.Rules[i].X)), append(atX, rule[0].X)
		}
		checkScale(t, "x", x, atX)
		checkScale(t, "y", y, atY)
	}
}

// A step holds its value until the next one, and a gap divides a line.
func TestSVGSteps(t *testing.T) {
	c := Chart{Y: Axis{Zero: true}, Lines: []Line{{Name: "steps", Step: true, Points: []Point{{X: 0, Y: 1},
		{X: 10, Y: 3}, {X: 20, Y: math.NaN()}, {X: 30, Y: 2}, {X: 40, Y: 2}}}}}
	var svg bytes.Buffer
	if err := c.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	paths, _ := svgPaths(t, svg.Bytes(), "#1F77B4", false)
	if len(paths) != 2 {
		t.Fatalf("%d paths", len(paths))
	}
	var x, y, atX, atY []float64
	for i, want := range [][]Point{
		{{X: 0, Y: 1}, {X: 10, Y: 1}, {X: 10, Y: 3}, {X: 20, Y: 3}, {X: 20, Y: 3}},
		{{X: 30, Y: 2}, {X: 40, Y: 2}, {X: 40, Y: 2}}} {
		if len(paths[i]) != len(want) {
			t.Fatalf("part %d is %v, not %v", i, paths[i], want)
		}
		for k, p := range want {
			x, y, atX, atY = append(x, p.X), append(y, p.Y), append(atX, paths[i][k].X), append(atY, paths[i][k].Y)
		}
	}
	checkScale(t, "x", x, atX)
	checkScale(t, "y", y, atY)
}

func TestNothingToDraw(t *testing.T) {
	for _, lines := range [][]Line{nil, {{Name: "empty"}}, {{Points: []Point{{Y: math.NaN()}}}}} {
		c := Chart{Lines: lines}
		if err := c.SVG(io.Discard); err == nil {
			t.Errorf("an SVG of %v", c)
		}
		if text, err := c.Text(0, false); err == nil {
			t.Errorf("a text of %v: %s", c, text)
		}
	}
}

// textRows returns the drawn rows of a text without their labels, from the top.
func textRows(text string) (rows [][]rune) {
	for line := range strings.Lines(text) {
		if at := strings.IndexAny(line, "┤┼"); at >= 0 {
			line = strings.TrimRight(line[at+len("┤"):], "\n")
			rows = append(rows, []rune(line))
		}
	}
	return rows
}

// A text has each line in the row of its value, in every column, and the numbers of the lines.
func TestTextShowsTheValues(t *testing.T) {
	for _, log := range []bool{false, true} {
		c := Chart{Title: "title", X: Axis{Label: "time, s", Log: log}, Y: Axis{Label: "share", Percent: true},
			Columns: []string{"p50", "max"}, Lines: []Line{
				{Name: "flat", Points: []Point{{X: 1, Y: 0.3}, {X: 1000, Y: 0.3}},
					Numbers: []float64{1234.4, math.NaN()}},
				{Name: "rising", Points: []Point{{X: 1, Y: 0}, {X: 10, Y: 0.5}, {X: 1000, Y: 1}},
					Numbers: []float64{0.25, 3e7}}}}
		for _, width := range []int{0, 50, 100} {
			text, err := c.Text(width, false)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(line) - 1; n > max(width, 80) || width > 0 && n > width {
					t.Errorf("a line has %d columns of %d: %s", n, width, line)
				}
			}
			rows := textRows(text)
			if len(rows) != textHeight+1 {
				t.Fatalf("%d rows:\n%s", len(rows), text)
			}
			columns := max(width, 80) - labelsWidth
			if width > 0 {
				columns = width - labelsWidth
			}
			x := scale(log)
			for i := range columns - 1 {
				at := x.of(1) + float64(i)*(x.of(1000)-x.of(1))/float64(columns-1)
				want := 0.5 + (at-x.of(10))/(x.of(1000)-x.of(10))/2
				if at < x.of(10) {
					want = (at - x.of(1)) / (x.of(10) - x.of(1)) / 2
				}
				near := math.Round(want * textHeight)
				found := false
				for row := range rows {
					if i < len(rows[row]) && rows[row][i] == '*' && math.Abs(float64(textHeight-row)-near) <= 1 {
						found = true
					}
				}
				if !found {
					t.Fatalf("log %v: the line is not at %v in column %d:\n%s", log, want, i, text)
				}
			}
			for _, want := range []string{"title\n", "share\n", "time, s", " ──  flat         1234          –\n",
				" **  rising       0.25        30M\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		}
	}
}

// A column of a text has the mean or the peak of the steps in it, and a gap is empty.
func TestTextSteps(t *testing.T) {
	l := Line{Step: true, Points: []Point{{X: 0, Y: 4}, {X: 1, Y: 8}, {X: 2, Y: math.NaN()}, {X: 4, Y: 2},
		{X: 8, Y: 2}}}
	got := fmt.Sprint(l.sample(0, 8, 4, false))
	if want := fmt.Sprint([]float64{6, math.NaN(), 2, 2}); got != want {
		t.Errorf("%s, not %s", got, want)
	}
	if got := l.sample(0, 8, 16, false); got[1] != 4 || got[2] != 8 || got[15] != 2 { // columns shorter than steps
		t.Errorf("short columns: %v", got)
	}
	l.Peak = true
	got = fmt.Sprint(l.sample(0, 8, 4, false))
	if want := fmt.Sprint([]float64{8, math.NaN(), 2, 2}); got != want {
		t.Errorf("peaks are %s, not %s", got, want)
	}
}

func TestShort(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1: "1", 1.5: "1.5", 12.34: "12.3", 123.4: "123", 9.999: "10",
		99.96: "100", 999.6: "1000", 1234: "1234", 9999.4: "9999", 12345: "12.3k", 1.5e6: "1500k", 2.5e9: "2500M",
		0.012345: "0.0123", -12345: "-12.3k", math.Inf(1): "+Inf"} {
		if got := short(x); got != want {
			t.Errorf("%v is %s, not %s", x, got, want)
		}
	}
}

// TestLogTicks: a tick at each digit between the ends, and labels at 1, 2 and 5 below a factor of 500, else at 1.
func TestLogTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		ticks     int
		labels    string
	}{{2, 100, 18, "2 5 10 20 50 100"}, {1, 1000, 28, "1 10 100 1000"}, {2, 1000, 27, "10 100 1000"},
		{30, 40, 2, ""}} {
		ticks := logTicks(c.low, c.high)
		var labels []string
		for _, tick := range ticks {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); len(ticks) != c.ticks || got != c.labels {
			t.Errorf("%v to %v: %d ticks, labels %s, want %d, %s", c.low, c.high, len(ticks), got, c.ticks, c.labels)
		}
	}
}

// TestBetween: on a line from (2, 0) to (12, 5), at its ends too, but for rounding.
func TestBetween(t *testing.T) {
	for _, c := range []struct {
		at, want float64
		ok       bool
	}{{1, 0, false}, {2, 0, true}, {4, 1, true}, {12, 5, true}, {12 + 1e-10, 5, true}, {12.1, 5, false}} {
		y, ok := between([]Point{{X: 2, Y: 0}, {X: 12, Y: 5}}, c.at, false)
		if ok != c.ok || ok && math.Abs(y-c.want) > 1e-12 {
			t.Errorf("at %v: %v, %v, want %v, %v", c.at, y, ok, c.want, c.ok)
		}
	}
}

// TestLegendHasEachLineOnce: also one with a gap. A text without columns has no line for their names.
func TestLegendHasEachLineOnce(t *testing.T) {
	c := Chart{Lines: []Line{{Name: "whole", Points: []Point{{X: 0, Y: 1}, {X: 4, Y: 2}}},
		{Name: "parted", Points: []Point{{X: 0, Y: 1}, {X: 1, Y: 2}, {X: 2, Y: math.NaN()}, {X: 3, Y: 1},
			{X: 4, Y: 2}}}}}
	var svg bytes.Buffer
	if err := c.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(svg.String(), ">parted<"); n != 1 {
		t.Errorf("%d times in the legend", n)
	}
	text, err := c.Text(0, false)
	if err != nil || !strings.HasSuffix(text, "\n\n ──  whole \n **  parted\n") {
		t.Errorf("error %v, text %q", err, text)
	}
}

// TestSample: a line from (2, 0) to (12, 10) in three columns.
func TestSample(t *testing.T) {
	l := Line{Points: []Point{{X: 2, Y: 0}, {X: 12, Y: 10}}}
	if got := fmt.Sprint(l.sample(2, 12, 3, false)); got != "[0 5 10]" {
		t.Error(got)
	}
}

// TestMarks: circles and crosses have the color of their line, and differ.
func TestMarks(t *testing.T) {
	draw := func(mark Mark) string {
		t.Helper()
		c := Chart{Lines: []Line{{Points: []Point{{X: 0, Y: 1, Mark: mark}, {X: 4, Y: 2, Mark: mark}}}}}
		var svg bytes.Buffer
		if err := c.SVG(&svg); err != nil {
			t.Fatal(err)
		}
		return svg.String()
	}
	none, circles, crosses := draw(0), draw(Circle), draw(Cross)
	for _, marked := range []string{circles, crosses} {
		if strings.Count(marked, "#1F77B4") <= strings.Count(none, "#1F77B4") {
			t.Errorf("no marks in the color of the line:\n%s", marked)
		}
	}
	if circles == crosses {
		t.Error("circles are crosses")
	}
}
