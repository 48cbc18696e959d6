package chart

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/guptarohit/asciigraph"
)

// The size of a text: its default width, the least width of the lines, and their height in rows.
const (
	textWidth   = 80
	leastWidth  = 20
	textHeight  = 10
	labelsWidth = 11 // of the labels of Y, with their axis
)

// symbols draw the lines, in turn: the first has box-drawing characters, so that lines are distinct without colors.
var symbols = []string{"", "*", "+", "o", "x", "#", "=", "@"}

var terminalColors = []asciigraph.AnsiColor{asciigraph.DodgerBlue, asciigraph.Red, asciigraph.Green, asciigraph.Orchid,
	asciigraph.Orange, asciigraph.Goldenrod, asciigraph.HotPink, asciigraph.Turquoise}

// Text draws the chart with characters, in lines of at most width columns, 80 if it is 0, and lists the numbers of its
// lines below. Rules and marks are not drawn. It is an error if there is nothing to draw.
func (c *Chart) Text(width int, color bool) (string, error) {
	if err := c.check(); err != nil {
		return "", err
	}
	if width <= 0 {
		width = textWidth
	}
	columns := max(width-labelsWidth, leastWidth)
	low, high := c.extent()
	x := scale(c.X.Log)
	var rows [][]float64
	var sets []asciigraph.CharSet
	top := 0.0
	for i := range c.Lines {
		row := c.Lines[i].sample(x.of(low), x.of(high), columns, x)
		for k := range row {
			row[k] = scale(c.Y.Log).of(row[k])
			top = max(top, row[k])
		}
		rows = append(rows, row)
		set := asciigraph.CharSet{}
		if s := symbols[i%len(symbols)]; s != "" {
			set = asciigraph.CreateCharSet(s)
		}
		sets = append(sets, set)
	}
	options := []asciigraph.Option{asciigraph.Height(textHeight), asciigraph.Offset(3), asciigraph.SeriesChars(sets...),
		asciigraph.Caption(c.X.Label), asciigraph.YAxisValueFormatter(c.Y.label),
		asciigraph.XAxisRange(x.of(low), x.of(high)), asciigraph.XAxisTickCount(max(2, min(7, columns/10))),
		asciigraph.XAxisValueFormatter(func(v float64) string { return short(x.back(v)) })}
	if c.Y.Percent {
		options = append(options, asciigraph.LowerBound(0), asciigraph.UpperBound(1))
	} else if c.Y.Zero {
		options = append(options, asciigraph.LowerBound(0), asciigraph.UpperBound(max(top, 1e-9)))
	}
	if color {
		options = append(options, asciigraph.SeriesColors(c.palette()...))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", c.Title, c.Y.Label, asciigraph.PlotMany(rows, options...))
	c.list(&b, color)
	return b.String(), nil
}

func (c *Chart) palette() (all []asciigraph.AnsiColor) {
	for i := range c.Lines {
		all = append(all, terminalColors[i%len(terminalColors)])
	}
	return all
}

// label writes a value of Y with blanks before it, so that all labels are equally wide.
func (a Axis) label(v float64) string {
	text := short(scale(a.Log).back(v))
	if a.Percent {
		text = fmt.Sprintf("%.0f %%", 100*v)
	}
	return fmt.Sprintf("%7s", text)
}

// list writes the symbol, the name and the numbers of each line.
func (c *Chart) list(b *strings.Builder, color bool) {
	wide := 0
	for i := range c.Lines {
		wide = max(wide, utf8.RuneCountInString(c.Lines[i].Name))
	}
	b.WriteByte('\n')
	if len(c.Columns) > 0 {
		fmt.Fprintf(b, "     %*s", wide, "")
		for _, name := range c.Columns {
			fmt.Fprintf(b, " %10s", name)
		}
		b.WriteByte('\n')
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		symbol := symbols[i%len(symbols)]
		if symbol == "" {
			symbol = "─"
		}
		symbol = strings.Repeat(symbol, 2)
		if color {
			symbol = terminalColors[i%len(terminalColors)].String() + symbol + asciigraph.Default.String()
		}
		fmt.Fprintf(b, " %s  %s%*s", symbol, l.Name, wide-utf8.RuneCountInString(l.Name), "")
		for _, x := range l.Numbers {
			text := "–"
			if !math.IsNaN(x) {
				text = short(x)
			}
			fmt.Fprintf(b, " %10s", text)
		}
		b.WriteByte('\n')
	}
}

// scale maps values to places on an axis: their logarithm if true, themselves otherwise.
type scale bool

func (s scale) of(x float64) float64 {
	if s {
		return math.Log10(x)
	}
	return x
}

func (s scale) back(x float64) float64 {
	if s {
		return math.Pow(10, x)
	}
	return x
}

// sample returns the value of the line in each column between two places; NaN where it has none. The value of steps
// is their mean over the column, or the largest if the line shows peaks.
func (l *Line) sample(low, high float64, columns int, x scale) []float64 {
	values := make([]float64, columns)
	for i := range values {
		values[i] = math.NaN()
	}
	width := (high - low) / float64(columns)
	for _, segment := range l.segments() {
		for i := range values {
			from := low + float64(i)*width
			if l.Step {
				if mean, peak, ok := stepsBetween(segment, from, from+width, x); ok {
					values[i] = mean
					if l.Peak {
						values[i] = peak
					}
				}
			} else if y, ok := between(segment, low+float64(i)*(high-low)/float64(columns-1), x); ok {
				values[i] = y
			}
		}
	}
	return values
}

// between returns the value at a place, on straight lines between points; ok is false outside of the segment.
func between(segment []Point, at float64, x scale) (y float64, ok bool) {
	for i, p := range segment {
		here := x.of(p.X)
		if here < at {
			continue
		}
		if i == 0 {
			return p.Y, here == at
		}
		before := segment[i-1]
		share := (at - x.of(before.X)) / (here - x.of(before.X))
		return before.Y + share*(p.Y-before.Y), true
	}
	last := segment[len(segment)-1]
	return last.Y, at-x.of(last.X) < 1e-9*math.Abs(at)
}

// stepsBetween returns the mean and the largest value of steps between two places; ok is false if there is none.
func stepsBetween(segment []Point, from, to float64, x scale) (mean, peak float64, ok bool) {
	sum, time, peak := 0.0, 0.0, math.Inf(-1)
	for i, p := range segment[:len(segment)-1] {
		part := min(to, x.of(segment[i+1].X)) - max(from, x.of(p.X))
		if part > 0 {
			sum, time, peak = sum+p.Y*part, time+part, max(peak, p.Y)
		}
	}
	return sum / time, peak, time > 0
}
