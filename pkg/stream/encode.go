package stream

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The encoders in codec_gen.go append one object without line feed. Their output
// equals, byte for byte, that of encoding/json without HTML escaping. These are their
// parts. The text key ends with the name of a field and a colon.

func appendInt(b []byte, key string, v int64) []byte {
	return strconv.AppendInt(append(b, key...), v, 10)
}

func appendPair(b []byte, pair [2]int64) []byte {
	b = appendInt(b, "[", pair[0])
	b = appendInt(b, ",", pair[1])
	return append(b, ']')
}

// unescaped is true for each byte that is a character and needs no escape in a JSON
// string.
var unescaped = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

const hexDigits = "0123456789abcdef"

// escapes are the characters that stand for those of escaped after a backslash.
const escapes, escaped = `"\/bfnrt`, "\"\\/\b\f\n\r\t"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := unescapedPrefix(s); i < len(s); {
		c := s[i]
		if unescaped[c] {
			i++
			continue
		}
		size, escape := 1, true
		var r rune
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
			escape = r == utf8.RuneError && size == 1 || r == '\u2028' || r == '\u2029'
		}
		if escape {
			b = append(b, s[from:i]...)
			b = appendEscape(b, c, r)
			from = i + size
		}
		i += size
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

// unescapedPrefix returns the length of a prefix of s that unescapedLength accepts, in units of eight bytes.
func unescapedPrefix(s string) (n int) {
	for ; n+8 <= len(s); n += 8 {
		b := s[n : n+8]
		word := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if specialBytes(word) != 0 {
			break
		}
	}
	return n
}

// appendEscape appends the escape of the character r or, below utf8.RuneSelf, of the
// byte c. Invalid UTF-8 becomes U+FFFD.
func appendEscape(b []byte, c byte, r rune) []byte {
	switch {
	case r == utf8.RuneError:
		return append(b, `\ufffd`...)
	case c >= utf8.RuneSelf: // U+2028, U+2029: line ends in JavaScript
		return append(b, '\\', 'u', '2', '0', '2', hexDigits[r&0xF])
	}
	if i := strings.IndexByte(escaped, c); i >= 0 {
		return append(b, '\\', escapes[i])
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}

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
