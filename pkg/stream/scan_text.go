package stream

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"blis/pkg/registry"
)

// uniqueString reads a string that is unlikely to occur again.
func (s *scanner) uniqueString(f *Field) string { return string(s.stringBytes(f)) }

// shortLivedString reads a string that is unlikely to occur again, and that no one keeps for long: it is in one piece
// of memory with many others.
func (s *scanner) shortLivedString(f *Field) string {
	b := s.stringBytes(f)
	if s.piece.Cap()-s.piece.Len() < len(b) {
		s.piece = strings.Builder{}
		s.piece.Grow(max(len(b), stringPiece))
	}
	from := s.piece.Len()
	s.piece.Write(b)
	return s.piece.String()[from:]
}

// stringPiece is the size of a piece of memory for short-lived strings.
const stringPiece = 1 << 12

// internedString reads a string that is likely to occur again, such as a tenant. The string that the field had last is
// compared with what is here before its end is known.
func (s *scanner) internedString(f *Field) string {
	if s.last == nil {
		s.last = make([]string, fields+1)
	}
	last, rest := &s.last[f.number], s.b[s.i:]
	if end := len(*last) + 1; end < len(rest) && rest[0] == '"' && rest[end] == '"' && string(rest[1:end]) == *last {
		s.i += end + 1
		return *last
	}
	v := s.names.intern(s.stringBytes(f))
	if unescapedLength([]byte(v)) == len(v) { // its text is itself
		*last = v
	}
	return v
}

// choice reads one of the strings that f allows.
func (s *scanner) choice(f *Field) string {
	b := s.stringBytes(f)
	for _, v := range f.OneOf {
		if string(b) == v {
			return v
		}
	}
	if s.err == nil {
		s.err = registry.Unknown(f.Name, string(b), f.OneOf)
	}
	return ""
}

// stringBytes reads a string, valid until the next one is read.
func (s *scanner) stringBytes(f *Field) []byte {
	if s.peek() != '"' {
		s.typeError(f, "a string")
		return nil
	}
	return s.rawString()
}

// rawString reads the string that begins here, valid until the next one is read.
func (s *scanner) rawString() []byte {
	s.i++
	b := s.b[s.i:]
	if n := unescapedLength(b); n < len(b) && b[n] == '"' {
		s.i += n + 1
		return b[:n]
	}
	return s.unescape()
}

// unescapedLength returns the length of the prefix of b that is plain ASCII without
// escapes. It tests eight bytes at a time.
func unescapedLength(b []byte) (n int) {
	for ; n+8 <= len(b); n += 8 {
		if special := specialBytes(binary.LittleEndian.Uint64(b[n:])); special != 0 {
			return n + bits.TrailingZeros64(special)/8
		}
	}
	for n < len(b) && unescaped[b[n]] {
		n++
	}
	return n
}

// specialBytes has the top bit of a byte set if the byte of the word is not ASCII or if the
// subtraction borrowed. A borrow may also mark higher bytes by mistake, but never a byte before
// the first special one, and none where there is no special one.
func specialBytes(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^ones*'"', word^ones*'\\'
	return (word | (word - ones*' ') | (quote - ones) | (backslash - ones)) & tops
}

// unescape reads the rest of a string that is not plain ASCII.
func (s *scanner) unescape() []byte {
	s.scratch = s.scratch[:0]
	for s.i < len(s.b) && s.err == nil {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.scratch
		case unescaped[c]:
			s.scratch = append(s.scratch, c)
			s.i++
		case c == '\\':
			s.i++
			s.escape()
		case c < ' ':
			s.syntaxError("unescaped control character in a string")
		default:
			r, size := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && size == 1 {
				s.syntaxError("invalid UTF-8")
			}
			s.scratch = append(s.scratch, s.b[s.i:s.i+size]...)
			s.i += size
		}
	}
	s.syntaxError("unterminated string")
	return nil
}

// escape reads an escape sequence after its backslash.
func (s *scanner) escape() {
	c := s.peek()
	i := strings.IndexByte(escapes, c)
	switch {
	case i >= 0:
		s.scratch = append(s.scratch, escaped[i])
		s.i++
	case c == 'u':
		r := s.hexUnit()
		if utf16.IsSurrogate(r) {
			var low rune
			if bytes.HasPrefix(s.b[s.i:], []byte(`\u`)) {
				s.i++
				low = s.hexUnit()
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				s.syntaxError("unpaired surrogate")
			}
		}
		s.scratch = utf8.AppendRune(s.scratch, r)
	default:
		s.syntaxError("unknown escape")
	}
}

// hexUnit reads the u and four hexadecimal digits of a UTF-16 code unit.
func (s *scanner) hexUnit() (r rune) {
	s.i++
	for range 4 {
		digit := strings.IndexRune(hexDigits, unicode.ToLower(rune(s.peek())))
		if digit < 0 {
			s.syntaxError("expected a hexadecimal digit")
			return 0
		}
		r = r<<4 | rune(digit)
		s.i++
	}
	return r
}

// interner returns equal short strings without allocating again. It is a cache
// with one slot for each hash, so other strings may evict one.
type interner [4096]string

func (t *interner) intern(b []byte) string {
	const maxLength = 64
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxLength {
		return string(b)
	}
	slot := &t[hashBytes(b)%uint64(len(t))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}

// hashBytes mixes eight bytes at a time, some of the last ones twice. Nothing outside depends on its value.
func hashBytes(b []byte) uint64 {
	const multiplier = 0x9E3779B97F4A7C15 // 2^64 / golden ratio
	n := len(b)
	h, last := uint64(n), uint64(0)
	switch {
	case n >= 8:
		for rest := b; len(rest) > 8; rest = rest[8:] {
			h = (h ^ binary.LittleEndian.Uint64(rest)) * multiplier
			h ^= h >> 32
		}
		last = binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		last = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		last = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	h = (h ^ last) * multiplier
	return h >> 40
}
