package operators

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"blis/pkg/portable"
)

// Distilled tables are a sequence of integers in bytes, compressed: the axes, then each series with
// its name, its axes and its times. A time is the logarithm in steps of 0.4 %, as the difference
// from the one before along the first axis, so that most take one byte.

// logStep is the resolution of times: an error of at most 0.2 %.
const logStep = 0.004

// shortestUS is the time of level 0.
const shortestUS = 0.5

func timeOf(level int64) float64 { return shortestUS * portable.Exp(float64(level)*logStep) }

// decoder reads the distilled form; the first error stays.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) number(most int64) int64 {
	v, n := binary.Varint(d.data)
	if d.err != nil {
		return 0
	}
	if n <= 0 || v > most || v < -most {
		d.err = errors.New("is damaged")
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) count(most int64) int {
	n := d.number(most)
	if n < 0 {
		d.err = errors.New("is damaged")
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count(1 << 10)
	if n > len(d.data) {
		d.err = errors.New("is damaged")
		return ""
	}
	text := string(d.data[:n])
	d.data = d.data[n:]
	return text
}

// decode reads the distilled tables of a system.
func decode(system string, packed []byte) (*Tables, error) {
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, fmt.Errorf("distilled tables of %s: %w", system, err)
	}
	d := &decoder{data: plain}
	axes := make([][]float64, d.count(1<<16))
	for i := range axes {
		axes[i] = make([]float64, d.count(1<<16))
		for k := range axes[i] {
			axes[i][k] = float64(d.number(math.MaxInt64 / 2))
		}
	}
	t := newTables(system)
	for range d.count(1 << 20) {
		name := d.text()
		x, y := d.count(int64(len(axes)-1)), d.count(int64(len(axes)-1))
		if d.err != nil || len(axes[x])*len(axes[y]) == 0 {
			break
		}
		g := &grid{x: axes[x], y: axes[y], us: make([]float64, len(axes[x])*len(axes[y]))}
		for j := range g.y {
			now := int64(0)
			for i := range g.x {
				now += d.number(1 << 20)
				*g.at(i, j) = timeOf(now)
			}
		}
		t.series[name] = g
	}
	if d.err != nil {
		return nil, fmt.Errorf("distilled tables of %s: %w", system, d.err)
	}
	return t, nil
}
