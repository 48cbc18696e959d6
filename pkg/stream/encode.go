package stream

import (
	"strconv"
	"unicode/utf8"
)

// The encoders in codec_gen.go append one object without line feed. Their output
// equals, byte for byte, that of encoding/json without HTML escaping. These are their
// parts. The text key ends with the name of a field and a colon.

func appendInt(b []byte, key string, v int64) []byte {
	return strconv.AppendInt(append(b, key...), v, 10)
}

// appendOptionalInt omits 0.
func appendOptionalInt(b []byte, key string, v int64) []byte {
	if v == 0 {
		return b
	}
	return appendInt(b, key, v)
}

// appendOptionalString omits the empty string.
func appendOptionalString(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, key...), s)
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

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
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

// appendEscape appends the escape of the character r or, below utf8.RuneSelf, of the
// byte c. Invalid UTF-8 becomes U+FFFD.
func appendEscape(b []byte, c byte, r rune) []byte {
	switch {
	case r == utf8.RuneError:
		return append(b, `\ufffd`...)
	case c >= utf8.RuneSelf: // U+2028, U+2029: line ends in JavaScript
		return append(b, '\\', 'u', '2', '0', '2', hexDigits[r&0xF])
	}
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\f':
		return append(b, '\\', 'f')
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}
