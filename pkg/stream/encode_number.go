package stream

import (
	"math"
	"strconv"
)

// appendFloat appends the shortest decimal that reads back as v, with an exponent
// below 1e-6 and from 1e21 on, as encoding/json and JavaScript do. v must be finite.
func appendFloat(b []byte, v float64) []byte {
	if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	b = strconv.AppendFloat(b, v, 'e', -1, 64)
	if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' { // e-09 becomes e-9
		b[n-2] = b[n-1]
		b = b[:n-1]
	}
	return b
}

// numberCache keeps the text of numbers, since scores and their terms repeat: a hit
// takes a tenth of the time of formatting.
type numberCache [1024]struct {
	bits uint64
	n    uint8
	text [25]byte
}

// append does what appendFloat does.
func (m *numberCache) append(b []byte, v float64) []byte {
	bits := math.Float64bits(v)
	entry := &m[bits*0x9E3779B97F4A7C15>>54]
	if entry.n == 0 || entry.bits != bits {
		entry.bits, entry.n = bits, uint8(len(appendFloat(entry.text[:0], v)))
	}
	return append(b, entry.text[:entry.n]...)
}
