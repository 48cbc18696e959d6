package stream

import (
	"fmt"
	"strconv"
	"strings"
)

// integer reads an integer within the bounds of f.
func (s *scanner) integer(f *Field) int64 {
	// 18 digits cannot overflow, and no bound is longer.
	const maxDigits = 18
	var v int64
	start, i := s.i, s.i
	for ; i < len(s.b) && isDigit(s.b[i]); i++ {
		v = v*10 + int64(s.b[i]-'0')
	}
	digits := i - start
	valid := digits > 0 && digits <= maxDigits && (digits == 1 || s.b[start] != '0') &&
		(i == len(s.b) || endsNumber(s.b[i]))
	if !valid || v < f.Min || v > f.Max {
		if f.Min < 0 && s.peek() == '-' {
			s.i++
			return -s.integer(&Field{Name: f.Name, Max: -f.Min})
		}
		s.typeError(f, fmt.Sprintf("an integer from %d to %d", f.Min, f.Max))
		return 0
	}
	s.i = i
	return v
}

// float reads a finite number.
func (s *scanner) float(f *Field) float64 {
	if v, end := shortDecimal(s.b, s.i); end > 0 {
		s.i = end
		return v
	}
	text := literal(s.b[s.i:])
	entry := &s.numbers[hashBytes(text)%uint64(len(s.numbers))]
	if entry.n > 0 && string(entry.text[:entry.n]) == string(text) {
		s.i += len(text)
		return entry.v
	}
	end := numberEnd(s.b, s.i)
	if end < 0 || end < len(s.b) && !endsNumber(s.b[end]) {
		s.typeError(f, "a number")
		return 0
	}
	v, err := strconv.ParseFloat(string(s.b[s.i:end]), 64)
	if err != nil {
		s.typeError(f, "a finite number")
		return 0
	}
	if len(text) <= len(entry.text) {
		entry.v, entry.n = v, uint8(copy(entry.text[:], text))
	}
	s.i = end
	return v
}

// longNumbers keeps the values of numbers with many digits by their text, since scores and their terms repeat: a hit
// takes a fifth of the time of converting. It is a cache with one slot for each hash.
type longNumbers [512]struct {
	v    float64
	n    uint8 // 0 is none
	text [23]byte
}

// literal is the part of b before the first byte that may follow a literal.
func literal(b []byte) []byte {
	n := 0
	for n < len(b) && !endsNumber(b[n]) {
		n++
	}
	return b[:n]
}

// powersOfTen are those that divide a shortDecimal.
var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// shortDecimal reads a number without exponent that begins at b[i] and has at most 15 digits, and returns its end, 0 if
// there is none. Its digits and the power of ten are exact, so that their quotient is the number rounded once.
func shortDecimal(b []byte, i int) (v float64, end int) {
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start, point, digits := i, -1, int64(0)
	for ; i < len(b) && i-start <= len(powersOfTen); i++ {
		if c := b[i]; isDigit(c) {
			digits = digits*10 + int64(c-'0')
		} else if c != '.' || point >= 0 {
			break
		} else {
			point = i
		}
	}
	whole, fraction := i-start, 0
	if point >= 0 {
		whole, fraction = point-start, i-point-1
	}
	switch {
	case whole == 0, point >= 0 && fraction == 0, whole > 1 && b[start] == '0', whole+fraction >= len(powersOfTen):
		return 0, 0
	case i < len(b) && !endsNumber(b[i]):
		return 0, 0
	}
	if v = float64(digits) / powersOfTen[fraction]; negative {
		v = -v
	}
	return v, i
}

// boolean reads true or false.
func (s *scanner) boolean(f *Field) bool {
	for _, v := range []bool{false, true} {
		word := strconv.FormatBool(v)
		if end := s.i + len(word); end <= len(s.b) && string(s.b[s.i:end]) == word {
			s.i = end
			return v
		}
	}
	s.typeError(f, "true or false")
	return false
}

// numberEnd returns the end of the JSON number that begins at b[i], -1 if there is
// none: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func numberEnd(b []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(b) && isDigit(b[i]) {
			i++
		}
		return i > start
	}
	accept := func(set string) bool {
		found := i < len(b) && strings.IndexByte(set, b[i]) >= 0
		if found {
			i++
		}
		return found
	}
	accept("-")
	if !accept("0") && !digits() {
		return -1
	}
	if accept(".") && !digits() {
		return -1
	}
	if accept("eE") {
		if accept("+-"); !digits() {
			return -1
		}
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// endsNumber reports whether c may follow a literal.
func endsNumber(c byte) bool { return c == ',' || c == '}' || c == ']' || isSpace(c) }

// Bounds of the elements of lists of integers.
var (
	itlGapField    = Field{Name: "the gap", Max: maxExact}
	itlCountField  = Field{Name: "the count", Min: 1, Max: maxTokens}
	stepIndexField = Field{Name: "a step index", Max: maxIndex}
)

// pair reads a run of equal gaps: [µs, count].
func (s *scanner) pair() (pair [2]int64) {
	if !s.consume('[') {
		s.failf("a gap must be [µs, count], not %s", s.describeValue())
		return pair
	}
	s.skipSpace()
	pair[0] = s.integer(&itlGapField)
	if s.err == nil && !s.consume(',') {
		s.syntaxError("expected ,")
	}
	s.skipSpace()
	pair[1] = s.integer(&itlCountField)
	if s.err == nil && !s.consume(']') {
		s.syntaxError("expected ]")
	}
	return pair
}
