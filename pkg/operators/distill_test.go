package operators

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
)

// distilledTokens are the sizes of matrix products that distilled tables keep.
var distilledTokens = []float64{1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512, 768, 1024, 1536,
	2048, 3072, 4096, 8192, 16384, 32768}

// distill returns the tables that are built in: fewer sizes of matrix products, and experts loaded
// as the default distribution says.
func (t *Tables) distill() *Tables {
	d := newTables(t.System)
	for name, g := range t.series {
		operator, rest, _ := strings.Cut(name, "|")
		parts := strings.Split(rest, "|")
		switch {
		case operator == "gemm":
			d.series[name] = g.thin(distilledTokens)
		case operator == "moe" && parts[1] != defaultDistribution &&
			(parts[1] != evenDistribution || atoi(parts[5]) > fewExperts):
		case operator == "nccl" && parts[0] == "alltoall":
		default:
			d.series[name] = g
		}
	}
	return d
}

// thin returns a grid of one axis with only the given values of it.
func (g *grid) thin(keep []float64) *grid {
	if len(g.y) > 1 {
		return g
	}
	h := &grid{y: g.y}
	for i, x := range g.x {
		if slices.Contains(keep, x) {
			h.x, h.us = append(h.x, x), append(h.us, g.us[i])
		}
	}
	return h
}

func level(us float64) int64 {
	return int64(math.Round(math.Log(max(us, shortestUS)/shortestUS) / logStep))
}

// encode returns the distilled form.
func (t *Tables) encode() []byte {
	var plain []byte
	number := func(n int64) { plain = binary.AppendVarint(plain, n) }
	var axes [][]float64
	indexOf := func(axis []float64) int64 {
		for i, a := range axes {
			if slices.Equal(a, axis) {
				return int64(i)
			}
		}
		axes = append(axes, axis)
		return int64(len(axes) - 1)
	}
	names := slices.Sorted(maps.Keys(t.series))
	for _, name := range names {
		indexOf(t.series[name].x)
		indexOf(t.series[name].y)
	}
	number(int64(len(axes)))
	for _, axis := range axes {
		number(int64(len(axis)))
		for _, v := range axis {
			number(int64(v))
		}
	}
	number(int64(len(names)))
	for _, name := range names {
		g := t.series[name]
		number(int64(len(name)))
		plain = append(plain, name...)
		number(indexOf(g.x))
		number(indexOf(g.y))
		for j := range g.y {
			before := int64(0)
			for i := range g.x {
				now := level(*g.at(i, j))
				number(now - before)
				before = now
			}
		}
	}
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic("operators: " + err.Error()) // no writer fails here
	}
	return packed.Bytes()
}
