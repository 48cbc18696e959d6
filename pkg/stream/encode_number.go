package stream

import (
	"math"
	"strconv"
)

// appendFloat writes the shortest decimal that reads back as v, with an
// exponent only below 1e-6 and from 1e21 on, as encoding/json (and JavaScript)
// do. v is finite.
func appendFloat(b []byte, v float64) []byte {
	if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, v, 'e', -1, 64)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' { // e-09 is written e-9
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

// numbers remembers the texts of numbers that come again and again, as scores and
// their terms do: finding one takes a tenth of making it.
type numbers [1024]struct {
	bits uint64
	n    uint8
	text [25]byte
}

// append is appendFloat.
func (m *numbers) append(b []byte, v float64) []byte {
	bits := math.Float64bits(v)
	known := &m[bits*0x9E3779B97F4A7C15>>54]
	if known.n == 0 || known.bits != bits {
		known.bits, known.n = bits, uint8(len(appendFloat(known.text[:0], v)))
	}
	return append(b, known.text[:known.n]...)
}
