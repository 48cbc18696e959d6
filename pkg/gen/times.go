package gen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"blis/pkg/dist"
	"blis/pkg/limits"
	"blis/pkg/registry"
	"blis/pkg/strictyaml"
)

// maxTimes bounds the arrival times of one file, which take 8 bytes of memory each.
const maxTimes = 1 << 24

// timeColumns are the names of arrival time columns.
var timeColumns = registry.Table[float64]{ // µs per unit
	{Name: "arrival_s", Doc: "seconds", Value: 1e6},
	{Name: "timestamp_ms", Doc: "milliseconds", Value: 1e3},
	{Name: "arrival_us", Doc: "microseconds", Value: 1},
}

// newTimes makes the arrival process of the client c.
func newTimes(s *Spec, c *Client, at field) dist.Times {
	if b := c.derived.bursts; b != nil {
		return s.applyProfiles(dist.Bursts(b.probability, b.size, b.interval), c, at)
	}
	var recorded []float64
	if c.Arrival.IsTrace() && c.Arrival.File != "" {
		var err error
		recorded, err = s.readTimes(c.Arrival.File)
		if _, ok := errors.AsType[*strictyaml.Error](err); ok {
			at.keep(err)
		} else if err != nil {
			at.fail("arrival.file", "%v", err)
		}
	}
	times, err := c.Arrival.Times(s.AggregateRate*c.RateFraction*max(1, c.derived.rateFactor), recorded)
	at.at("arrival").keepParam(err)
	return s.applyProfiles(times, c, at)
}

// applyProfiles applies the load profiles of the spec and of the client c to its arrivals: the
// multipliers of both are multiplied. Arrivals from a trace stay unchanged.
func (s *Spec) applyProfiles(times dist.Times, c *Client, at field) dist.Times {
	if c.Arrival.IsTrace() && c.LoadProfile != nil {
		at.fail("load_profile", "cannot be combined with arrivals from a trace, which are replayed unchanged")
	}
	if c.Arrival.IsTrace() || s.LoadProfile == nil && c.LoadProfile == nil || at.err != nil {
		return times
	}
	_, err := dist.NewWarp(s.LoadProfile)
	at.spec().at("load_profile").keepParam(err)
	warp, err := dist.NewWarp(s.LoadProfile, c.LoadProfile)
	at.at("load_profile").keepParam(err)
	return times.Warped(warp)
}

// readTimes reads the arrival times in a file, in µs. The name is relative to the folder of the spec, and the file
// below it unless paths are allowed. The file has one time in seconds per line, or it is a CSV table without
// quotes with one time column. The times must be in order. An invalid file is a *strictyaml.Error.
func (s *Spec) readTimes(name string) ([]float64, error) {
	path, err := limits.Path(s.dir, name, s.allowPaths)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseTimes(file, path)
}

func parseTimes(in io.Reader, name string) ([]float64, error) {
	var times []float64
	line, column, unit := 0, 0, 1e6
	errorf := func(format string, args ...any) ([]float64, error) {
		return nil, &strictyaml.Error{File: name, Line: line, Msg: fmt.Sprintf(format, args...)}
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line++
		text := strings.TrimSpace(lines.Text())
		if line == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
			if _, err := strconv.ParseFloat(text, 64); err != nil {
				if column, unit, err = timeColumn(text); err != nil {
					return errorf("%v", err)
				}
				continue
			}
		}
		if text == "" {
			continue
		}
		cells := strings.Split(text, ",")
		if column >= len(cells) {
			return errorf("has only %d columns; the time is in column %d", len(cells), column+1)
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(cells[column]), 64)
		if err != nil {
			return errorf("must be a time, is %q", cells[column])
		}
		if _, err := dist.Micros(v * unit); err != nil {
			return errorf("%v", err)
		}
		if n := len(times); n > 0 && v*unit < times[n-1] {
			return errorf("comes before the time above it; times must be in order")
		}
		if len(times) == maxTimes {
			return errorf("holds more than %d times; import it instead (--import csv:FILE)", maxTimes)
		}
		times = append(times, v*unit)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		line++
		return errorf("is longer than %d bytes", bufio.MaxScanTokenSize)
	} else if err != nil {
		return nil, err
	}
	if len(times) == 0 {
		line = 0
		return errorf("holds no times")
	}
	return times, nil
}

// timeColumn finds the time column in the header of a table.
func timeColumn(header string) (column int, unit float64, err error) {
	column = -1
	for i, cell := range strings.Split(header, ",") {
		us, err := timeColumns.Get("column", strings.TrimSpace(cell))
		if err != nil {
			continue
		}
		if column >= 0 {
			return 0, 0, fmt.Errorf("has two time columns")
		}
		column, unit = i, us
	}
	if column < 0 {
		return 0, 0, fmt.Errorf("must be a time in seconds or a header with a column %s, is %q",
			strings.Join(timeColumns.Names(), " or "), header)
	}
	return column, unit, nil
}
