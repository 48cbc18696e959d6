package stream

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string.
func (s *scanner) text(f *Field) string { return string(s.bytes(f)) }

// name reads a string that is likely to come again.
func (s *scanner) name(f *Field) string { return s.names.intern(s.bytes(f)) }

// bytes reads a string that is valid until the next one is read.
func (s *scanner) bytes(f *Field) []byte {
	if s.peek() != '"' {
		s.wrong(f, "a string")
		return nil
	}
	return s.raw()
}

// raw reads the string that begins here; it is valid until the next one.
func (s *scanner) raw() []byte {
	s.i++
	b := s.b[s.i:]
	if n := plainLength(b); n < len(b) && b[n] == '"' {
		s.i += n + 1
		return b[:n]
	}
	return s.unescape()
}

// plainLength returns how many bytes at the beginning of b stand for themselves.
// It looks at eight at a time: the top bit of a byte of special is set if the
// byte is not ASCII, or is too small for what is taken from it. What it borrows
// then may mark the bytes above it for nothing, but never one before the first.
func plainLength(b []byte) (n int) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; n+8 <= len(b); n += 8 {
		word := binary.LittleEndian.Uint64(b[n:])
		quote, backslash := word^ones*'"', word^ones*'\\'
		special := (word | (word - ones*' ') | (quote - ones) | (backslash - ones)) & tops
		if special != 0 {
			return n + bits.TrailingZeros64(special)/8
		}
	}
	for n < len(b) && plain[b[n]] {
		n++
	}
	return n
}

// unescape reads the rest of a string that holds more than plain ASCII.
func (s *scanner) unescape() []byte {
	s.scratch = s.scratch[:0]
	for s.i < len(s.b) && s.err == nil {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.scratch
		case plain[c]:
			s.scratch = append(s.scratch, c)
			s.i++
		case c == '\\':
			s.i++
			s.escape()
		case c < ' ':
			s.invalid("a control character in a string")
		default:
			r, size := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && size == 1 {
				s.invalid("text that is not UTF-8")
			}
			s.scratch = append(s.scratch, s.b[s.i:s.i+size]...)
			s.i += size
		}
	}
	s.invalid("a string that does not end")
	return nil
}

// escape reads what follows a backslash.
func (s *scanner) escape() {
	c := s.peek()
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		r := s.unit()
		if utf16.IsSurrogate(r) {
			var low rune
			if bytes.HasPrefix(s.b[s.i:], []byte(`\u`)) {
				s.i++
				low = s.unit()
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				s.invalid("half of a surrogate pair")
			}
		}
		s.scratch = utf8.AppendRune(s.scratch, r)
		return
	default:
		s.invalid("an unknown escape")
	}
	s.scratch = append(s.scratch, c)
	s.i++
}

// unit reads u and the four hexadecimal digits of a UTF-16 code unit.
func (s *scanner) unit() (r rune) {
	s.i++
	for range 4 {
		c := s.peek()
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			s.invalid("expected a hexadecimal digit")
			return 0
		}
		r = r<<4 | rune(c)
		s.i++
	}
	return r
}

// interner gives equal short strings the same memory, as long as not too many
// others come between: it has one place for each hash.
type interner [4096]string

func (t *interner) intern(b []byte) string {
	const longest = 64
	if len(b) == 0 {
		return ""
	}
	if len(b) > longest {
		return string(b)
	}
	place := &t[hashText(b)%uint64(len(t))]
	if *place != string(b) {
		*place = string(b)
	}
	return *place
}

// hashText mixes eight bytes at a time; its value is seen nowhere outside.
func hashText(b []byte) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	h := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * odd
		h ^= h >> 32
	}
	for _, c := range b {
		h = h<<8 ^ h>>56 ^ uint64(c)
	}
	h *= odd
	return h >> 40
}
